from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.lib import ids
from gateway.lib.errors import Invalid
from gateway.web.api_view import OrgView
from gateway.web.fields import Text, Timestamp
from gateway.web.gate import Gate
from gateway.web.operation import NAME, Operation
from orgs import selectors
from orgs.roles import ROLE_CHOICES, Role, TokenScope
from orgs.services import members, ownership

_LAST_OWNER = {
    409: "The only owner can't leave or step down until there is another one or the organization is deleted."
}


class MemberOut(serializers.Serializer[Any]):
    """Spec: §2 Member · D43"""

    id = serializers.UUIDField(source="user_id", help_text="The same as userId.")
    userId = serializers.UUIDField(source="user_id")
    email = serializers.CharField(source="user.email")
    name = serializers.CharField(source="user.name")
    role = serializers.ChoiceField(ROLE_CHOICES)
    joinedAt = Timestamp(source="joined_at")


class RoleIn(serializers.Serializer[Any]):
    role = Text()


class TransferIn(serializers.Serializer[Any]):
    """`stepDownTo`: the caller's new role."""

    stepDownTo = Text(
        required=False,
        default=Role.ADMIN.value,
        help_text="admin or member; the default is admin. owner: the caller stays an owner too.",
    )


class MemberList(OrgView):
    """GET /api/orgs/:orgId/members. Spec: §4.4 · D43"""

    gates = {"GET": Gate(Role.MEMBER, token=TokenScope.READ)}
    operations = {
        "GET": Operation("List members, earliest first", answer=MemberOut, many=True, paged=True, query=[NAME])
    }

    def get(self, request: Request, org_id: str) -> Response:
        return self.answer_page(selectors.members(self.organization, named=self.asked_name()))


class MemberDetail(OrgView):
    """DELETE /api/orgs/:orgId/members/:userId. Spec: §4.4 · D45"""

    gates = {"DELETE": Gate(Role.ADMIN, token=TokenScope.ADMIN)}
    operations = {"DELETE": Operation("Remove a member", status=204, refusals=_LAST_OWNER)}

    def delete(self, request: Request, org_id: str, user_id: str) -> Response:
        key = ids.known_id(user_id)
        members.remove_member(actor=self.actor, organization=self.organization, user_id=key)
        return self.answer()


class OwnMembership(OrgView):
    """DELETE /api/orgs/:orgId/membership: the caller leaves. Spec: D45 · ux.md 3"""

    gates = {"DELETE": Gate(Role.MEMBER)}
    operations = {"DELETE": Operation("Leave the organization", status=204, refusals=_LAST_OWNER)}

    def delete(self, request: Request, org_id: str) -> Response:
        members.leave_organization(actor=self.actor, organization=self.organization)
        return self.answer()


class MemberRole(OrgView):
    """PATCH /api/orgs/:orgId/members/:userId/role. Spec: §4.4 · D44"""

    gates = {"PATCH": Gate(Role.OWNER, token=TokenScope.ADMIN)}
    operations = {"PATCH": Operation("Make a member admin or member", body=RoleIn, answer=MemberOut)}

    def patch(self, request: Request, org_id: str, user_id: str) -> Response:
        key = ids.known_id(user_id)
        role = _role(self.fields, "role", (Role.MEMBER, Role.ADMIN))
        return self.answer(
            members.change_role(actor=self.actor, organization=self.organization, user_id=key, role=role)
        )


class Ownership(OrgView):
    """PUT /api/orgs/:orgId/members/:userId/ownership: the member becomes owner. Spec: D154"""

    gates = {"PUT": Gate(Role.OWNER)}
    operations = {
        "PUT": Operation(
            "Make another member an owner, and step down or stay an owner",
            body=TransferIn,
            answer=MemberOut,
            refusals={409: "The person is deactivated."},
        )
    }

    def put(self, request: Request, org_id: str, user_id: str) -> Response:
        key = ids.known_id(user_id)
        role = _role(self.fields, "stepDownTo", tuple(Role))
        return self.answer(
            ownership.transfer_ownership(
                actor=self.actor, organization=self.organization, user_id=key, step_down_to=role
            )
        )


class OwnOwnership(OrgView):
    """DELETE /api/orgs/:orgId/ownership: the caller steps down. Spec: D154"""

    gates = {"DELETE": Gate(Role.OWNER)}
    operations = {"DELETE": Operation("Step down as owner and become an admin", status=204, refusals=_LAST_OWNER)}

    def delete(self, request: Request, org_id: str) -> Response:
        ownership.step_down(actor=self.actor, organization=self.organization)
        return self.answer()


def _role(fields: Mapping[str, str], name: str, allowed: tuple[Role, ...]) -> Role:
    """Raises: Invalid."""
    if fields[name] not in allowed:
        names = [role.value for role in reversed(allowed)]
        raise Invalid(fields={name: [f"Must be {', '.join(names[:-1])} or {names[-1]}."]})
    return Role(fields[name])
