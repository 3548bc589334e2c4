"""One change of an organization's people at a time, so that "is this the last owner?" keeps its answer."""

from __future__ import annotations

from gateway.lib.errors import Forbidden, NotFound
from orgs.models import Membership, Organization, User
from orgs.roles import Role


def lock_organization(organization: Organization) -> Organization:
    """The organization as it is now, held until the transaction ends.

    The weaker lock: rows that refer to the organization may still be inserted.
    Raises: NotFound when somebody deleted it meanwhile.
    """
    locked = Organization.objects.select_for_update(no_key=True).filter(pk=organization.pk).first()
    if locked is None:
        raise NotFound
    return locked


def current_membership(organization: Organization, user: User, *, role: Role) -> Membership:
    """The person's membership as it is under the lock: the gate looked before, and roles change.

    Raises: NotFound, Forbidden.
    """
    found = Membership.objects.select_related("user").filter(organization=organization, user=user).first()
    if found is None:
        raise NotFound
    if not found.has_role(role):
        raise Forbidden
    return found
