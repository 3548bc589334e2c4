"""One change of an organization's people at a time, so that "is this the last owner?" keeps its answer."""

from __future__ import annotations

from uuid import UUID

from audit.actor import Actor
from gateway.lib.errors import Forbidden, NotFound
from orgs.errors import DeactivatedPerson
from orgs.models import Membership, Organization, User
from orgs.roles import Role


def lock_organization(organization: Organization | UUID) -> Organization:
    """The organization, named by itself or its id, as it is now, held until the transaction ends.

    The weaker lock: rows that refer to the organization may still be inserted.
    Raises: NotFound when somebody deleted it meanwhile.
    """
    org_id = organization if isinstance(organization, UUID) else organization.pk
    locked = Organization.objects.select_for_update(no_key=True).filter(pk=org_id).first()
    if locked is None:
        raise NotFound
    return locked


def lock_for_change(organization: Organization | UUID, *, actor: User | Actor, role: Role) -> Organization:
    """The organization under its lock, in which `actor` is `role` or more at this moment.

    The gate looked before, perhaps seconds ago: whoever was demoted or removed meanwhile changes nothing any more.
    An `Actor` is no member but an operator or support staff, whom the command line or the admin let in.
    Raises: NotFound, Forbidden.
    """
    locked = lock_organization(organization)
    if isinstance(actor, User):
        current_membership(locked, actor, role=role)
    return locked


def lock_active_person(user: User) -> User:
    """The person as they are now, held until the transaction ends: deactivation comes before or after it.

    The organization, if there is one, is locked before.   Raises: DeactivatedPerson.
    """
    held = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if not held.is_active:
        raise DeactivatedPerson(held.email, [held.pk])
    return held


def current_membership(organization: Organization, user: User, *, role: Role) -> Membership:
    """The membership of an active person as it is under the lock: the gate looked before, and roles change.

    Raises: NotFound, Forbidden.
    """
    rows = Membership.objects.select_related("user").filter(user__is_active=True)
    found = rows.filter(organization=organization, user=user).first()
    if found is None:
        raise NotFound
    if not found.has_role(role):
        raise Forbidden
    return found
