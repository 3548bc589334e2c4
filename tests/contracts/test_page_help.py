"""Each page leads to the document that fits it, and no route is without one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client as Browser
from django.urls import URLPattern, URLResolver, get_resolver

from bench.page_walk import NOT_PAGES
from gateway.site.help.library import library
from gateway.web.page_help import DOCUMENT_OF, OVERVIEW, help_url
from tests.api.pages.conftest import text

pytestmark = pytest.mark.one_back_end
# Pages for people among the addresses of OAuth.
OF_OAUTH = {"authorize", "oauth_pages:consent"}


def page_names() -> set[str]:
    """The names of all routes that show a page."""
    named = _names(get_resolver().url_patterns, "", "")
    pages = {name for route, name in named if not NOT_PAGES.match(route) and not name.startswith("moved-")}
    return pages | OF_OAUTH


def _names(patterns: list[Any], prefix: str, namespace: str) -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from _names(pattern.url_patterns, route, inner)
        elif isinstance(pattern, URLPattern):
            yield route, f"{namespace}{pattern.name}"


def test_every_page_has_its_document_and_every_entry_its_page() -> None:
    assert len(page_names()) > 60
    assert sorted(page_names() - DOCUMENT_OF.keys()) == [], "pages without a document in gateway/web/page_help.py"
    assert sorted(DOCUMENT_OF.keys() - page_names()) == [], "entries without a page"


def test_every_document_and_every_part_of_one_exists() -> None:
    for target in set(DOCUMENT_OF.values()) - {OVERVIEW}:
        name, _, part = target.partition("#")
        document = library().find(name)
        assert document is not None, target
        assert not part or part in {heading.id for heading in document.content.headings}, target


def test_a_route_without_an_entry_leads_to_the_overview() -> None:
    assert help_url("no-such-route") == help_url("") == "/docs"
    assert help_url("proxy_pages:explain") == "/docs/recipes/why-refused"
    assert help_url("billing_pages:plan") == "/docs/plan#plan"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/", "/docs/concepts"),
        ("/signin", "/docs/first-steps"),
        ("/status", "/docs/vendors#state"),
        ("/nowhere", "/docs"),
    ],
)
def test_a_page_has_its_link_in_the_frame(path: str, target: str) -> None:
    assert f'<a class="icon-button" href="{target}" data-page-help' in text(Browser().get(path))
