"""An owner makes another member owner and steps down in one step; there always is an owner. Spec: D154"""

from __future__ import annotations

import uuid

import pytest

from audit.models import AdminAuditEntry
from orgs.errors import LastOwner
from orgs.models import Membership, User
from orgs.roles import Role
from orgs.services.members import change_role, remove_member
from orgs.services.ownership import step_down, transfer_ownership
from tests.api.orgs.test_member_races import owners, second_owner
from tests.factories.api import Api
from tests.factories.cast import Cast
from tests.factories.races import refusals_at_once

OWN = "/orgs/{org}/ownership"


def to(api: Api, who: str) -> str:
    return named(api.cast.user(who).id)


def named(user_id: object) -> str:
    return f"/orgs/{{org}}/members/{user_id}/ownership"


def roles(cast: Cast) -> dict[str, str]:
    rows = Membership.objects.filter(organization=cast.org).select_related("user")
    return {row.user.email.partition("@")[0]: row.role for row in rows}


@pytest.mark.parametrize(
    ("more", "becomes"),
    [({}, "admin"), ({"stepDownTo": "admin"}, "admin"), ({"stepDownTo": "member"}, "member")],
)
def test_a_member_becomes_owner_and_the_owner_steps_down(
    api: Api, more: dict[str, str], becomes: str, epochs_to_bump: list[str]
) -> None:
    answer = api.send("owner", "PUT", to(api, "member"), more)
    assert (answer.status_code, answer.json()["role"]) == (200, "owner")
    assert answer.json()["userId"] == str(api.cast.user("member").id)
    assert roles(api.cast) == {"owner": becomes, "admin": "admin", "member": "owner"}
    rows = AdminAuditEntry.objects.filter(event_type="member.role_changed").order_by("timestamp", "id")
    changes = [(row.target_label, row.metadata["was"], row.metadata["role"], row.actor_label) for row in rows]
    assert changes == [("Member", "member", "owner", "Owner"), ("Owner", "owner", becomes, "Owner")]
    assert set(epochs_to_bump) == {f"subject:{api.cast.user(who).id}" for who in ("owner", "member")}
    assert api.refused("owner", "PUT", to(api, "admin"), {})[0] == 403, "it is no longer theirs"
    assert api.send("member", "PUT", to(api, "owner"), {}).status_code == 200


@pytest.mark.parametrize(("who", "status"), [("admin", 403), ("member", 403), ("other_owner", 404), ("stranger", 404)])
def test_only_an_owner_may(api: Api, who: str, status: int) -> None:
    assert api.refused(who, "PUT", to(api, "member"), {})[0] == status
    assert roles(api.cast) == {"owner": "owner", "admin": "admin", "member": "member"}


def test_what_is_refused_changes_nothing(api: Api) -> None:
    for path, refusal in (
        (to(api, "other_owner"), (404, "not_found")),
        (to(api, "stranger"), (404, "not_found")),
        (named(uuid.uuid4()), (404, "not_found")),
        (named("nobody"), (404, "not_found")),
        (to(api, "owner"), (403, "cannot_change_own_role")),
    ):
        assert api.refused("owner", "PUT", path, {}) == refusal
    for step_down_to in ("x", "", 7, None):
        assert api.faults("owner", "PUT", to(api, "member"), {"stepDownTo": step_down_to}) == {"stepDownTo"}
    User.objects.filter(pk=api.cast.user("member").pk).update(is_active=False)
    assert api.refused("owner", "PUT", to(api, "member"), {}) == (409, "member_deactivated")
    assert roles(api.cast) == {"owner": "owner", "admin": "admin", "member": "member"}
    assert not AdminAuditEntry.objects.exists()


def test_to_somebody_who_is_owner_already_it_is_stepping_down(api: Api) -> None:
    second_owner(api.cast)
    assert api.send("owner", "PUT", to(api, "stranger"), {}).status_code == 200
    assert roles(api.cast) == {"owner": "admin", "admin": "admin", "member": "member", "stranger": "owner"}
    assert [row.target_label for row in AdminAuditEntry.objects.all()] == ["Owner"]


def test_a_second_owner_beside_the_first(api: Api, epochs_to_bump: list[str]) -> None:
    answer = api.send("owner", "PUT", to(api, "member"), {"stepDownTo": "owner"})
    assert (answer.status_code, answer.json()["role"]) == (200, "owner")
    assert roles(api.cast) == {"owner": "owner", "admin": "admin", "member": "owner"}
    assert epochs_to_bump == [f"subject:{api.cast.user('member').id}"]
    (row,) = AdminAuditEntry.objects.all()
    assert (row.target_label, row.metadata) == ("Member", {"was": "member", "role": "owner", "ownership": "shared"})
    assert api.send("owner", "PUT", to(api, "member"), {"stepDownTo": "owner"}).status_code == 200
    assert AdminAuditEntry.objects.count() == 1, "a second owner is made once"


def test_an_owner_steps_down_while_another_stays(api: Api, epochs_to_bump: list[str]) -> None:
    assert api.refused("owner", "DELETE", OWN) == (409, "last_owner")
    second_owner(api.cast)
    epochs_to_bump.clear()
    assert api.send("owner", "DELETE", OWN).status_code == 204
    assert roles(api.cast) == {"owner": "admin", "admin": "admin", "member": "member", "stranger": "owner"}
    assert epochs_to_bump == [f"subject:{api.cast.user('owner').id}"]
    (row,) = AdminAuditEntry.objects.all()
    assert row.metadata == {"was": "owner", "role": "admin", "ownership": "given_up"}
    assert api.refused("owner", "DELETE", OWN)[0] == 403
    assert api.refused("stranger", "DELETE", OWN) == (409, "last_owner")


@pytest.mark.parametrize(("who", "status"), [("admin", 403), ("member", 403), ("other_owner", 404)])
def test_only_owners_step_down(api: Api, who: str, status: int) -> None:
    second_owner(api.cast)
    assert api.refused(who, "DELETE", OWN)[0] == status
    assert owners(api.cast) == 2


def test_a_deactivated_owner_does_not_count(cast: Cast) -> None:
    second_owner(cast)
    User.objects.filter(pk=cast.user("stranger").pk).update(is_active=False)
    with pytest.raises(LastOwner, match="Make someone else an owner first"):
        step_down(actor=cast.user("owner"), organization=cast.org)
    with pytest.raises(ValueError, match="admin or member"):
        step_down(actor=cast.user("owner"), organization=cast.org, to=Role.OWNER)


def test_of_fifty_steps_down_of_two_owners_one_counts(committed_cast: Cast) -> None:
    second_owner(committed_cast)
    org, one, two = committed_cast.org, committed_cast.user("owner"), committed_cast.user("stranger")
    codes = refusals_at_once(
        *[lambda: step_down(actor=one, organization=org)] * 25,
        *[lambda: step_down(actor=two, organization=org)] * 25,
    )
    assert codes == ["", *["forbidden"] * 24, *["last_owner"] * 25]
    assert owners(committed_cast) == 1
    assert AdminAuditEntry.objects.filter(event_type="member.role_changed").count() == 1


def test_two_owners_who_step_down_at_once_leave_one(committed_cast: Cast) -> None:
    second_owner(committed_cast)
    org, one, two = committed_cast.org, committed_cast.user("owner"), committed_cast.user("stranger")
    codes = refusals_at_once(
        lambda: transfer_ownership(actor=one, organization=org, user_id=two.id),
        lambda: transfer_ownership(actor=two, organization=org, user_id=one.id),
    )
    assert codes == ["", ""], "the second one makes the first an owner again"
    assert owners(committed_cast) == 1


def test_two_owners_who_step_down_for_a_third_leave_the_third(committed_cast: Cast) -> None:
    second_owner(committed_cast)
    org, heir = committed_cast.org, committed_cast.user("member")
    one, two = committed_cast.user("owner"), committed_cast.user("stranger")
    codes = refusals_at_once(
        *[lambda: transfer_ownership(actor=one, organization=org, user_id=heir.id)] * 5,
        *[lambda: transfer_ownership(actor=two, organization=org, user_id=heir.id)] * 5,
    )
    assert codes == ["", "", *["forbidden"] * 8]
    assert roles(committed_cast)["member"] == "owner"
    assert owners(committed_cast) == 1


def test_an_heir_who_is_removed_or_demoted_meanwhile(committed_cast: Cast) -> None:
    second_owner(committed_cast)
    org, heir = committed_cast.org, committed_cast.user("member")
    one, two = committed_cast.user("owner"), committed_cast.user("stranger")
    codes = refusals_at_once(
        lambda: transfer_ownership(actor=one, organization=org, user_id=heir.id),
        lambda: remove_member(actor=two, organization=org, user_id=heir.id),
        lambda: change_role(actor=two, organization=org, user_id=one.id, role=Role.MEMBER),
    )
    assert set(codes) <= {"", "not_found", "forbidden"}
    assert owners(committed_cast) >= 1
