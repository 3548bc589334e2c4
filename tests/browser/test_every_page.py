"""axe on every page of the URL configuration, as owner, admin and member, in both themes, wide and small.

The organizations are the demo's, which has something of each kind, and one that has nothing. Each form is also sent as
it is first shown, so that its page says what is missing. test_billing_pages.py looks at an organization without a plan.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.browser.conftest import Visitor
from tests.browser.every_page import newcomers, role_visitors
from tests.browser.looking import DARK_PHONE, LIGHT_WIDE, SCREENS, Looker
from tests.long_ones import WITH_LONG

VIEWS = (*SCREENS, DARK_PHONE)
# For pages that differ by the role of their reader.
VIEWS_OF_OTHERS = VIEWS if WITH_LONG else (LIGHT_WIDE, DARK_PHONE)
# A form that asks for something that its page does not know yet.
UNFILLED = (
    "main form[method=post]:has(:is(input, textarea):is([type=text], [type=password], [type=email], :not([type])))"
)


def look_at_all(people: Mapping[str, Visitor], paths: Mapping[str, str], looker: Looker) -> None:
    """At every page that each of the people may open."""
    for role, someone in people.items():
        looker.views = VIEWS if role == "owner" else VIEWS_OF_OTHERS
        for path in paths.values():
            answer = someone.page.goto(f"{someone.base}{path}")
            assert answer is not None
            # A member's refusals look alike: the first pages of them stand for all.
            if answer.status == 200 and not someone.page.url.endswith("/device"):
                looker.look(someone.page, role)


def look_at_faulty_forms(someone: Visitor, paths: Mapping[str, str], looker: Looker) -> int:
    """At each page whose form was refused; their number."""
    page, refused = someone.page, 0
    for route, path in paths.items():
        if route == "profile":  # all of its fields are optional, and other tests read the names
            continue
        page.goto(f"{someone.base}{path}")
        form = page.locator(UNFILLED).first
        if not form.count() or page.locator("[data-confirm-text]").count():
            continue
        form.evaluate("(each) => { each.noValidate = true; each.reset(); }")
        for field in form.locator("input[type=text], input[type=password], textarea").all():
            field.evaluate("(each) => { each.value = ''; }")
        with page.expect_navigation() as navigation:
            form.evaluate("(each) => each.submit()")
        refused += navigation.value.status >= 400
        looker.look(page, "refused")
    return refused


def test_every_page_of_every_role_is_accessible(visitor: Callable[..., Visitor], tmp_path: Path) -> None:
    people, paths = role_visitors(visitor, f" {uuid.uuid4().hex[:4]}")
    looker = Looker(VIEWS, tmp_path)
    look_at_all(people, paths, looker)
    looker.views = VIEWS_OF_OTHERS
    assert look_at_faulty_forms(people["owner"], paths, looker) > 5
    assert not looker.found, "\n".join(looker.found)


def test_every_page_without_a_thing_is_accessible(visitor: Callable[..., Visitor], tmp_path: Path) -> None:
    people, paths = newcomers(visitor)
    looker = Looker(VIEWS, tmp_path)
    look_at_all(people, paths, looker)
    assert not looker.found, "\n".join(looker.found)
