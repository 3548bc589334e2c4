"""The only door to tenant rows: a person and an organization id in, a membership out, or a refusal.

A row of another organization is reached by no function here, so there is nothing to forget in a view.
"""

from __future__ import annotations

import uuid

from gateway.lib import ids
from gateway.lib.errors import Forbidden, NotFound
from orgs.models import Membership, User
from orgs.roles import Role


def membership(user: User, org_id: uuid.UUID | str, *, role: Role = Role.MEMBER) -> Membership:
    """The person's membership, with its organization loaded.

    Raises: NotFound for a stranger as for an unknown id; Forbidden when the role is too low.   Spec: D4
    """
    key = ids.parse_id(str(org_id))
    found = None
    if key is not None:
        found = Membership.objects.select_related("organization", "user").filter(user=user, organization_id=key).first()
    if found is None:
        raise NotFound
    if not found.has_role(role):
        raise Forbidden(f"This needs the role {role.value}.")
    return found
