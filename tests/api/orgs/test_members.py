"""GET /api/orgs/:orgId/members; DELETE …/:userId; PATCH …/:userId/role; DELETE /api/orgs/:orgId/membership."""

from __future__ import annotations

from typing import Any

import pytest

from audit.models import AdminAuditEntry
from gateway.lib.errors import NotFound
from oauth_ext.models import Client, TokenFamily
from orgs.models import Membership, ServerAccess, Team, TeamMembership
from orgs.services.members import leave_organization
from tests.factories.api import Api


def member_path(api: Api, who: str, tail: str = "") -> str:
    return f"/orgs/{{org}}/members/{api.cast.user(who).id}{tail}"


def roles(api: Api) -> dict[str, str]:
    return {each["name"]: each["role"] for each in api.get("owner", "/orgs/{org}/members")}


def test_every_member_sees_all_of_them_earliest_first(api: Api) -> None:
    found = api.get("member", "/orgs/{org}/members")
    assert [each["role"] for each in found] == ["owner", "admin", "member"]
    assert set(found[0]) == {"id", "userId", "email", "name", "role", "joinedAt"}
    assert found[0]["id"] == found[0]["userId"] == str(api.cast.user("owner").id)
    assert "other_owner" not in str(found)
    assert api.refused("other_owner", "GET", "/orgs/{org}/members") == (404, "not_found")


@pytest.mark.parametrize(
    ("who", "whom", "expected"),
    [
        ("owner", "admin", 204),
        ("owner", "member", 204),
        ("admin", "member", 204),
        ("admin", "admin", 204),
        ("admin", "owner", (403, "forbidden")),
        ("member", "member", (403, "forbidden")),
        ("owner", "owner", (409, "last_owner")),
        ("owner", "other_owner", (404, "not_found")),
        ("other_owner", "member", (404, "not_found")),
    ],
)
def test_who_removes_whom(api: Api, who: str, whom: str, expected: Any) -> None:
    path = member_path(api, whom)
    if expected == 204:
        assert api.send(who, "DELETE", path).status_code == 204
        assert not Membership.objects.filter(organization=api.cast.org, user=api.cast.user(whom)).exists()
        assert api.events() == ["member.removed"]
        survivor = "admin" if whom == "owner" else "owner"
        assert api.refused(survivor, "DELETE", path) == (404, "not_found")
    else:
        assert api.refused(who, "DELETE", path) == expected
        assert Membership.objects.count() == 4
        assert api.events() == []


def test_an_admin_removes_no_other_admin_and_an_owner_leaves_when_another_stays(api: Api) -> None:
    stranger = api.cast.user("stranger")
    row = Membership.objects.create(organization=api.cast.org, user=stranger, role="admin")
    assert api.refused("admin", "DELETE", member_path(api, "stranger")) == (403, "forbidden")
    Membership.objects.filter(pk=row.pk).update(role="owner")
    assert api.send("owner", "DELETE", member_path(api, "owner")).status_code == 204
    assert api.refused("owner", "GET", "/orgs/{org}") == (404, "not_found")


MEMBERSHIP = "/orgs/{org}/membership"


@pytest.mark.parametrize("who", ["member", "admin"])
def test_who_leaves(api: Api, epochs_to_bump: list[str], who: str) -> None:
    user = api.cast.user(who)
    Membership.objects.create(organization=api.cast.other_org, user=user)
    assert api.send(who, "DELETE", MEMBERSHIP).status_code == 204
    assert list(Membership.objects.filter(user=user).values_list("organization_id", flat=True)) == [
        api.cast.other_org.id
    ]
    assert api.events() == ["member.removed"]
    left = AdminAuditEntry.objects.get()
    assert (left.org_id, left.actor_id, left.target_id) == (api.cast.org.id, str(user.id), str(user.id))
    assert f"subject:{user.id}" in epochs_to_bump
    assert api.refused(who, "DELETE", MEMBERSHIP) == (404, "not_found")
    assert api.refused(who, "GET", "/orgs/{org}") == (404, "not_found")


@pytest.mark.parametrize(("who", "refusal"), [("other_owner", (404, "not_found")), ("stranger", (404, "not_found"))])
def test_who_has_nothing_to_leave(api: Api, who: str, refusal: tuple[int, str]) -> None:
    assert api.refused(who, "DELETE", MEMBERSHIP) == refusal
    with pytest.raises(NotFound):
        leave_organization(actor=api.cast.user(who), organization=api.cast.org)
    assert Membership.objects.count() == 4
    assert api.events() == []


@pytest.mark.parametrize("path", [MEMBERSHIP, "/orgs/{org}/members/{own}"])
def test_the_only_owner_stays_and_learns_what_to_do(api: Api, path: str) -> None:
    path = path.replace("{own}", str(api.cast.user("owner").id))
    answer = api.send("owner", "DELETE", path)
    assert (answer.status_code, answer.json()["error"]) == (409, "last_owner")
    said = answer.json()["message"]
    assert said.startswith("You’re the only owner")
    assert "delete the organization" in said
    assert "add_member" not in said, "a command is nothing that an owner can run"
    assert Membership.objects.count() == 4
    assert api.events() == []
    Membership.objects.create(organization=api.cast.org, user=api.cast.user("stranger"), role="owner")
    assert api.send("owner", "DELETE", path).status_code == 204


def test_what_was_given_in_the_membership_goes_with_it(api: Api, epochs_to_bump: list[str]) -> None:
    user = api.cast.user("member")
    row = Membership.objects.get(user=user)
    team = Team.objects.create(organization=api.cast.org, name="Ops")
    TeamMembership.objects.create(team=team, membership=row)
    ServerAccess.objects.create(organization=api.cast.org, membership=row, vendor="acme")
    app = Client.objects.create(client_id="mcpc_1", client_type="public", authorization_grant_type="authorization-code")
    for organization in (api.cast.org, api.cast.other_org):
        TokenFamily.objects.create(
            client=app, user=user, organization=organization, scope="mcp", expires_at="2100-01-01T00:00:00Z"
        )
    assert api.send("admin", "DELETE", member_path(api, "member")).status_code == 204
    assert not TeamMembership.objects.exists()
    assert not ServerAccess.objects.exists()
    assert TokenFamily.objects.get().organization_id == api.cast.other_org.id
    assert f"subject:{user.id}" in epochs_to_bump


def test_an_owner_changes_roles(api: Api, epochs_to_bump: list[str]) -> None:
    answer = api.send("owner", "PATCH", member_path(api, "member", "/role"), {"role": "admin"})
    assert (answer.status_code, answer.json()["role"], answer.json()["name"]) == (200, "admin", "Member")
    assert api.events() == ["member.role_changed"]
    assert f"subject:{api.cast.user('member').id}" in epochs_to_bump
    assert roles(api)["Member"] == "admin"


def test_an_owner_demotes_another_owner_and_nobody_themselves(api: Api) -> None:
    Membership.objects.create(organization=api.cast.org, user=api.cast.user("stranger"), role="owner")
    assert api.send("stranger", "PATCH", member_path(api, "owner", "/role"), {"role": "member"}).status_code == 200
    own = member_path(api, "stranger", "/role")
    assert api.refused("stranger", "PATCH", own, {"role": "member"}) == (403, "cannot_change_own_role")
    assert roles_of(api, "stranger") == "owner"


def roles_of(api: Api, who: str) -> str:
    return Membership.objects.get(organization=api.cast.org, user=api.cast.user(who)).role


@pytest.mark.parametrize("body", [{"role": "owner"}, {"role": "root"}, {"role": None}, {"role": 1}, {}])
def test_another_role_is_refused(api: Api, body: object) -> None:
    assert api.faults("owner", "PATCH", member_path(api, "member", "/role"), body) == {"role"}
    assert roles_of(api, "member") == "member"


@pytest.mark.parametrize(
    ("who", "whom", "refusal"),
    [
        ("admin", "member", (403, "forbidden")),
        ("member", "member", (403, "forbidden")),
        ("other_owner", "member", (404, "not_found")),
        ("owner", "other_owner", (404, "not_found")),
    ],
)
def test_who_may_not_change_a_role(api: Api, who: str, whom: str, refusal: tuple[int, str]) -> None:
    assert api.refused(who, "PATCH", member_path(api, whom, "/role"), {"role": "admin"}) == refusal
    assert roles_of(api, "member") == "member"
