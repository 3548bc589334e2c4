"""Entry to tenant rows: a person and an organization id give a membership, or a refusal."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from gateway.lib import ids
from gateway.lib.errors import Forbidden, NotFound
from gateway.lib.sentences import sentence
from orgs.models import Membership, User
from orgs.roles import Role


def require_membership(
    user: User, org_id: uuid.UUID | str, *, role: Role = Role.MEMBER, among: Sequence[Membership] | None = None
) -> Membership:
    """`among`: all memberships of the person, if this request has read them.

    Raises: NotFound for a stranger as for an unknown id; Forbidden if the role is too low. Spec: D4
    """
    # A text that is no id gives the same 404 as an unknown id: no oracle for existing organizations.
    key = ids.parse_id(str(org_id))
    found = None
    if key is not None and among is not None:
        found = next((each for each in among if each.organization_id == key), None)
    elif key is not None:
        found = Membership.objects.select_related("organization", "user").filter(user=user, organization_id=key).first()
    if found is None:
        raise NotFound
    if not found.has_role(role):
        raise Forbidden(sentence("You need the %(role)s role.", role=role.value))
    return found
