"""Invitations over the API. orgs.pages.invite accepts them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.lib import clock, ids
from gateway.web.api_view import OrgView
from gateway.web.fields import Text, Timestamp, WholeNumber
from gateway.web.gate import Gate, PlanFunction
from gateway.web.operation import Operation
from orgs import selectors
from orgs.models import Invitation, InvitationState
from orgs.roles import Role
from orgs.services import invitations
from orgs.services.invitation_sealing import token_of


class InvitationOut(serializers.Serializer[Any]):
    """Spec: §2 Invitation · D50, D51"""

    id = serializers.UUIDField()
    token = serializers.CharField(
        allow_null=True, help_text="Null if the key it was encrypted with is no longer configured."
    )
    inviteUrl = serializers.CharField(allow_null=True)
    expiresAt = Timestamp()
    maxUses = serializers.IntegerField()
    useCount = serializers.IntegerField()
    email = serializers.CharField(allow_null=True)
    createdBy = serializers.UUIDField(allow_null=True)
    createdAt = Timestamp()
    status = serializers.ChoiceField([state.value for state in InvitationState])


class InvitationIn(serializers.Serializer[Any]):
    """Spec: D49"""

    email = Text(required=False, allow_null=True, allow_blank=True, max_length=254)
    maxUses = WholeNumber(required=False, min_value=1, max_value=settings.INVITATION_MAX_USES)
    expiresInDays = WholeNumber(required=False, min_value=1, max_value=settings.INVITATION_MAX_DAYS)


def invitation_body(invitation: Invitation) -> dict[str, Any]:
    """The input of InvitationOut."""
    token = token_of(invitation)
    return {
        "id": invitation.id,
        "token": token,
        "inviteUrl": None if token is None else f"{settings.BASE_URL}/invite/{token}",
        "expiresAt": invitation.expires_at,
        "maxUses": invitation.max_uses,
        "useCount": invitation.use_count,
        "email": invitation.email or None,
        "createdBy": invitation.created_by_id,
        "createdAt": invitation.created_at,
        "status": invitation.state(clock.now()).value,
    }


class InvitationList(OrgView):
    """GET, POST /api/orgs/:orgId/invitations. Spec: §4.4 · D48-D51"""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN, plan=PlanFunction.INVITATIONS, limit=settings.INVITATION_CREATE),
    }
    operations = {
        "GET": Operation("List pending invitations, newest first", answer=InvitationOut, many=True, paged=True),
        "POST": Operation(
            "Create an invitation",
            body=InvitationIn,
            answer=InvitationOut,
            status=201,
            refusals={409: "The organization has reached its limit of open invitations."},
        ),
    }

    def get(self, request: Request, org_id: str) -> Response:
        return self.answer_page(selectors.pending_invitations(self.organization), as_body=invitation_body)

    def post(self, request: Request, org_id: str) -> Response:
        created = invitations.create_invitation(
            actor=self.actor,
            organization=self.organization,
            email=self.fields.get("email"),
            max_uses=self.fields.get("maxUses", 1),
            expires_in_days=self.fields.get("expiresInDays"),
        )
        return self.answer(invitation_body(created))


class InvitationDetail(OrgView):
    """DELETE /api/orgs/:orgId/invitations/:id. Spec: §4.4 · D9"""

    gates = {"DELETE": Gate(Role.ADMIN)}
    operations = {"DELETE": Operation("Revoke an invitation", status=204)}

    def delete(self, request: Request, org_id: str, invitation_id: str) -> Response:
        key = ids.known_id(invitation_id)
        invitations.revoke_invitation(actor=self.actor, organization=self.organization, invitation_id=key)
        return self.answer()
