"""POST, DELETE credentials/:vendor and GET lists of the organization, of a team and of a service client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.conf import LazySettings

from audit.models import AdminAuditEntry
from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from tests.factories.api import Api
from tests.factories.credentials import SECRET, Setting, make_setting
from tests.factories.tenant import load_vendor
from tests.fakes.vendor import FakeVendor

ORG = "/orgs/{org}/credentials"
LEVELS = ["organization", "team", "service_client"]


@pytest.fixture
def setting(api: Api, live_vendor: FakeVendor) -> Setting:
    return make_setting(api.cast)


def path_of(setting: Setting, level: str, vendor: str = "fake") -> str:
    base = {
        "organization": ORG,
        "team": f"/orgs/{{org}}/teams/{setting.team.id}/credentials",
        "service_client": f"/orgs/{{org}}/service-clients/{setting.service_client.client_id}/credentials",
    }[level]
    return f"{base}/{vendor}" if vendor else base


@pytest.mark.parametrize("level", LEVELS)
def test_accepted_fields_are_stored_at_their_level(
    api: Api, setting: Setting, level: str, epochs_to_bump: list[str]
) -> None:
    answer = api.send("admin", "POST", path_of(setting, level), {"apiKey": "right-key"})
    assert answer.status_code == 201
    row = Credential.objects.get()
    assert answer.json() == {"id": str(row.id), "vendor": "fake", "validated": True}
    assert (row.scope, row.organization_id, row.validated_at is not None) == (level, api.cast.org.id, True)
    assert api.get("admin", path_of(setting, level, "")) == ["fake"]
    assert epochs_to_bump == [f"org:{api.cast.org.id}"]
    assert api.events() == ["credential.created"]
    assert "right-key" not in str(AdminAuditEntry.objects.get().__dict__)


@pytest.mark.parametrize("level", LEVELS)
def test_rejected_fields_are_not_stored(api: Api, setting: Setting, level: str) -> None:
    refusal = api.refused("admin", "POST", path_of(setting, level), {"apiKey": "wrong-key"})
    assert refusal == (422, "credential_rejected")
    assert not Credential.objects.exists()
    assert api.events() == []


@pytest.mark.parametrize("level", LEVELS)
def test_a_silent_vendor_is_stored_unconfirmed(api: Api, setting: Setting, level: str) -> None:
    load_vendor("http://127.0.0.1:9/mcp", slug="away")
    answer = api.send("admin", "POST", path_of(setting, level, "away"), {"apiKey": "any"})
    assert (answer.status_code, answer.json()["validated"]) == (201, False)


@pytest.mark.parametrize("level", LEVELS)
def test_our_own_address_is_refused_as_a_vendors(
    api: Api, setting: Setting, level: str, settings: LazySettings
) -> None:
    load_vendor(f"{settings.BASE_URL}/v1/mcp", slug="loop")
    refusal = api.refused("admin", "POST", path_of(setting, level, "loop"), {"apiKey": "any"})
    assert refusal == (400, "endpoint_not_allowed")
    assert not Credential.objects.exists()


@pytest.mark.parametrize("level", LEVELS)
def test_a_name_that_leads_inside_is_refused_and_not_taken_for_silence(
    api: Api, setting: Setting, level: str, settings: LazySettings
) -> None:
    settings.ALLOW_PRIVATE_ENDPOINTS = False
    load_vendor("https://localhost:9/mcp", slug="inside")
    refusal = api.refused("admin", "POST", path_of(setting, level, "inside"), {"apiKey": "any"})
    assert refusal == (400, "endpoint_not_allowed")
    assert not Credential.objects.exists()
    assert api.events() == []


def test_replacing_keeps_the_id(api: Api, setting: Setting) -> None:
    first = api.send("admin", "POST", f"{ORG}/fake", {"apiKey": "right-key"}).json()
    second = api.send("admin", "POST", f"{ORG}/fake", {"apiKey": " right-key "}).json()
    assert first["id"] == second["id"]
    assert Credential.objects.get().revision == 2
    assert api.events() == ["credential.created", "credential.replaced"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("body", "member"),
    [
        ({}, "apiKey"),
        ({"apiKey": ""}, "apiKey"),
        ({"apiKey": "a\r\nX-Evil: 1"}, "apiKey"),
        ({"apiKey": "a\x07"}, "apiKey"),
        ({"apiKey": {"nested": "object"}}, "apiKey"),
        ({"apiKey": 5}, "apiKey"),
        ({"apiKey": "x" * 8193}, "apiKey"),
        ({"apiKey": "right-key", "apikey": "typo"}, "apikey"),
        ({f"f{number}": "x" for number in range(33)}, "fields"),
    ],
)
def test_bad_fields_are_reported_by_name(
    api: Api, setting: Setting, level: str, body: dict[str, Any], member: str
) -> None:
    assert api.faults("admin", "POST", path_of(setting, level), body) == {member}
    assert not Credential.objects.exists()


def test_a_megabyte_is_too_large(api: Api, setting: Setting) -> None:
    body = {"apiKey": "x" * 1_000_000}
    assert api.refused("admin", "POST", f"{ORG}/fake", body) == (413, "body_too_large")
    assert api.refused("nobody", "POST", f"{ORG}/fake", body) == (413, "body_too_large")


@pytest.mark.parametrize("level", LEVELS)
def test_deleting_once(api: Api, setting: Setting, level: str) -> None:
    path = path_of(setting, level)
    api.send("admin", "POST", path, {"apiKey": "right-key"})
    assert api.send("admin", "DELETE", path).status_code == 204
    assert api.refused("admin", "DELETE", path) == (404, "not_found")
    assert api.get("admin", path_of(setting, level, "")) == []


def test_an_unknown_vendor(api: Api, setting: Setting) -> None:
    for level in LEVELS:
        for method, body in (("POST", {"apiKey": "x"}), ("DELETE", None)):
            refusal = api.refused("admin", method, path_of(setting, level, "nowhere"), body)
            assert refusal == (404, "not_found")


def test_foreign_teams_and_clients(api: Api, setting: Setting) -> None:
    for base in (
        f"/orgs/{{org}}/teams/{setting.foreign_team.id}/credentials",
        f"/orgs/{{org}}/service-clients/{setting.foreign_client.id}/credentials",
        f"/orgs/{{org}}/service-clients/{setting.foreign_client.client_id}/credentials",
        "/orgs/{org}/teams/no-id/credentials",
    ):
        assert api.refused("owner", "GET", base) == (404, "not_found")
        assert api.refused("owner", "POST", f"{base}/fake", {"apiKey": "right-key"}) == (404, "not_found")
        assert api.refused("owner", "DELETE", f"{base}/fake") == (404, "not_found")
    assert not Credential.objects.exists()


def test_every_member_sees_what_is_connected_and_nobody_what_is_in_it(api: Api, setting: Setting) -> None:
    setting.store_everywhere()
    setting.store(CredentialScope.ORGANIZATION, organization=api.cast.other_org)
    assert api.get("member", ORG) == ["acme"]
    assert api.refused("other_owner", "GET", ORG) == (404, "not_found")
    seen = [
        api.get("admin", ORG),
        api.get("admin", path_of(setting, "team", "")),
        api.get("admin", path_of(setting, "service_client", "")),
        api.get("admin", "/orgs/{org}/teams"),
        api.get("admin", "/orgs/{org}/service-clients"),
    ]
    assert SECRET not in json.dumps(seen)


@pytest.mark.parametrize(("who", "status"), [("member", 403), ("other_owner", 404), ("nobody", 401)])
def test_who_may_not(api: Api, setting: Setting, who: str, status: int) -> None:
    setting.store_everywhere()
    for level in LEVELS:
        assert api.refused(who, "POST", path_of(setting, level), {"apiKey": "right-key"})[0] == status
        assert api.refused(who, "DELETE", path_of(setting, level, "acme"))[0] == status
        if level != "organization":
            assert api.refused(who, "GET", path_of(setting, level, ""))[0] == status
    assert Credential.objects.count() == 4


@pytest.mark.usefixtures("lapsed")
def test_a_lapsed_plan_connects_nothing_and_still_disconnects(api: Api, setting: Setting) -> None:
    assert api.refused("admin", "POST", f"{ORG}/fake", {}) == (402, "subscription_required")
    setting.store()
    assert api.send("admin", "DELETE", f"{ORG}/acme").status_code == 204
    # Only the routes that say so need the plan.
    assert api.send("admin", "POST", path_of(setting, "team"), {"apiKey": "right-key"}).status_code == 201


def test_ten_a_minute(api: Api, setting: Setting) -> None:
    answers = [api.send("admin", "POST", f"{ORG}/fake", {}) for _ in range(11)]
    assert [answer.status_code for answer in answers] == [400] * 10 + [429]
    assert answers[10]["RateLimit-Policy"] == '"credential-store";q=10;w=60'
    assert not Credential.objects.exists()
