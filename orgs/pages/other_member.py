"""Base of the pages on which an owner changes another member's role."""

from __future__ import annotations

from collections.abc import Sequence

from django import forms
from django.utils.functional import cached_property

from gateway.web.form_page import FormT, OrgFormPage
from gateway.web.gate import Gate
from orgs import selectors
from orgs.errors import CannotChangeOwnRole
from orgs.models import Membership
from orgs.roles import Role


class OtherMemberPage(OrgFormPage[FormT]):
    """GET, POST /orgs/:orgId/members/:userId/…, for owners."""

    gates = {"GET": Gate(Role.OWNER), "POST": Gate(Role.OWNER)}
    nav_route = "orgs:members"
    refusal_status = None

    @cached_property
    def target(self) -> Membership:
        """Raises: NotFound; CannotChangeOwnRole."""
        target = selectors.member(self.organization, str(self.kwargs["user_id"]))
        if target.pk == self.membership.pk:
            raise CannotChangeOwnRole
        return target


def role_field(fault: str, roles_to_choose: Sequence[Role] = (Role.ADMIN, Role.MEMBER)) -> forms.ChoiceField:
    roles = [(role.value, role.value) for role in roles_to_choose]
    return forms.ChoiceField(choices=roles, error_messages={"required": fault, "invalid_choice": fault})
