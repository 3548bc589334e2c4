"""The rights of a role over memberships and over members' server access."""

from __future__ import annotations

import pytest

from orgs.roles import Role, may_end, may_read_server_access, may_remove


@pytest.mark.parametrize(
    ("role", "other_owners", "expected"),
    [
        (Role.OWNER, True, True),
        (Role.OWNER, False, False),
        (Role.ADMIN, False, True),
        (Role.MEMBER, False, True),
    ],
)
def test_only_the_last_owner_stays(role: Role, other_owners: bool, expected: bool) -> None:
    assert may_end(role, other_owners=other_owners) is expected


@pytest.mark.parametrize(
    ("actor", "themselves", "expected"),
    [
        (Role.MEMBER, True, True),
        (Role.MEMBER, False, False),
        (Role.ADMIN, False, True),
        (Role.OWNER, False, True),
    ],
)
def test_members_read_their_own_access_and_admins_everyones(actor: Role, themselves: bool, expected: bool) -> None:
    assert may_read_server_access(actor, themselves=themselves) is expected


@pytest.mark.parametrize(
    ("actor", "target", "themselves", "expected"),
    [
        (Role.OWNER, Role.OWNER, False, True),
        (Role.ADMIN, Role.MEMBER, False, True),
        (Role.ADMIN, Role.ADMIN, False, False),
        (Role.ADMIN, Role.ADMIN, True, True),
        (Role.MEMBER, Role.MEMBER, True, False),
    ],
)
def test_admins_remove_members_only(actor: Role, target: Role, themselves: bool, expected: bool) -> None:
    assert may_remove(actor, target, themselves=themselves) is expected
