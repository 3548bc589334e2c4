"""GET /api/orgs/:orgId/server-access and what changes it for members, teams and service clients."""

from __future__ import annotations

from typing import Any

import pytest

from credentials.credential_scope import CredentialScope
from oauth_ext.models import ServiceClientVendor
from oauth_ext.selectors import restricted_vendors
from orgs.models import ServerAccess, Team, TeamMembership
from tests.factories.api import Api
from tests.factories.credentials import make_service_client, make_setting

pytestmark = pytest.mark.usefixtures("vendors")
PATH = "/orgs/{org}/server-access"


def of(api: Api, who: str, vendor: str = "") -> str:
    path = f"/orgs/{{org}}/members/{api.cast.user(who).id}/server-access"
    return f"{path}/{vendor}" if vendor else path


@pytest.fixture
def team(api: Api) -> Team:
    team = Team.objects.create(organization=api.cast.org, name="Ops")
    TeamMembership.objects.create(team=team, membership=api.cast.user("member").memberships.get())
    return team


def test_a_vendor_is_added_once_and_removed(api: Api, epochs_to_bump: list[str]) -> None:
    user = api.cast.user("member")
    first = api.send("admin", "PUT", of(api, "member", "acme"))
    assert first.status_code == 200
    assert (first.json()["userId"], first.json()["vendor"]) == (str(user.id), "acme")
    assert api.send("admin", "PUT", of(api, "member", "acme")).json() == first.json()
    (listed,) = api.get("admin", PATH)
    assert listed == {
        "principalType": "user",
        "userId": str(user.id),
        "teamId": None,
        "vendor": "acme",
        "grantedBy": str(api.cast.user("admin").id),
        "grantedAt": first.json()["grantedAt"],
        "expiresAt": None,
    }
    for _ in range(2):
        assert api.send("admin", "DELETE", of(api, "member", "acme")).status_code == 204
    assert api.get("admin", PATH) == []
    assert api.events() == ["server_access.granted", "server_access.revoked"]
    assert epochs_to_bump == [f"subject:{user.id}"] * 2


def test_replacing_is_all_or_nothing(api: Api) -> None:
    api.send("admin", "PUT", of(api, "member", "acme"))
    answer = api.send("admin", "PUT", of(api, "member"), {"vendors": ["globex", "acme", "globex"]})
    assert answer.json() == {"userId": str(api.cast.user("member").id), "vendors": ["acme", "globex"]}
    assert api.faults("admin", "PUT", of(api, "member"), {"vendors": ["acme", "nowhere"]}) == {"vendors"}
    assert ServerAccess.objects.count() == 2
    assert api.send("admin", "PUT", of(api, "member"), {"vendors": []}).json()["vendors"] == []
    assert api.events() == ["server_access.granted", "server_access.replaced", "server_access.replaced"]


@pytest.mark.parametrize(
    "body", [{}, {"vendors": None}, {"vendors": "acme"}, {"vendors": {}}, {"vendors": ["a"] * 1001}]
)
def test_a_list_of_vendors_is_needed(api: Api, body: object) -> None:
    assert api.faults("admin", "PUT", of(api, "member"), body) == {"vendors"}


@pytest.mark.parametrize("value", [1, None, True, ["acme"]])
def test_each_vendor_is_text(api: Api, value: object) -> None:
    assert api.faults("admin", "PUT", of(api, "member"), {"vendors": ["acme", value]}) == {"vendors.1"}
    assert not ServerAccess.objects.exists()


def test_unknown_vendors_and_people_are_not_found(api: Api, team: Team) -> None:
    paths = [of(api, "member", "nowhere"), of(api, "other_owner", "acme"), of(api, "stranger", "acme")]
    paths += [f"/orgs/{{org}}/teams/{team.id}/server-access/nowhere", "/orgs/{org}/teams/no-id/server-access/acme"]
    for path in paths:
        assert api.refused("owner", "PUT", path) == (404, "not_found")
        assert api.refused("owner", "DELETE", path) == (404, "not_found")
    assert not ServerAccess.objects.exists()


def test_server_access_of_a_team_is_its_members(api: Api, team: Team, epochs_to_bump: list[str]) -> None:
    path = f"/orgs/{{org}}/teams/{team.id}/server-access/acme"
    first = api.send("admin", "PUT", path)
    assert (first.status_code, first.json()["teamId"], first.json()["vendor"]) == (200, str(team.id), "acme")
    assert api.send("admin", "PUT", path).json() == first.json()
    (listed,) = api.get("admin", PATH)
    assert (listed["principalType"], listed["userId"], listed["teamId"]) == ("team", None, str(team.id))
    assert f"subject:{api.cast.user('member').id}" in epochs_to_bump
    (own,) = api.get("member", of(api, "member"))
    given_at = first.json()["grantedAt"]
    expected = {"source": "team", "teamId": str(team.id), "grantedAt": given_at, "expiresAt": None}
    assert own == {"vendor": "acme", **expected}
    for _ in range(2):
        assert api.send("admin", "DELETE", path).status_code == 204
    assert api.get("member", of(api, "member")) == []


def test_every_reason_is_named(api: Api, team: Team) -> None:
    make_setting(api.cast).store()
    ServerAccess.objects.create(organization=api.cast.org, team=team, vendor="acme")
    api.send("admin", "PUT", of(api, "member", "acme"))
    api.send("owner", "PATCH", "/orgs/{org}/settings", {"defaultServerAccess": "all"})
    assert [each["source"] for each in api.get("member", of(api, "member"))] == ["default", "direct", "team"]
    assert api.get("admin", of(api, "admin")) == [
        {"vendor": "acme", "source": "role", "teamId": None, "grantedAt": None, "expiresAt": None}
    ]


def test_a_member_sees_their_own_access_only(api: Api) -> None:
    assert api.get("member", of(api, "member")) == []
    assert api.refused("member", "GET", of(api, "admin")) == (403, "forbidden")
    assert api.refused("member", "GET", of(api, "other_owner")) == (403, "forbidden")
    assert api.get("admin", of(api, "member")) == []
    assert api.refused("admin", "GET", of(api, "other_owner")) == (404, "not_found")


@pytest.mark.parametrize(("who", "status"), [("member", 403), ("other_owner", 404), ("nobody", 401)])
def test_who_may_not(api: Api, team: Team, who: str, status: int) -> None:
    calls: list[tuple[str, str, Any]] = [
        ("GET", PATH, None),
        ("PUT", of(api, "member", "acme"), None),
        ("DELETE", of(api, "member", "acme"), None),
        ("PUT", of(api, "member"), {"vendors": ["acme"]}),
        ("PUT", f"/orgs/{{org}}/teams/{team.id}/server-access/acme", None),
        ("DELETE", f"/orgs/{{org}}/teams/{team.id}/server-access/acme", None),
    ]
    assert {api.refused(who, method, path, body)[0] for method, path, body in calls} == {status}
    assert api.refused("other_owner", "PUT", f"/orgs/{{other}}/teams/{team.id}/server-access/acme")[0] == 404
    assert not ServerAccess.objects.exists()


def test_a_service_client_takes_a_list_too(api: Api, epochs_to_bump: list[str]) -> None:
    client = make_service_client(api.cast.org)
    path = f"/orgs/{{org}}/members/{client.client_id}/server-access"
    answer = api.send("admin", "PUT", f"/orgs/{{org}}/members/{client.id}/server-access/acme")
    assert (answer.status_code, answer.json()["userId"]) == (200, str(client.id))
    assert restricted_vendors(client.pk) == frozenset({"acme"})
    assert [each["principalType"] for each in api.get("admin", PATH)] == ["service"]
    assert [each["vendor"] for each in api.get("admin", path)] == ["acme"]
    assert api.send("admin", "PUT", path, {"vendors": ["globex", "acme"]}).json()["vendors"] == ["acme", "globex"]
    assert api.send("admin", "DELETE", f"{path}/acme").status_code == 204
    assert api.send("admin", "DELETE", f"{path}/acme").status_code == 204
    assert restricted_vendors(client.pk) == frozenset({"globex"})
    assert set(epochs_to_bump) == {f"subject:{client.subject}"}


def test_a_foreign_service_client_is_not_found(api: Api) -> None:
    client = make_service_client(api.cast.other_org)
    for name in (client.id, client.client_id):
        path = f"/orgs/{{org}}/members/{name}/server-access"
        assert api.refused("owner", "GET", path) == (404, "not_found")
        assert api.refused("owner", "PUT", path, {"vendors": ["acme"]}) == (404, "not_found")
        assert api.refused("owner", "PUT", f"{path}/acme") == (404, "not_found")
        assert api.refused("owner", "DELETE", f"{path}/acme") == (404, "not_found")
    assert not ServiceClientVendor.objects.exists()


def test_credentials_of_a_service_client_open_nothing_for_people(api: Api) -> None:
    make_setting(api.cast).store(CredentialScope.SERVICE_CLIENT)
    assert api.get("owner", of(api, "owner")) == []
