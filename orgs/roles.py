"""Pure: the three roles and their order."""

from __future__ import annotations

from enum import StrEnum

from gateway.lib.errors import NotFound
from gateway.lib.sentences import sentence


class Role(StrEnum):
    """A person's role in one organization. Spec: §1"""

    MEMBER = "member"
    ADMIN = "admin"
    OWNER = "owner"

    def at_least(self, other: Role) -> bool:
        return _ORDER[self] >= _ORDER[other]

    @property
    def with_article(self) -> str:
        return f"{'a' if self is Role.MEMBER else 'an'} {self.value}"


# Higher roles include the rights of lower ones.
_ORDER = {Role.MEMBER: 0, Role.ADMIN: 1, Role.OWNER: 2}
ROLE_CHOICES = [
    (Role.MEMBER.value, sentence("Member")),
    (Role.ADMIN.value, sentence("Admin")),
    (Role.OWNER.value, sentence("Owner")),
]
# As pages name a role inside a line.
ROLE_WORDS = {Role.MEMBER: sentence("member"), Role.ADMIN: sentence("admin"), Role.OWNER: sentence("owner")}


def role_named(name: str) -> Role:
    """Raises: NotFound."""
    try:
        return Role(name)
    except ValueError:
        raise NotFound from None


def may_remove(actor: Role, target: Role, *, themselves: bool) -> bool:
    """Owners remove any member, admins remove members, and an admin may leave. Spec: §4.4 · D45"""
    if actor is Role.OWNER:
        return True
    return actor is Role.ADMIN and (themselves or target is Role.MEMBER)


def may_end(role: Role, *, other_owners: bool) -> bool:
    """An organization keeps an owner who can sign in: the last one stays. Spec: D45"""
    return role is not Role.OWNER or other_owners


def may_read_server_access(actor: Role, *, themselves: bool) -> bool:
    """Members read their own server access, admins every member's. Spec: §4.5"""
    return themselves or actor.at_least(Role.ADMIN)


class TokenScope(StrEnum):
    """The rights of a management token beside its person's role. Spec: D168"""

    READ = "read"
    ADMIN = "admin"


TOKEN_SCOPE_CHOICES = [
    (TokenScope.READ.value, sentence("Read")),
    (TokenScope.ADMIN.value, sentence("Read and change")),
]
