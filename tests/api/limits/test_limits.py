"""The limits of §8 are exact: under parallel requests, over processes, whatever a caller changes about itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.conf import settings as configured
from django.db import connection

from gateway.coordination.rules import Rule
from gateway.web.gate import Gate
from tests.api.limits.burst import let_through
from tests.contracts.url_walk import api_addresses
from tests.factories.api import Api
from tests.factories.credentials import make_service_client

ROOT = Path(__file__).resolve().parents[3]

SPECIFIED = {
    # Beyond §8.
    ("POST", "api/orgs/<str:org_id>/access-requests"): (30, 3600),
    ("POST", "api/profile/tokens"): (10, 3600),
    ("POST", "api/orgs/<str:org_id>/vendor-connections/<str:vendor>"): (10, 60),
    ("POST", "api/profile/vendor-connections/<str:vendor>"): (10, 60),
    ("POST", "api/orgs/<str:org_id>/redeem-code"): (5, 900),
    ("POST", "api/orgs/<str:org_id>/service-clients/<str:client_id>/rotate-secret"): (10, 3600),
    ("POST", "api/orgs/<str:org_id>/invitations"): (10, 3600),
    ("POST", "api/orgs/<str:org_id>/invitations/people"): (10, 3600),
    ("POST", "api/orgs/<str:org_id>/invitations/<str:invitation_id>/send"): (10, 3600),
    ("POST", "api/orgs/<str:org_id>/credentials/<str:vendor>"): (10, 60),
    ("POST", "api/orgs/<str:org_id>/credentials/<str:vendor>/keys"): (10, 60),
    ("POST", "api/orgs/<str:org_id>/service-clients/<str:client_id>/agent-key"): (10, 3600),
}


def test_the_numbers_are_the_specifications_and_no_other_route_has_one() -> None:
    found = {
        (method, address.route): (gate.limit.limit, gate.limit.window_s)
        for address in api_addresses()
        for method, gate in getattr(address.view, "gates", {}).items()
        if gate.limit is not None
    }
    assert found == SPECIFIED
    assert (configured.INVITATION_ACCEPT.limit, configured.INVITATION_ACCEPT.window_s) == (5, 900)
    assert (configured.BACKSTOP.limit, configured.BACKSTOP.window_s) == (600, 60)
    assert configured.LARGE_BODIES.limit * configured.BODY_UNIT_BYTES == 256 * 1024 * 1024


def test_two_hundred_at_once_from_two_processes_pass_exactly_five(committed_api: Api) -> None:
    browser = committed_api.cast.client("owner")
    cookie = browser.cookies[configured.SESSION_COOKIE_NAME].value
    path = committed_api.url("/orgs/{org}/redeem-code")
    other = subprocess.Popen(
        [sys.executable, "-m", "tests.api.limits.burst", str(connection.settings_dict["NAME"]), cookie, path, "100"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdin is not None
    assert other.stdout is not None
    try:
        assert other.stdout.readline() == "ready\n"
        other.stdin.write("go\n")
        other.stdin.flush()
        here = let_through(cookie, path, 100)
        there = int(other.stdout.readline())
    finally:
        other.stdin.close()
        other.wait(60)
        other.stdout.close()
    assert here + there == 5


@pytest.mark.parametrize(
    "headers",
    [{"X-Forwarded-For": "203.0.113.9"}, {"X-Real-IP": "203.0.113.9"}, {"Forwarded": "for=203.0.113.9"}],
)
def test_another_address_or_spelling_buys_nothing(api: Api, headers: dict[str, str]) -> None:
    path = "/orgs/{org}/redeem-code"
    for number in range(5):
        api.send("owner", "POST", path, {}, REMOTE_ADDR=f"198.51.100.{number}")
    assert api.refused("owner", "POST", path, {}, headers=headers, REMOTE_ADDR="198.51.100.77")[0] == 429
    for other in ("/orgs/{org}/redeem-code/", "/orgs/{org}/REDEEM-CODE", "//orgs/{org}/redeem-code"):
        assert api.send("owner", "POST", other, {}).status_code == 404
    assert api.refused("owner", "POST", f"/orgs/{str(api.cast.org.id).upper()}/redeem-code", {}) == (404, "not_found")


LIMITED = [
    ("/api/orgs/{org}/redeem-code", 5),
    ("/api/orgs/{org}/invitations", 10),
    ("/api/orgs/{org}/credentials/acme", 10),
    ("/api/orgs/{org}/credentials/acme/keys", 10),
    ("/api/orgs/{org}/service-clients/{client}/agent-key", 10),
    ("/invite/{token}", 5),
]


@pytest.mark.parametrize(("path", "limit"), LIMITED, ids=[path for path, _ in LIMITED])
def test_no_limit_is_moved_by_what_a_caller_says_of_itself(api: Api, path: str, limit: int) -> None:
    """Other addresses, other spellings of the path, another session and another key: one window. Spec: D21"""
    client_id = make_service_client(api.cast.org).client_id
    exact = path.format(org=api.cast.org.id, client=client_id, token="x" * 43)
    statuses = []
    for number in range(limit + 1):
        for spelling in (f"{exact}/", exact.upper().replace("/API/", "/api/").replace("/INVITE/", "/Invite/")):
            headers = {"X-Forwarded-For": f"203.0.113.{number}"}
            api.cast.client("owner").post(spelling, "{}", content_type="application/json", headers=headers)
        answer = api.cast.client("owner").post(
            f"{exact}?attempt={number}",
            "{}",
            content_type="application/json",
            headers={"X-Forwarded-For": f"203.0.113.{number}, 198.51.100.{number}", "X-Real-IP": f"10.0.0.{number}"},
            REMOTE_ADDR=f"2001:db8::{number:x}",
        )
        statuses.append(answer.status_code)
    assert statuses[-1] == 429, statuses
    assert 429 not in statuses[:-1]


def test_everything_else_shares_the_backstop(api: Api, settings: LazySettings) -> None:
    settings.BACKSTOP = Rule("backstop-test", limit=5, window_s=60)
    assert api.send("owner", "GET", "/profile")["RateLimit"] == '"backstop-test";r=4;t=60'
    api.get("owner", "/orgs")
    # A refused request is counted too: ids cannot be tried without end.
    assert api.refused("owner", "GET", "/orgs/{other}") == (404, "not_found")
    assert api.refused("owner", "GET", "/orgs/{other}") == (404, "not_found")
    assert api.refused("owner", "POST", "/orgs/{org}/redeem-code", {})[0] == 400
    api.get("owner", "/orgs/{org}")
    assert api.refused("owner", "GET", "/profile") == (429, "rate_limited")
    assert api.refused("owner", "GET", "/orgs/{other}") == (429, "rate_limited")
    assert api.send("admin", "GET", "/profile").status_code == 200


def test_the_anonymous_share_their_address(api: Api, settings: LazySettings) -> None:
    settings.BACKSTOP = Rule("backstop-address", limit=2, window_s=60)
    households = ["2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:2:ffff::9"]
    statuses = [api.send("nobody", "GET", "/profile", REMOTE_ADDR=address).status_code for address in households]
    assert statuses == [401, 401, 429]
    assert api.send("nobody", "GET", "/profile", REMOTE_ADDR="2001:db8:1:3::1").status_code == 401


def test_a_gate_without_a_number_means_the_backstop() -> None:
    assert Gate().limit is None
