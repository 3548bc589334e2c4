"""A look at a page: what axe finds in it, in both themes and at the widths of people's screens, from one load of it.

The rules for a view follow from its difference from a view before it:

- LIGHT_WIDE is the page as it is loaded: every rule.
- DARK_WIDE differs by the values of colours alone. The theme is an attribute of the document that only style sheets
  read, so the same elements are there with the same names, roles and sizes.
- LIGHT_PHONE shows elements that a wide screen hides, and it colours some anew: every rule.
- LIGHT_NARROW has the style of LIGHT_PHONE, because no style sheet has a limit between the two widths (test_looking.py
  holds them to that). The same elements are there with the same names and roles, in less room: the rules about room,
  and those about colours, because text may come to lie on another ground.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Error, Locator, Page

from tests.browser.layout import crowded, unprinted

WIDE, PHONE, NARROW = 1280, 390, 320
ATTEMPTS = 3
SETTLED_MS = 10_000  # of a loaded machine
PAUSE_MS = 50
SERIOUS = {"moderate", "serious", "critical"}
AXE = Axe().axe_script
# Rules whose violations are always minor: what they find is no fault.
HARMLESS = re.findall(r'id:"([a-z0-9-]+)",impact:"minor"', AXE)
# Axe describes the places that pass a rule as well, unless it is told not to.
VIOLATIONS = {"resultTypes": ["violations"]}
ALL_RULES = {**VIOLATIONS, "rules": {name: {"enabled": False} for name in HARMLESS}}
# The rules of axe's list that read a computed colour, and those that read the size of a box.
COLOUR, ROOM = ["color-contrast", "link-in-text-block"], ["target-size", "scrollable-region-focusable"]
COLOUR_RULES = {**VIOLATIONS, "runOnly": {"type": "rule", "values": COLOUR}}
COLOUR_AND_ROOM_RULES = {**VIOLATIONS, "runOnly": {"type": "rule", "values": [*COLOUR, *ROOM]}}
RUN_AXE = "(options) => axe.run(options).then((results) => results.violations)"
# theme.js sets the same attribute. A transition that is half done has a colour of neither theme.
TAKE_THEME = """async (theme) => {
  document.documentElement.dataset.bsTheme = theme;
  const changes = document.getAnimations().filter((each) => each instanceof CSSTransition);
  await Promise.allSettled(changes.map((each) => each.finished));
}"""
THEME = "document.documentElement.dataset.bsTheme"
PAGE_WIDTH = "document.documentElement.scrollWidth"

# The elements of a page without its texts. Of siblings that are alike, one stands for all.
SHAPE = """() => {
  const shape = (each) => {
    if (each.tagName === "svg") return "svg";
    const parts = new Set([...each.children].map(shape));
    const names = [...each.attributes].map((one) => one.name).filter((name) => name !== "id");
    return `${each.tagName}.${each.getAttribute("class") || ""}[${names}](${[...parts].join()})`;
  };
  return shape(document.querySelector("main"));
}"""
# Controls that the Tab key does not reach.
USED = "a[href], button, input, select, textarea, summary, [role=button]"
UNREACHABLE = """(used) => [...document.querySelectorAll(used)]
  .filter((each) => each.tabIndex < 0 && !each.disabled && each.type !== "hidden" && each.checkVisibility())
  .map((each) => each.outerHTML.slice(0, 160))"""


@dataclass(frozen=True, slots=True)
class View:
    """How somebody looks at a page: `theme` is light or dark, `width` is in CSS pixels, `rules` are axe's options."""

    theme: str
    width: int
    rules: dict[str, Any]


LIGHT_WIDE = View("light", WIDE, ALL_RULES)
DARK_WIDE = View("dark", WIDE, COLOUR_RULES)
LIGHT_PHONE = View("light", PHONE, ALL_RULES)
DARK_PHONE = View("dark", PHONE, COLOUR_RULES)
LIGHT_NARROW = View("light", NARROW, COLOUR_AND_ROOM_RULES)
BOTH_THEMES = (LIGHT_WIDE, DARK_WIDE)
SCREENS = (*BOTH_THEMES, LIGHT_PHONE)


def faults(page: Page, rules: dict[str, Any] = ALL_RULES) -> list[str]:
    """Violations that axe calls more than minor on the page as it is."""
    return [
        f"{page.url} {each['id']}: {node['html'][:160]} {node['failureSummary'][:300]}"
        for each in violations(page, rules)
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]


def violations(page: Page, rules: dict[str, Any] = ALL_RULES) -> list[dict[str, Any]]:
    """Violations that axe finds. A look begins again when a click was still opening the next page."""
    for _ in range(ATTEMPTS):
        page.wait_for_load_state()
        address = page.url
        with suppress(Error):
            if not page.evaluate("'axe' in window"):
                page.evaluate(AXE)
            found: list[dict[str, Any]] = page.evaluate(RUN_AXE, rules)
            if page.url == address:
                return found
    raise AssertionError(f"{page.url} could not be looked at")


def faults_in(page: Page, views: tuple[View, ...], pictures: Path | None = None) -> list[str]:
    """The faults of the page in each of the views, one of which may be that it is too wide.

    The page is left as it was found. A view with a fault leaves a picture: `pictures` is its path without the end.
    """
    size, found = page.viewport_size, []
    for view in views:
        show(page, view)
        seen = f"{view.theme} at {view.width}"
        faulty = faults(page, view.rules)
        if wide := excess_width(page, view.width):
            faulty.append(f"{page.url} is {wide} pixels wide")
        if faulty and pictures:
            page.screenshot(path=f"{pictures}, {seen}.png", full_page=True)
        found += [f"{seen}: {fault}" for fault in faulty]
    assert size is not None
    show(page, View("light", size["width"], ALL_RULES))
    return found


class Looker:
    """Looks at many pages, but once at those that differ by their texts alone."""

    def __init__(self, views: tuple[View, ...], folder: Path) -> None:
        self.views, self._folder = views, folder
        self._shapes: set[str] = set()
        self.found: list[str] = []

    def look(self, page: Page, who: str) -> None:
        """The faults of the page as it is are among those found."""
        shape = page.evaluate(SHAPE)
        if shape in self._shapes:
            return
        self._shapes.add(shape)
        unreachable = [f"{page.url}: the Tab key does not reach {each}" for each in page.evaluate(UNREACHABLE, USED)]
        faulty = faults_in(page, self.views, self._folder / f"{who} {len(self._shapes)}")
        room = [*room_on_a_phone(page), *unprinted(page)]
        self.found += [f"{who}: {fault}" for fault in (*unreachable, *faulty, *room)]


def room_on_a_phone(page: Page) -> list[str]:
    """Buttons that a finger would miss at the width of a phone. The page is left as it was found."""
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size({"width": PHONE, "height": size["height"]})
    found = crowded(page)
    page.set_viewport_size(size)
    return found


def excess_width(page: Page, width: int) -> int | None:
    """The width of a page that does not fit. A chart follows a new width of the window a few frames later."""
    # wait_for_function evaluates a string in the page, which the content policy forbids.
    for _ in range(SETTLED_MS // PAUSE_MS):
        if page.evaluate(PAGE_WIDTH) <= width:
            return None
        page.wait_for_timeout(PAUSE_MS)
    return int(page.evaluate(PAGE_WIDTH))


def show(page: Page, view: View) -> None:
    """The page in this view, with no transition to it under way."""
    page.wait_for_load_state()
    assert page.viewport_size is not None
    page.set_viewport_size({"width": view.width, "height": page.viewport_size["height"]})
    # Less motion saves the wait for transitions; the style sheet then has none.
    page.emulate_media(color_scheme="dark" if view.theme == "dark" else "light", reduced_motion="reduce")
    page.evaluate(TAKE_THEME, view.theme)
    assert page.evaluate(THEME) == view.theme


def press(button: Locator) -> None:
    """Clicked, after a pointer could reach it on a wide screen as well as on a phone."""
    page = button.page
    size = page.viewport_size
    assert size is not None
    for width in {WIDE, PHONE} - {size["width"]}:
        page.set_viewport_size({"width": width, "height": size["height"]})
        button.click(trial=True)
    page.set_viewport_size(size)
    button.click()
