"""A look at a page finds what only one theme or one width shows, and names the view."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser import looking
from tests.browser.looking import HARMLESS, LIGHT_NARROW, NARROW, PHONE, SCREENS, WIDE, faults_in, press

EVERY_VIEW = (*SCREENS, LIGHT_NARROW)
SHEETS = [*Path("gateway/static").rglob("*.css")]
LIMIT = re.compile(r"(min|max)-width:\s*([\d.]+)px")
CONDITION = re.compile(r"@(?:media|container)([^{]*)\{")
SOUND = '<button>Save</button><p class="said">It is saved.</p>'


@pytest.fixture
def page(chromium: Browser, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    """A page of nobody, on a wide screen. No chart on it follows a new width late."""
    monkeypatch.setattr(looking, "SETTLED_MS", 1_000)
    page = chromium.new_page(viewport={"width": WIDE, "height": 800})
    yield page
    page.context.close()


def look_at(page: Page, content: str, style: str = "") -> list[str]:
    """The faults of a page with this content."""
    head = f"<meta name=viewport content='width=device-width'><title>A page</title><style>{style}</style>"
    page.set_content(f"<!doctype html><html lang=en>{head}<main><h1>A page</h1>{content}</main></html>")
    return faults_in(page, EVERY_VIEW)


def test_a_sound_page_has_no_fault_and_is_left_as_it_was(page: Page) -> None:
    assert look_at(page, SOUND) == []
    assert page.viewport_size == {"width": WIDE, "height": 800}
    assert page.evaluate("document.documentElement.dataset.bsTheme") == "light"
    assert page.evaluate("matchMedia('(prefers-color-scheme: light)').matches")


@pytest.mark.parametrize(
    ("content", "style", "rule", "views"),
    [
        ("<input>", "", " label: ", ["light at 1280", "light at 390"]),
        ("<input class=few>", "@media (min-width: 641px) { .few { display: none } }", " label: ", ["light at 390"]),
        (SOUND, "[data-bs-theme=dark] .said { color: #777; background: #888 }", " color-contrast: ", ["dark at 1280"]),
        (
            SOUND,
            "@media (max-width: 640px) { .said { color: #777; background: #888 } }",
            " color-contrast: ",
            ["light at 390", "light at 320"],
        ),
        (SOUND, "@media (max-width: 320px) { .said { width: 330px } }", " pixels wide", ["light at 320"]),
        (
            SOUND,
            "@media (min-width: 1280px) { .said { width: 1300px } }",
            " pixels wide",
            ["light at 1280", "dark at 1280"],
        ),
    ],
    ids=["no label", "no label on phones", "pale in the dark", "pale on phones", "wide when narrow", "wide when wide"],
)
def test_a_fault_is_found_in_the_views_that_show_it(
    page: Page, content: str, style: str, rule: str, views: list[str]
) -> None:
    found = look_at(page, content, style)
    assert [fault.partition(":")[0] for fault in found] == views
    assert all(rule in fault for fault in found)


def test_a_colour_on_its_way_to_the_other_theme_is_not_looked_at(page: Page) -> None:
    style = "body { color: #000; background: #fff; transition: all 400ms }"
    dark = "[data-bs-theme=dark] body { color: #fff; background: #000 }"
    assert look_at(page, SOUND.replace("<button>Save</button>", ""), style + dark) == []


def test_what_a_pointer_cannot_reach_on_a_phone_is_not_pressed(page: Page) -> None:
    look_at(page, SOUND + "<div class=over></div>", ".over { display: none }")
    press(page.get_by_role("button"))
    page.add_style_tag(content="@media (max-width: 640px) { .over { display: block; position: fixed; inset: 0 } }")
    page.set_default_timeout(2000)
    with pytest.raises(Exception, match="intercepts pointer events"):
        press(page.get_by_role("button"))


def test_rules_that_are_left_out_find_nothing_serious(page: Page) -> None:
    look_at(page, SOUND)
    impacts = page.evaluate("Object.fromEntries(axe._audit.rules.map((each) => [each.id, each.impact]))")
    assert {impacts[name] for name in HARMLESS} == {"minor"}
    assert sum(impact in looking.SERIOUS for impact in impacts.values()) > 60


def test_no_style_sheet_tells_the_two_phones_apart() -> None:
    conditions = [condition for sheet in SHEETS for condition in CONDITION.findall(sheet.read_text())]
    limits = {float(limit) for condition in conditions for _, limit in LIMIT.findall(condition)}
    assert {640.0, 900.0} <= limits
    assert not [limit for limit in limits if NARROW <= limit <= PHONE]
    units = [condition for condition in conditions if "width" in condition and not LIMIT.search(condition)]
    assert units == []


def test_no_style_sheet_asks_for_the_theme_of_the_system() -> None:
    assert not [sheet for sheet in SHEETS if "prefers-color-scheme" in sheet.read_text()]
