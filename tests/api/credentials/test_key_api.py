"""GET, POST /api/orgs/:orgId/credentials/:vendor/keys; PUT, DELETE …/:keyId."""

from __future__ import annotations

import json
from typing import Any

import pytest

from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from tests.factories.api import Api
from tests.factories.credentials import SECRET, Setting, make_setting
from tests.factories.tenant import load_vendor
from tests.fakes.vendor import FakeVendor

PATH = "/orgs/{org}/credentials/fake/keys"
GOOD = {"apiKey": "right-key"}


@pytest.fixture
def setting(api: Api, live_vendor: FakeVendor) -> Setting:
    return make_setting(api.cast)


def create(api: Api, name: str = "Reporting", **members: Any) -> dict[str, Any]:
    answer = api.send("admin", "POST", PATH, {"name": name, "fields": GOOD, **members})
    assert answer.status_code == 201, answer.content
    made: dict[str, Any] = answer.json()
    return made


def test_a_key_is_made_bound_or_not(api: Api, setting: Setting) -> None:
    free = create(api, " Reporting ")
    bound = create(api, "Ops", teamId=str(setting.team.id))
    assert set(free) == {"id", "name", "teamId", "createdAt", "rejectedAt"}
    assert (free["name"], free["teamId"]) == ("Reporting", None)
    assert bound["teamId"] == str(setting.team.id)
    assert api.get("admin", PATH) == [bound, free]
    assert api.get("admin", "/orgs/{org}/credentials") == []
    assert api.events() == ["credential_key.created"] * 2


def test_names_and_teams_are_taken_once(api: Api, setting: Setting) -> None:
    create(api, teamId=str(setting.team.id))
    again = {"name": "Reporting", "fields": GOOD}
    assert api.refused("admin", "POST", PATH, again) == (409, "key_name_taken")
    taken = {"name": "Other", "fields": GOOD, "teamId": str(setting.team.id)}
    assert api.refused("admin", "POST", PATH, taken) == (409, "team_has_key")
    assert Credential.objects.count() == 1


@pytest.mark.parametrize("team", ["no-id", "00000000-0000-4000-8000-000000000000"])
def test_an_unknown_team(api: Api, setting: Setting, team: str) -> None:
    body = {"name": "Reporting", "fields": GOOD, "teamId": team}
    assert api.refused("admin", "POST", PATH, body) == (404, "not_found")
    assert api.refused("admin", "POST", PATH, {**body, "teamId": str(setting.foreign_team.id)}) == (404, "not_found")
    assert not Credential.objects.exists()


@pytest.mark.parametrize(
    ("body", "members"),
    [
        ({}, {"name", "fields"}),
        ({"name": "", "fields": GOOD}, {"name"}),
        ({"name": "a\x00b", "fields": GOOD}, set()),
        ({"name": 1, "fields": GOOD}, {"name"}),
        ({"name": "K", "fields": "x"}, {"fields"}),
        ({"name": "K", "fields": None}, {"fields"}),
        ({"name": "K", "fields": {}}, {"apiKey"}),
        ({"name": "K", "fields": {"apiKey": "a\nb"}}, {"apiKey"}),
        ({"name": "K", "fields": {"apiKey": {"x": 1}}}, {"apiKey"}),
        ({"name": "K", "fields": {**GOOD, "typo": "x"}}, {"typo"}),
        ({"name": "K", "fields": GOOD, "teamId": 5}, {"teamId"}),
    ],
)
def test_a_bad_body(api: Api, setting: Setting, body: dict[str, Any], members: set[str]) -> None:
    assert api.faults("admin", "POST", PATH, body) == members
    assert not Credential.objects.exists()


def test_the_vendor_is_asked(api: Api, setting: Setting) -> None:
    body = {"name": "K", "fields": {"apiKey": "wrong-key"}}
    assert api.refused("admin", "POST", PATH, body) == (422, "credential_rejected")
    assert not Credential.objects.exists()


def test_renaming_binding_and_unbinding(api: Api, setting: Setting, epochs_to_bump: list[str]) -> None:
    key = create(api)
    path = f"{PATH}/{key['id']}"
    bound = api.send("admin", "PUT", path, {"name": "Ops", "teamId": str(setting.team.id), "fields": {"apiKey": "x"}})
    assert (bound.status_code, bound.json()["name"], bound.json()["teamId"]) == (200, "Ops", str(setting.team.id))
    kept = api.send("admin", "PUT", path, {"name": "Ops 2"})
    assert kept.json()["teamId"] == str(setting.team.id)
    freed = api.send("admin", "PUT", path, {"name": "Ops 2", "teamId": None})
    assert freed.json()["teamId"] is None
    assert Credential.objects.get().revision == 1
    assert epochs_to_bump.count(f"org:{api.cast.org.id}") == 4
    assert api.events()[1:] == ["credential_key.updated"] * 3


def test_what_a_change_may_not_take(api: Api, setting: Setting) -> None:
    create(api, "Ops", teamId=str(setting.team.id))
    key = create(api)
    path = f"{PATH}/{key['id']}"
    assert api.refused("admin", "PUT", path, {"name": "Ops"}) == (409, "key_name_taken")
    taken = {"name": "Reporting", "teamId": str(setting.team.id)}
    assert api.refused("admin", "PUT", path, taken) == (409, "team_has_key")
    foreign = {"name": "Reporting", "teamId": str(setting.foreign_team.id)}
    assert api.refused("admin", "PUT", path, foreign) == (404, "not_found")
    assert api.faults("admin", "PUT", path, {"teamId": None}) == {"name"}
    assert api.get("admin", PATH)[1] == key


def test_deleting_once_and_only_keys(api: Api, setting: Setting) -> None:
    key, default = create(api), setting.store()
    assert api.refused("admin", "DELETE", f"{PATH}/{default.id}") == (404, "not_found")
    assert api.refused("admin", "DELETE", f"/orgs/{{org}}/credentials/acme/keys/{key['id']}") == (404, "not_found")
    assert api.send("admin", "DELETE", f"{PATH}/{key['id']}").status_code == 204
    assert api.refused("admin", "DELETE", f"{PATH}/{key['id']}") == (404, "not_found")
    assert Credential.objects.get() == default
    assert api.events()[-1] == "credential_key.deleted"


@pytest.mark.parametrize(("who", "status"), [("member", 403), ("other_owner", 404), ("nobody", 401)])
def test_who_may_not(api: Api, setting: Setting, who: str, status: int) -> None:
    key = create(api)
    assert api.refused(who, "GET", PATH)[0] == status
    assert api.refused(who, "POST", PATH, {"name": "K", "fields": GOOD})[0] == status
    assert api.refused(who, "PUT", f"{PATH}/{key['id']}", {"name": "K"})[0] == status
    assert api.refused(who, "DELETE", f"{PATH}/{key['id']}")[0] == status
    foreign = f"/orgs/{{other}}/credentials/fake/keys/{key['id']}"
    assert api.refused("other_owner", "PUT", foreign, {"name": "K"}) == (404, "not_found")
    assert api.refused("other_owner", "DELETE", foreign) == (404, "not_found")
    assert Credential.objects.get().name == "Reporting"


def test_nothing_of_a_key_is_read_back(api: Api, setting: Setting) -> None:
    setting.store(CredentialScope.NAMED_KEY)
    load_vendor("http://127.0.0.1:9/mcp", slug="acme")
    assert SECRET not in json.dumps(api.get("admin", "/orgs/{org}/credentials/acme/keys"))
    assert api.refused("admin", "GET", "/orgs/{org}/credentials/nowhere/keys") == (404, "not_found")


@pytest.mark.usefixtures("lapsed")
def test_a_lapsed_plan_makes_no_key_and_still_deletes(api: Api, setting: Setting) -> None:
    assert api.refused("admin", "POST", PATH, {}) == (402, "subscription_required")
    key = setting.store(CredentialScope.NAMED_KEY)
    path = f"/orgs/{{org}}/credentials/acme/keys/{key.id}"
    assert api.send("admin", "PUT", path, {"name": "Ops"}).status_code == 200
    assert api.send("admin", "DELETE", path).status_code == 204


def test_ten_a_minute_besides_those_of_the_organization(api: Api, setting: Setting) -> None:
    statuses = [api.send("admin", "POST", PATH, {}).status_code for _ in range(11)]
    assert statuses == [400] * 10 + [429]
    assert api.send("admin", "POST", "/orgs/{org}/credentials/fake", {}).status_code == 400
