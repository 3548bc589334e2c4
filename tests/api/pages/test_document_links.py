"""No link of a document, of the list of documents or of a page's help is dead, inside the product."""

from __future__ import annotations

import re
from functools import cache
from html import unescape
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from django.test import Client as Browser

from gateway.lib import clock, error_help
from gateway.site.help.library import library
from gateway.web.page_help import DOCUMENT_OF, help_url
from proxy.pages.client_guides import guides
from tests.api.audit.rows import add_row
from tests.api.pages.conftest import Site, text
from tests.contracts.error_codes import all_codes

pytestmark = pytest.mark.django_db
LINK = re.compile(r'<a\b[^>]*?\shref="([^"]+)"')
# The example of a command, and the addresses of others.
FOREIGN = ("https://", "http://", "mailto:")


@pytest.fixture(autouse=True)
def _no_window(settings: Any) -> None:
    settings.RATELIMIT_ENABLE = False


class Reader:
    """Opens each address once, and says which parts its page has."""

    def __init__(self) -> None:
        self._browser = Browser()
        self.parts = cache(self._parts)

    def _parts(self, path: str) -> frozenset[str] | None:
        """The ids of the page; None where there is none. A page behind the sign-in has parts that are not known."""
        answer = self._browser.get(path)
        if answer.status_code in (301, 302):
            return frozenset()
        return frozenset(re.findall(r'\sid="([^"]+)"', text(answer))) if answer.status_code == 200 else None

    def is_dead(self, base: str, link: str) -> bool:
        if link.startswith(FOREIGN):
            return False
        target = urlsplit(urljoin(base, unescape(link)))
        parts = self.parts(target.path)
        return parts is None or bool(target.fragment and parts and target.fragment not in parts)


def test_a_dead_link_is_found() -> None:
    reader = Reader()
    assert reader.is_dead("/docs/errors", "nowhere")
    assert reader.is_dead("/docs/errors", "#nothing")
    assert reader.is_dead("/docs/errors", "/docs/limits#nothing")
    assert not reader.is_dead("/docs/errors", "/docs/limits#quotas")
    assert not reader.is_dead("/docs/errors", "limits#quotas")
    assert not reader.is_dead("/docs/errors", "/setup")


def test_no_link_of_a_document_is_dead() -> None:
    reader, dead, seen = Reader(), [], 0
    for path in ("/docs", "/docs/search?q=key", *(each.url for each in library().documents)):
        links = LINK.findall(text(Browser().get(path)))
        seen += len(links)
        dead += [(path, link) for link in links if reader.is_dead(path, link)]
    assert seen > 1000
    assert dead == []


def test_no_link_to_help_and_no_link_of_an_error_is_dead() -> None:
    reader = Reader()
    addresses = [help_url(route) for route in DOCUMENT_OF]
    addresses += [error_help.address(code).removeprefix("http://testserver") for code in all_codes()]
    assert [address for address in addresses if reader.is_dead("/", address)] == []


def test_every_guide_of_a_client_is_reachable() -> None:
    overview = text(Browser().get("/docs"))
    assert [each.slug for each in guides() if f'href="/docs/clients/{each.slug}"' not in overview] == []


def test_a_link_to_another_file_of_the_source_is_text() -> None:
    found = text(Browser().get("/docs/self-hosting/install"))
    assert "README.md" not in found
    assert ">Backup</a>" in found or "/docs/self-hosting/backup" in found


def test_the_log_leads_from_a_code_to_its_entry(site: Site) -> None:
    org_id, code = site.cast.org.id, "tool_not_allowed"
    row = add_row(org_id=org_id, status="denied", error_code=code, timestamp=clock.now())
    page = text(site.owner().get(f"{site.path('audit_pages:request-log')}?entry={row.id}"))
    assert '<a href="/docs/errors#tool_not_allowed"><code>tool_not_allowed</code></a>' in page
