"""Base of the pages on which an owner changes another member's role."""

from __future__ import annotations

from uuid import UUID

from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from orgs import selectors
from orgs.errors import CannotChangeOwnRole
from orgs.models import Membership
from orgs.roles import Role


class OtherMemberPage(OrgPage):
    """GET, POST /orgs/:orgId/members/:userId/…, for owners."""

    gates = {"GET": Gate(Role.OWNER), "POST": Gate(Role.OWNER)}
    nav_route = "orgs:members"

    def target(self, user_id: UUID) -> Membership:
        """Raises: NotFound; CannotChangeOwnRole."""
        target = selectors.member(self.organization, str(user_id))
        if target.pk == self.membership.pk:
            raise CannotChangeOwnRole
        return target
