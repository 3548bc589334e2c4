"""Vendor requests of pages and /api stay within the organization's window and its places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings as configured
from django.db import connection, transaction
from django.urls import reverse

from credentials.api.credentials import HolderCredential, OrganizationCredential
from credentials.api.keys import KeyDetail
from credentials.pages.deletions import DeleteTeamCredentialPage
from credentials.pages.holder_credentials import ServiceClientCredentialPage, TeamCredentialPage
from gateway.coordination import backend
from gateway.coordination.rules import Rule
from proxy.api.discover import Discover
from proxy.control_plane.vendor_request_limiter import vendor_requests
from proxy.pages.tool_access import ToolAccessPage
from tests.factories.api import Api
from tests.factories.credentials import Setting, make_setting
from tests.factories.tenant import connect
from tests.fakes.vendor import FakeVendor

DISCOVER = "/orgs/{org}/tool-access/fake/discover"
Ask = Callable[[Api, Setting], Any]
ASKED: dict[str, Ask] = {
    "discover": lambda api, setting: api.send("admin", "GET", DISCOVER),
    "team": lambda api, setting: api.send(
        "admin", "POST", f"/orgs/{{org}}/teams/{setting.team.id}/credentials/fake", {"apiKey": "right-key"}
    ),
    "service client": lambda api, setting: api.send(
        "admin",
        "POST",
        f"/orgs/{{org}}/service-clients/{setting.service_client.client_id}/credentials/fake",
        {"apiKey": "right-key"},
    ),
    "team's page": lambda api, setting: api.cast.client("admin").post(
        reverse("credentials:team-credential", args=[api.cast.org.id, setting.team.id, "fake"]), {"apiKey": "right-key"}
    ),
    "discover on the page": lambda api, setting: api.cast.client("admin").post(
        reverse("proxy_pages:tool-access", args=[api.cast.org.id, "fake"]), {"action": "discover"}
    ),
}


@pytest.fixture
def setting(api: Api, live_vendor: FakeVendor) -> Setting:
    """Both organizations have connected the vendor."""
    connect(api.cast.org, api.cast.user("owner"))
    connect(api.cast.other_org, api.cast.user("other_owner"))
    return make_setting(api.cast)


def test_every_route_without_a_number_of_its_own_shares_one_window() -> None:
    shared = [
        Discover.gates["GET"],
        HolderCredential.gates["POST"],
        TeamCredentialPage.gates["POST"],
        KeyDetail.gates["POST"],
        ServiceClientCredentialPage.gates["POST"],
        ToolAccessPage.gates["POST discover"],
    ]
    assert {gate.organization_limit for gate in shared} == {Rule("vendor-questions", limit=60, window_s=60)}
    assert OrganizationCredential.gates["POST"].organization_limit is None
    assert DeleteTeamCredentialPage.gates["POST"].organization_limit is None


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_the_organization_asks_so_often_whoever_asks(
    api: Api, setting: Setting, live_vendor: FakeVendor, ask: Ask
) -> None:
    rule = configured.VENDOR_REQUESTS
    for _ in range(rule.limit):
        assert backend.current().hit(rule, f"org:{api.cast.org.id}").allowed
    live_vendor.seen.clear()
    refused = ask(api, setting)
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= rule.window_s + 1
    assert live_vendor.seen.total() == 0
    assert api.refused("owner", "GET", DISCOVER) == (429, "rate_limited")
    assert api.send("other_owner", "GET", DISCOVER.replace("{org}", "{other}")).status_code == 200


def test_without_a_slot_the_answer_comes_at_once(api: Api, setting: Setting, live_vendor: FakeVendor) -> None:
    live_vendor.seen.clear()
    with vendor_requests.slot(api.cast.org.id), vendor_requests.slot(api.cast.org.id):
        for name in ("discover", "team", "service client"):
            refused = ASKED[name](api, setting)
            assert (refused.status_code, refused.json()["error"]) == (429, "rate_limited")
            assert int(refused["Retry-After"]) == refused.json()["retryAfter"] > 0
        assert ASKED["team's page"](api, setting).status_code == 422
        assert ASKED["discover on the page"](api, setting).status_code == 302
        assert live_vendor.seen.total() == 0
        other = api.send("other_owner", "GET", DISCOVER.replace("{org}", "{other}"))
        assert other.status_code == 200
    assert ASKED["discover"](api, setting).status_code == 200


def test_a_creation_that_got_no_slot_may_be_sent_again(api: Api, setting: Setting) -> None:
    path, key = "/orgs/{org}/credentials/fake", {"Idempotency-Key": "first-try-of-this-store"}
    with vendor_requests.slot(api.cast.org.id), vendor_requests.slot(api.cast.org.id):
        assert api.send("admin", "POST", path, {"apiKey": "right-key"}, headers=key).status_code == 429
    assert api.send("admin", "POST", path, {"apiKey": "right-key"}, headers=key).status_code == 201


@pytest.mark.django_db(transaction=True)
def test_no_database_connection_is_held_during_a_vendor_request(
    committed_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are fewer connections than threads. One in a transaction is kept."""
    closed: list[str] = []
    monkeypatch.setattr(connection, "close_if_unusable_or_obsolete", lambda: closed.append("given back"))
    with transaction.atomic(), vendor_requests.slot(committed_api.cast.org.id):
        assert closed == []
    with vendor_requests.slot(committed_api.cast.org.id):
        assert closed == ["given back"]
