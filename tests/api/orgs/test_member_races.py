"""Two owners who remove or demote each other at once: the organization keeps one."""

from __future__ import annotations

import pytest

from orgs.models import Membership
from orgs.roles import Role
from orgs.services.members import change_role, leave_organization, remove_member
from tests.factories.cast import Cast
from tests.factories.races import refusals_at_once


def second_owner(cast: Cast) -> None:
    Membership.objects.create(organization=cast.org, user=cast.user("stranger"), role=Role.OWNER.value)


def owners(cast: Cast) -> int:
    return Membership.objects.filter(organization=cast.org, role=Role.OWNER.value).count()


def test_two_owners_who_remove_each_other(committed_cast: Cast) -> None:
    second_owner(committed_cast)
    one, two = committed_cast.user("owner"), committed_cast.user("stranger")
    codes = refusals_at_once(
        lambda: remove_member(actor=one, organization=committed_cast.org, user_id=two.id),
        lambda: remove_member(actor=two, organization=committed_cast.org, user_id=one.id),
    )
    assert codes == ["", "not_found"]
    assert owners(committed_cast) == 1


def test_two_owners_who_demote_each_other(committed_cast: Cast) -> None:
    second_owner(committed_cast)
    one, two = committed_cast.user("owner"), committed_cast.user("stranger")
    codes = refusals_at_once(
        lambda: change_role(actor=one, organization=committed_cast.org, user_id=two.id, role=Role.MEMBER),
        lambda: change_role(actor=two, organization=committed_cast.org, user_id=one.id, role=Role.MEMBER),
    )
    assert codes == ["", "forbidden"]
    assert owners(committed_cast) == 1


@pytest.mark.parametrize("is_by_removal", [True, False])
def test_two_owners_who_leave(committed_cast: Cast, is_by_removal: bool) -> None:
    second_owner(committed_cast)

    def leave(who: str) -> None:
        person = committed_cast.user(who)
        if is_by_removal:
            remove_member(actor=person, organization=committed_cast.org, user_id=person.id)
        else:
            leave_organization(actor=person, organization=committed_cast.org)

    assert refusals_at_once(lambda: leave("owner"), lambda: leave("stranger")) == ["", "last_owner"]
    assert owners(committed_cast) == 1
