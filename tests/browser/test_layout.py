"""The rules of layout find what breaks them, and the main pages keep still while they load, wide and small."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import Visitor
from tests.browser.layout import COLLECT_SHIFTS, NEAREST_PX, PAPER, crowded, jumps, unprinted
from tests.browser.looking import PHONE

# Below an organization.
MAIN_PAGES = (
    "",
    "/vendors",
    "/vendors/acme",
    "/agents",
    "/people",
    "/invitations",
    "/invitations/people",
    "/teams",
    "/access",
    "/activity",
    "/activity/changes",
    "/activity/usage",
    "/billing",
    "/settings",
)
TALL = "style='display:inline-block;width:90px;height:30px'"


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    page = chromium.new_page(viewport={"width": PHONE, "height": 800})
    page.add_init_script(COLLECT_SHIFTS)
    yield page
    page.context.close()


def show(page: Page, content: str, style: str = "") -> None:
    page.goto("about:blank")
    main = f"<main id=main>{content}</main>"
    page.set_content(f"<!doctype html><html><style>{style}</style><body style='margin:0'>{main}</body></html>")


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        (f"<button {TALL}>A</button>&nbsp;&nbsp;&nbsp;<button {TALL}>B</button>", []),
        ("<button style='height:24px'>A</button>", []),
        ("<button style='height:20px'>A</button>", ["20.0 of 24 px high"]),
        ("<a href=# class='btn btn-primary' style='display:block;height:40px'>A</a>", ["40.0 of 44 px high"]),
        (f"<button {TALL}>A</button><a href=# class=btn {TALL}>B</a>", ["0.0 px apart"]),
        (f"<button {TALL}>A</button><div style='height:5px'></div><button {TALL}>B</button>", ["5.0 px apart"]),
        (f"<button {TALL}>A</button><button hidden {TALL.replace('display:inline-block;', '')}>B</button>", []),
    ],
)
def test_buttons_that_a_finger_would_miss_are_found(page: Page, content: str, problems: list[str]) -> None:
    show(page, content, "main { line-height: 0 }")
    found = [each.removeprefix(f"{page.url} ") for each in crowded(page)]
    assert len(found) == len(problems)
    assert all(each.startswith(problem) for each, problem in zip(found, problems, strict=True)), found


def test_content_that_jumps_is_found(page: Page) -> None:
    show(page, "<div id=late></div><div style='height:300px;background:#ccc'>Below</div>")
    page.wait_for_timeout(100)
    assert jumps(page) == []
    page.evaluate("document.getElementById('late').style.height = '300px'")
    assert len(jumps(page)) == 1


@pytest.mark.parametrize(
    ("content", "style", "problem"),
    [
        ("<table><tr><td>1</table>", "", ""),
        ("<table><tr><td>1</table>", "@media print { table { display: none } }", "not printed"),
        ("<div><table><tr><td>1<tr><td>2</table></div>", "div { height: 10px; overflow: auto }", "cut off"),
        ("<button class=btn>Save</button>", "", "printed"),
        ("<button class=btn>Save</button>", "@media print { .btn { display: none } }", ""),
        ("<p class=with-nav>Page</p>", "", "no line about the print"),
    ],
)
def test_what_paper_would_lose_is_found(page: Page, content: str, style: str, problem: str) -> None:
    show(page, content, style)
    found = unprinted(page)
    assert len(found) == bool(problem)
    assert problem in "".join(found)
    assert page.evaluate("matchMedia('screen').matches")


def jumps_each_time(owner: Visitor, path: str) -> list[str]:
    """Those of the last of three loads, if each has some: a machine that is busy paints a half-read page."""
    found: list[str] = []
    for _ in range(3):
        found = jumps(owner.open(path))
        if not found:
            break
    return found


@pytest.mark.parametrize("width", [1280, PHONE])
def test_no_main_page_jumps_while_it_loads(visitor: Callable[..., Visitor], width: int) -> None:
    owner = visitor(viewport={"width": width, "height": 800})
    org = owner.sign_in_owner()
    owner.has_acme(org)
    owner.call_tool(owner.agent_key(org, f"Still bot {width}"))
    paths = [*(f"{org}{path}" for path in MAIN_PAGES), "/docs/api/create_team/try"]
    found = [jumps_each_time(owner, path) for path in paths]
    assert list(itertools.chain(*found)) == []


@pytest.mark.parametrize("width", [1280, PHONE])
def test_the_form_that_scripts_send_has_its_room_before_they_come(visitor: Callable[..., Visitor], width: int) -> None:
    owner = visitor(viewport={"width": width, "height": 800})
    owner.page.route("**/static/js/*.js", _late)
    page = owner.open("/docs/api/create_team/try")
    expect(page.get_by_role("button", name="Send request")).to_be_visible()
    assert jumps(page) == []
    command = page.locator("pre").first.bounding_box()
    button = page.get_by_role("button", name="Send request").bounding_box()
    assert command is not None
    assert button is not None
    assert command["y"] - button["y"] - button["height"] >= NEAREST_PX


@pytest.mark.parametrize("width", [1280, PHONE])
def test_a_dialog_lies_in_its_place_before_scripts_come(visitor: Callable[..., Visitor], width: int) -> None:
    owner = visitor(viewport={"width": width, "height": 800})
    org = owner.sign_in_owner()
    owner.page.route("**/static/js/*.js", _late)
    page = owner.open(f"{org}/invitations")
    page.locator("#main form").last.get_by_role("button").last.click()
    expect(page.locator("dialog[data-modal]:modal")).to_be_visible()
    assert jumps(page) == []


def _late(route: Route) -> None:
    """After the first paint, and after a shift would count as an answer to the click."""
    time.sleep(0.6)
    route.continue_()


def test_a_page_on_paper_says_when_and_from_where(visitor: Callable[..., Visitor]) -> None:
    """The moment is that of the print, however long the page was open."""
    owner = visitor()
    org = owner.sign_in_owner()
    page = owner.open(f"{org}/activity/changes?event_type=organization.created")
    line = page.locator("[data-printed]")
    assert not line.is_visible()
    before = line.locator("time").inner_text()
    assert unprinted(page) == []
    assert line.locator("time").text_content() != before
    assert page.url in (line.text_content() or "")


@pytest.mark.parametrize("width", [1280, 1920])
def test_a_chart_of_a_wide_window_fits_on_paper(visitor: Callable[..., Visitor], width: int) -> None:
    """A browser that prints tells no observer that there is less room, so the chart is not drawn anew."""
    owner = visitor(viewport={"width": width, "height": 800})
    owner.page.add_init_script("window.ResizeObserver = class { observe() {} };")
    page = owner.open(f"{owner.sign_in_owner()}/activity/usage")
    drawn = page.locator(".chart canvas").bounding_box()
    assert drawn is not None
    assert drawn["width"] > PAPER["width"]
    assert unprinted(page) == []
    assert page.locator(".chart canvas").bounding_box() == drawn
