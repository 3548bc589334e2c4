"""Pure: the three roles and their order."""

from __future__ import annotations

from enum import StrEnum

from gateway.lib.errors import NotFound


class Role(StrEnum):
    """What a person is in one organization. Spec: §1"""

    MEMBER = "member"
    ADMIN = "admin"
    OWNER = "owner"

    def at_least(self, other: Role) -> bool:
        """Whether this role may do what `other` may."""
        return _ORDER[self] >= _ORDER[other]

    @property
    def with_article(self) -> str:
        """As in "You are an admin now."."""
        return f"{'a' if self is Role.MEMBER else 'an'} {self.value}"


_ORDER = {Role.MEMBER: 0, Role.ADMIN: 1, Role.OWNER: 2}
ROLE_CHOICES = [(role.value, role.value.capitalize()) for role in Role]


def role_named(name: str) -> Role:
    """The role that a path or a form names.

    Raises: NotFound.
    """
    try:
        return Role(name)
    except ValueError:
        raise NotFound from None


def may_remove(actor: Role, target: Role, *, themselves: bool) -> bool:
    """Owners remove anybody, admins remove members, and an admin may leave. Spec: §4.4 · D45"""
    if actor is Role.OWNER:
        return True
    return actor is Role.ADMIN and (themselves or target is Role.MEMBER)
