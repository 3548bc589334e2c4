"""The page that leads to guides and references, and the page of the API's operations."""

from __future__ import annotations

import pytest
from django.test import Client as Browser

from gateway.web.templatetags.code_marks import code_marks
from tests.api.pages.conftest import Site, text


@pytest.mark.django_db
def test_everybody_finds_guides_reference_and_status() -> None:
    page = text(Browser().get("/docs"))
    for address in ("/setup", "/docs/api", "/docs/migrate", "/status", "/device"):
        assert f'<a href="{address}">' in page
    assert '<a href="/docs">' in text(Browser().get("/"))


def test_the_menu_of_a_signed_in_person_leads_there(site: Site) -> None:
    assert '<a href="/docs">' in text(site.cast.client("member").get(site.path("proxy_pages:home")))


@pytest.mark.django_db
def test_the_reference_speaks_of_things() -> None:
    page = text(Browser().get("/docs/api"))
    for heading in ("Organizations, people and teams", "Agents, apps and devices", "Logs and usage"):
        assert f">{heading}</h2>" in page
    assert "oauth_ext</h2>" not in page
    assert "<code>Retry-After</code> says" in page
    assert "`" not in page


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("`a` is <b>", "<code>a</code> is &lt;b&gt;"),
        ("plain", "plain"),
        ("one ` too many <", "one ` too many &lt;"),
        ("`<i>`", "<code>&lt;i&gt;</code>"),
    ],
)
def test_back_quotes_mark_code_and_nothing_else_is_markup(given: str, shown: str) -> None:
    assert str(code_marks(given)) == shown
