"""Rows 44 to 48: other organizations, roles, and invitations."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx

from gateway.lib import clock
from orgs.models import Invitation, Membership, Organization, User
from orgs.services.invitation_sealing import token_of
from orgs.services.invitations import create_invitation
from tests.attacks.refusals import refused
from tests.attacks.table import attack
from tests.attacks.things import things
from tests.attacks.world import World
from tests.contracts.test_routes import RANK, TABLE
from tests.factories.cast import make_people

OWN_IDS = ("user_id", "team_id", "client_id", "invitation_id", "key_id", "destination_id", "issuer_id", "request_id")


@attack(44, OWN_IDS)
def an_id_of_another_organization(world: World, name: str) -> None:
    """Its owner puts our ids below their own address, and our address before them."""
    ids = things(world)
    foreign = {**ids, "org_id": str(world.cast.other_org.id)}
    routes = [(method, path, row) for (method, path), row in TABLE.items() if f"{{{name}}}" in path]
    assert routes
    with world.watched():
        for method, path, row in routes:
            for known in (foreign, ids):
                answer = world.send(method, path.format(**known), who="other_owner", body=row.body)
                refused(answer, 404, "not_found")


@attack(44)
def the_organization_itself(world: World) -> None:
    ids = things(world)
    with world.watched():
        for (method, path), row in TABLE.items():
            if "{org_id}" in path:
                answer = world.send(method, path.format(**ids), who="other_owner", body=row.body)
                refused(answer, 404, "not_found")


@attack(45, {"a member": ("member", "admin"), "a member as owner": ("member", "owner"), "an admin": ("admin", "owner")})
def a_role_that_is_too_low(world: World, asked: tuple[str, str]) -> None:
    who, needed = asked
    ids = things(world)
    named = [(key, row) for key, row in TABLE.items() if row.role == needed]
    assert RANK[who] < RANK[needed]
    assert len(named) > 5
    with world.watched():
        for (method, path), row in named:
            body = {name: ids["org_id"] if value == "{org_id}" else value for name, value in row.body.items()}
            answer = world.send(method, (path + row.query).format(**ids), who=who, body=body)
            refused(answer, 403, "forbidden")


def member(world: World, who: str, tail: str = "") -> str:
    return f"{world.org}/members/{world.cast.user(who).id}{tail}"


@attack(46)
def an_admin_removes_an_admin_or_the_owner(world: World) -> None:
    Membership.objects.create(organization=world.cast.org, user=world.cast.user("stranger"), role="admin")
    with world.watched():
        for whom in ("stranger", "owner"):
            refused(world.send("DELETE", member(world, whom), who="admin"), 403, "forbidden")


@attack(46)
def the_last_owner_goes(world: World) -> None:
    with world.watched():
        refused(world.send("DELETE", member(world, "owner"), who="owner"), 409, "last_owner")
        refused(world.send("DELETE", f"{world.org}/membership", who="owner"), 409, "last_owner")


@attack(46)
def an_owner_changes_its_own_role(world: World) -> None:
    with world.watched():
        answer = world.send("PATCH", member(world, "owner", "/role"), who="owner", body={"role": "member"})
        refused(answer, 403, "cannot_change_own_role")


@attack(46, {"owner": "owner", "nothing": "", "a list": ["admin"], "capitals": "ADMIN", "none": None})
def a_role_that_cannot_be_given(world: World, role: object) -> None:
    with world.watched():
        answer = world.send("PATCH", member(world, "admin", "/role"), who="owner", body={"role": role})
        refused(answer, 400, "invalid")


FOREIGN = {
    "id": "0",
    "email": "root@example.com",
    "role": "owner",
    "is_staff": True,
    "is_superuser": True,
    "subscription": "active",
    "subscriptionStatus": "active",
    "createdAt": "2000-01-01T00:00:00Z",
}


@attack(47)
def fields_of_a_profile_that_are_not_ours(world: World) -> None:
    before = User.objects.values().get(pk=world.cast.user("member").pk)
    with world.watched():
        answer = world.send("PATCH", "/api/profile", who="member", body=FOREIGN)
        assert answer.status_code == 200
        assert answer.json()["email"] == before["email"]
    assert User.objects.values().get(pk=before["id"]) == before


@attack(47)
def fields_of_an_organization_that_are_not_ours(world: World) -> None:
    before = Organization.objects.values().get(pk=world.cast.org.pk)
    with world.watched("orgs.Organization", "audit.AdminAuditEntry"):
        answer = world.send("PATCH", world.org, who="owner", body={**FOREIGN, "name": "Acme 2"})
        assert answer.status_code == 200
    after = Organization.objects.values().get(pk=world.cast.org.pk)
    assert {name for name in before if before[name] != after[name]} == {"name"}


def invited(world: World, **options: Any) -> tuple[Invitation, str]:
    made = create_invitation(actor=world.cast.user("admin"), organization=world.cast.org, **options)
    return made, f"/invite/{token_of(made)}"


def accept(world: World, path: str, who: str = "stranger") -> httpx.Response:
    return world.send("POST", path, who=who, accept="application/json")


@attack(
    48,
    {
        "expired": ({"expires_at": clock.now() - timedelta(seconds=1)}, 410, "invitation_expired"),
        "used": ({"use_count": 1}, 410, "invitation_used"),
        "revoked": ({"revoked_at": clock.now()}, 404, "invitation_not_found"),
        "of another address": ({"email": "somebody@example.com"}, 403, "invitation_email_mismatch"),
    },
)
def an_invitation_that_is_over(world: World, asked: tuple[dict[str, Any], int, str]) -> None:
    made, path = invited(world)
    Invitation.objects.filter(pk=made.pk).update(**asked[0])
    with world.watched():
        refused(accept(world, path), *asked[1:])


@attack(48)
def an_invitation_of_nobody(world: World) -> None:
    with world.watched():
        refused(accept(world, f"/invite/{'x' * 43}"), 404, "invitation_not_found")


@attack(48)
def fifty_accept_at_once(world: World) -> None:
    made, path = invited(world)
    world.cast.people.update(make_people(*(f"person_{number}" for number in range(50))))
    asks = [
        world.request("POST", path, who=f"person_{number}", accept="application/json", address=f"10.80.0.{number + 1}")
        for number in range(50)
    ]
    answers = world.wire.at_once(*asks)
    for answer in answers:
        if answer.status_code != 200:
            refused(answer, 410, "invitation_used")
    with world.watched():
        assert [answer.status_code for answer in answers].count(200) == 1
        assert Membership.objects.filter(organization=world.cast.org).count() == 4
        assert Invitation.objects.get(pk=made.pk).use_count == 1


@attack(48)
def the_sixth_in_a_quarter_of_an_hour(world: World) -> None:
    _, path = invited(world)
    with world.watched():
        for number in range(5):
            refused(accept(world, f"/invite/{number:043}"), 404, "invitation_not_found")
        answer = accept(world, path)
        refused(answer, 429, "rate_limited")
        assert 0 < int(answer.headers["Retry-After"]) <= 900


@attack(48, ("GET", "HEAD"))
def a_link_that_is_fetched_in_advance(world: World, method: str) -> None:
    made, path = invited(world)
    with world.watched():
        for who in ("stranger", None):
            assert world.send(method, path, who=who, accept="text/html").status_code == 200
        assert Invitation.objects.get(pk=made.pk).use_count == 0
