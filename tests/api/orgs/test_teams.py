"""GET, POST /api/orgs/:orgId/teams; PATCH, DELETE …/:teamId; PUT, DELETE …/:teamId/members/:userId."""

from __future__ import annotations

from typing import Any

import pytest

from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from orgs.models import Membership, ServerAccess, Team, TeamMembership
from tests.factories.api import Api
from tests.factories.credentials import make_setting

PATH = "/orgs/{org}/teams"


def create(api: Api, name: str = "Ops") -> str:
    answer = api.send("admin", "POST", PATH, {"name": name})
    assert answer.status_code == 201, answer.content
    made: str = answer.json()["id"]
    return made


def test_a_team_begins_empty(api: Api) -> None:
    answer = api.send("admin", "POST", PATH, {"name": " Ops ", "memberCount": 9, "id": "x"})
    assert answer.status_code == 201
    made = answer.json()
    assert (made["name"], made["memberCount"], made["vendors"]) == ("Ops", 0, [])
    assert api.get("owner", PATH) == [made]
    assert api.get("other_owner", "/orgs/{other}/teams") == []
    assert api.events() == ["team.created"]


def test_a_name_is_taken_once_per_organization(api: Api) -> None:
    first, second = create(api), create(api, "Dev")
    assert api.refused("admin", "POST", PATH, {"name": "Ops "}) == (409, "team_name_taken")
    assert api.refused("admin", "PATCH", f"{PATH}/{second}", {"name": "Ops"}) == (409, "team_name_taken")
    assert api.send("admin", "PATCH", f"{PATH}/{first}", {"name": "Ops"}).status_code == 200
    assert api.send("other_owner", "POST", "/orgs/{other}/teams", {"name": "Ops"}).status_code == 201


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": 1}, {"name": "x" * 101}, {"name": "a\u202eb"}])
def test_a_bad_name_is_refused(api: Api, body: object) -> None:
    team = create(api)
    assert api.faults("admin", "POST", PATH, body) == {"name"}
    assert api.faults("admin", "PATCH", f"{PATH}/{team}", body) == {"name"}
    assert Team.objects.get().name == "Ops"


def test_renaming(api: Api, epochs_to_bump: list[str]) -> None:
    team = create(api)
    answer = api.send("admin", "PATCH", f"{PATH}/{team}", {"name": "Night shift"})
    assert (answer.status_code, answer.json()["name"], answer.json()["id"]) == (200, "Night shift", team)
    assert api.events() == ["team.created", "team.renamed"]
    assert f"org:{api.cast.org.id}" in epochs_to_bump


@pytest.mark.usefixtures("lapsed")
def test_a_lapsed_plan_makes_no_team_and_loses_none(api: Api) -> None:
    assert api.refused("admin", "POST", PATH, {}) == (402, "subscription_required")
    team = Team.objects.create(organization=api.cast.org, name="Ops")
    assert api.send("admin", "PATCH", f"{PATH}/{team.id}", {"name": "Dev"}).status_code == 200
    assert api.send("owner", "DELETE", f"{PATH}/{team.id}").status_code == 204


def test_deleting_a_team_takes_its_credentials_and_frees_its_keys(api: Api) -> None:
    setting = make_setting(api.cast)
    own = setting.store(CredentialScope.TEAM)
    key = setting.store(CredentialScope.NAMED_KEY, team=setting.team)
    default = setting.store()
    member = Membership.objects.get(user=api.cast.user("member"))
    TeamMembership.objects.create(team=setting.team, membership=member)
    ServerAccess.objects.create(organization=api.cast.org, team=setting.team, vendor="acme")
    found = {each["name"]: each for each in api.get("admin", PATH)}["Night shift"]
    assert (found["memberCount"], found["vendors"]) == (1, ["acme"])
    assert api.refused("admin", "DELETE", f"{PATH}/{setting.team.id}") == (403, "forbidden")
    assert api.send("owner", "DELETE", f"{PATH}/{setting.team.id}").status_code == 204
    assert set(Credential.objects.values_list("pk", flat=True)) == {key.pk, default.pk} - {own.pk}
    key.refresh_from_db()
    assert key.team_id is None
    assert not ServerAccess.objects.exists()
    assert Membership.objects.filter(pk=member.pk).exists()
    assert api.refused("owner", "DELETE", f"{PATH}/{setting.team.id}") == (404, "not_found")


def test_members_come_and_go_as_often_as_asked(api: Api, epochs_to_bump: list[str]) -> None:
    team, user = create(api), api.cast.user("member")
    path = f"{PATH}/{team}/members/{user.id}"
    for _ in range(2):
        answer = api.send("admin", "PUT", path)
        assert (answer.status_code, answer.json()) == (200, {"teamId": team, "userId": str(user.id)})
    assert api.get("admin", PATH)[0]["memberCount"] == 1
    for _ in range(2):
        assert api.send("admin", "DELETE", path).status_code == 204
    assert api.get("admin", PATH)[0]["memberCount"] == 0
    assert api.events() == ["team.created", "team.member_added", "team.member_removed"]
    assert epochs_to_bump.count(f"subject:{user.id}") == 2


def test_strangers_do_not_join(api: Api) -> None:
    team = create(api)
    for who in ("other_owner", "stranger"):
        path = f"{PATH}/{team}/members/{api.cast.user(who).id}"
        assert api.refused("admin", "PUT", path) == (404, "not_found")
    assert not TeamMembership.objects.exists()


@pytest.mark.parametrize(("who", "status"), [("member", 403), ("other_owner", 404), ("nobody", 401)])
def test_who_may_not(api: Api, who: str, status: int) -> None:
    team, user = create(api), api.cast.user("member")
    calls: list[tuple[str, str, Any]] = [
        ("GET", PATH, None),
        ("POST", PATH, {"name": "X"}),
        ("PATCH", f"{PATH}/{team}", {"name": "X"}),
        ("DELETE", f"{PATH}/{team}", None),
        ("PUT", f"{PATH}/{team}/members/{user.id}", None),
        ("DELETE", f"{PATH}/{team}/members/{user.id}", None),
    ]
    assert {api.refused(who, method, path, body)[0] for method, path, body in calls} == {status}
    foreign = f"/orgs/{{other}}/teams/{team}"
    for method, path, body in (
        ("PATCH", foreign, {"name": "X"}),
        ("DELETE", foreign, None),
        ("PUT", f"{foreign}/members/{api.cast.user('other_owner').id}", None),
    ):
        assert api.refused("other_owner", method, path, body) == (404, "not_found")
    assert list(Team.objects.values_list("name", flat=True)) == ["Ops"]
