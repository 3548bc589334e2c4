"""Pages that destroy something or end access ask in one way.   docs/decisions/0074"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TEMPLATES = Path(__file__).parents[2] / "templates"
PAGE = "danger_page.html"
# The names of templates of such pages.
NAMED = re.compile(r"(?:^|_)(?:delete|remove|revoke|leave|disconnect)\.html$")
BLOCKS = ("question", "consequences", "cancel_url", "action")
# Questions of another kind: the red button is one of several answers, or the page has a preview of its own.
OTHERWISE = {
    "credentials/delete.html",
    "oauth_ext/agent_key.html",  # makes, rotates or revokes
    "oauth_ext/client_secret.html",  # makes another
    "oauth_ext/service_client_delete.html",
    "orgs/default_access.html",  # a preview that gives or takes
    "support/action.html",  # asks for a reason, for each action of staff
    "proxy/_item_list.html",
    "proxy/_tool_list.html",  # a question inside the editor
}
SOURCES = {path.relative_to(TEMPLATES).as_posix(): path.read_text() for path in TEMPLATES.rglob("*.html")}
DANGEROUS = sorted(name for name, text in SOURCES.items() if f'extends "{PAGE}"' in text)


def has_red_button(text: str) -> bool:
    return re.search(r"\bbtn-danger\b", text) is not None


def test_red_buttons_are_found() -> None:
    assert has_red_button('<button class="btn btn-danger">')
    assert not has_red_button('<a class="btn btn-outline-danger">')


def test_the_red_button_stands_on_the_shared_page_only() -> None:
    found = {name for name, text in SOURCES.items() if has_red_button(text)}
    assert found == {PAGE, *OTHERWISE}


def test_each_page_of_that_name_uses_the_shared_page() -> None:
    named = {name for name in SOURCES if NAMED.search(name)} - OTHERWISE
    assert len(named) >= 4
    assert named <= set(DANGEROUS)


@pytest.mark.parametrize("name", DANGEROUS)
def test_it_fills_the_shared_page_and_changes_nothing_else_of_it(name: str) -> None:
    blocks = set(re.findall(r"\{% block (\w+) %\}", SOURCES[name]))
    assert set(BLOCKS) <= blocks
    assert "content" not in blocks


def test_cancel_comes_first() -> None:
    page = SOURCES[PAGE]
    assert 0 < page.index("btn btn-secondary") < page.index("btn btn-danger")
    assert page.index("block consequences") < page.index("block fields")
