"""Row locks that put an organization's changes in turn: members, server access, credentials."""

from __future__ import annotations

from uuid import UUID

from audit.actor import Actor
from gateway.lib.errors import Forbidden
from gateway.lib.rows import required_row
from orgs.errors import DeactivatedPerson
from orgs.models import Membership, Organization, User
from orgs.roles import Role


def lock_organization(organization: Organization | UUID) -> Organization:
    """The current row, locked until the transaction ends. Raises: NotFound if it was deleted meanwhile."""
    # FOR NO KEY UPDATE: rows that refer to the organization may still be inserted.
    org_id = organization if isinstance(organization, UUID) else organization.pk
    return required_row(Organization.objects.select_for_update(no_key=True).filter(pk=org_id))


def lock_for_change(organization: Organization | UUID, *, actor: User | Actor, role: Role) -> Organization:
    """Lock the organization; `actor` must have `role` under the lock. Raises: NotFound, Forbidden.

    An `Actor` is an operator or support staff: the command line or the admin has authorized it.
    """
    # The gate checked the role before the lock; the actor may have been demoted or removed since.
    locked = lock_organization(organization)
    if isinstance(actor, User):
        current_membership(locked, actor, role=role)
    return locked


def lock_active_person(user: User) -> User:
    """The current row, locked. The organization, if any, is locked before. Raises: DeactivatedPerson."""
    # Deactivation waits for the lock, and therefore comes before or after the change.
    held = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if not held.is_active:
        raise DeactivatedPerson(held.email, [held.pk])
    return held


def current_membership(organization: Organization, user: User, *, role: Role) -> Membership:
    """An active person's membership under the organization's lock. Raises: NotFound, Forbidden."""
    rows = Membership.objects.select_related("user").filter(user__is_active=True)
    found = required_row(rows.filter(organization=organization, user=user))
    if not found.has_role(role):
        raise Forbidden
    return found
