"""The page of the request log: its gate is that of the log's API, and coalesced rows say how many calls they are."""

from __future__ import annotations

import re
from urllib.parse import urljoin

import pytest
from django.conf import LazySettings

from gateway.lib import clock
from tests.api.audit.rows import add_row
from tests.api.pages.conftest import Site, text

LOG = "audit_pages:request-log"


@pytest.fixture
def logged(site: Site) -> Site:
    """An error of the organization, and one of another."""
    add_row(org_id=site.cast.org.id, status="error", error_code="our_error", timestamp=clock.now())
    add_row(org_id=site.cast.other_org.id, status="error", error_code="foreign_error", timestamp=clock.now())
    return site


def test_the_log_of_a_lapsed_organization_is_withheld_with_the_reason(logged: Site, settings: LazySettings) -> None:
    assert "our_error" in text(logged.owner().get(logged.path(LOG)))
    settings.BILLING_MODE = "manual"  # and nobody has paid
    settings.BILLING_PORTAL_URL = "https://pay.example/portal"
    for who, words in (("owner", 'href="https://pay.example/portal"'), ("admin", "An owner can renew it: Owner")):
        answer = logged.cast.client(who).get(logged.path(LOG))
        page = text(answer)
        assert answer.status_code == 402
        assert "our_error" not in page
        assert "This page needs an active plan." in page
        assert words in page
    assert "pay.example" not in text(logged.cast.client("admin").get(logged.path(LOG)))
    assert logged.cast.client("member").get(logged.path(LOG)).status_code == 403
    assert logged.cast.client("other_owner").get(logged.path(LOG)).status_code == 404


def test_a_row_of_many_refused_calls_says_how_many(site: Site) -> None:
    row = add_row(org_id=site.cast.org.id, status="denied", error_code="rate_limited")
    assert "calls in this minute" not in text(site.owner().get(site.path(LOG)))
    row.count = 4711
    row.save()
    assert "4711 calls in this minute" in text(site.owner().get(site.path(LOG)))
    assert "4711 refused calls" in text(site.owner().get(site.path(LOG), {"entry": str(row.id)}))


def test_vendors_are_named_as_in_the_catalog(site: Site) -> None:
    add_row(org_id=site.cast.org.id, vendor="fake", tool="fake_list")
    add_row(org_id=site.cast.org.id, vendor="gone", tool="gone_list")
    page = text(site.owner().get(site.path(LOG), {"vendor": "fake"}))
    assert re.search(r'class="pill" href="[^"]*">Vendor: Fake\s', page)
    assert 'list="vendors" value="Fake"' in page
    assert '<option value="gone"></option>' in page
    assert 'href="vendors/fake">Fake</a>' in page, "as seen from the log"
    assert urljoin(site.path(LOG), "vendors/fake") == site.path("proxy_pages:vendor", "fake")
    assert ">gone_list<" not in page
    unknown = text(site.owner().get(site.path(LOG), {"vendor": "never"}))
    assert 'list="vendors" value="never"' in unknown


def test_a_row_says_day_and_zone(site: Site) -> None:
    row = add_row(org_id=site.cast.org.id, timestamp=clock.now())
    assert f"{row.timestamp:%-d %b %Y, %H:%M:%S} UTC</time>" in text(site.owner().get(site.path(LOG)))
