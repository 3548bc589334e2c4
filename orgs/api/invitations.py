"""Invitations over the API. orgs.pages.invite accepts them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.lib import clock, ids
from gateway.web.api_view import OrgView
from gateway.web.fields import Text, Texts, Timestamp, WholeNumber
from gateway.web.gate import Gate, PlanFunction
from gateway.web.operation import Operation
from orgs import selectors
from orgs.models import Invitation, InvitationState
from orgs.roles import Role, TokenScope
from orgs.services import invitations, invited_people
from orgs.services.invitation_sealing import token_of
from orgs.services.invited_people import InvitedLine, LineResult

# Teams and vendors in one body: bounds the size of the request.
MAX_GIVEN = 200
GIVEN_ROLES = [Role.MEMBER.value, Role.ADMIN.value]


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
    role = serializers.ChoiceField(GIVEN_ROLES, help_text="Given when the person joins.")
    teams = serializers.ListField(child=serializers.UUIDField(), help_text="Given when the person joins.")
    vendors = serializers.ListField(child=serializers.CharField(), help_text="Given when the person joins.")
    mailedAt = Timestamp(allow_null=True, help_text="The last message with the link.")


class InvitationIn(serializers.Serializer[Any]):
    """Spec: D49"""

    email = Text(required=False, allow_null=True, allow_blank=True, max_length=254)
    maxUses = WholeNumber(required=False, min_value=1, max_value=settings.INVITATION_MAX_USES)
    expiresInDays = WholeNumber(required=False, min_value=1, max_value=settings.INVITATION_MAX_DAYS)


class InvitedPeopleIn(serializers.Serializer[Any]):
    """Spec: D167"""

    emails = Texts(max_length=settings.INVITATION_ADDRESSES, max_characters=320)
    role = serializers.ChoiceField(GIVEN_ROLES, required=False, help_text="Only owners can choose `admin`.")
    teams = Texts(required=False, max_length=MAX_GIVEN, help_text="Ids of teams.")
    vendors = Texts(required=False, max_length=MAX_GIVEN)
    expiresInDays = WholeNumber(required=False, min_value=1, max_value=settings.INVITATION_MAX_DAYS)


class InvitedLineOut(serializers.Serializer[Any]):
    """One address of the list."""

    email = serializers.CharField()
    result = serializers.ChoiceField([each.value for each in LineResult])
    mailed = serializers.BooleanField(help_text="A message with the link is being sent.")
    invitation = InvitationOut(allow_null=True)


class InvitedPeopleOut(serializers.Serializer[Any]):
    results = InvitedLineOut(many=True)


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
        "role": invitation.role,
        "teams": invitation.team_ids,
        "vendors": invitation.vendors,
        "mailedAt": invitation.mailed_at,
    }


class InvitationList(OrgView):
    """GET, POST /api/orgs/:orgId/invitations. Spec: §4.4 · D48-D51"""

    gates = {
        "GET": Gate(Role.ADMIN, token=TokenScope.ADMIN),
        "POST": Gate(
            Role.ADMIN, plan=PlanFunction.INVITATIONS, limit=settings.INVITATION_CREATE, token=TokenScope.ADMIN
        ),
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


class InvitedPeople(OrgView):
    """POST /api/orgs/:orgId/invitations/people. Spec: §4.4 · D51, D167"""

    gates = {
        "POST": Gate(
            Role.ADMIN, plan=PlanFunction.INVITATIONS, limit=settings.INVITATION_CREATE, token=TokenScope.ADMIN
        )
    }
    operations = {
        "POST": Operation(
            "Invite several people by email",
            body=InvitedPeopleIn,
            answer=InvitedPeopleOut,
            status=201,
        )
    }

    def post(self, request: Request, org_id: str) -> Response:
        lines = invited_people.invite_people(
            actor=self.actor,
            organization=self.organization,
            emails=self.fields["emails"],
            role=Role(self.fields.get("role", Role.MEMBER.value)),
            team_ids=[ids.parse_id(each) or ids.NO_ID for each in self.fields.get("teams", ())],
            vendors=self.fields.get("vendors", ()),
            expires_in_days=self.fields.get("expiresInDays"),
        )
        return self.answer({"results": [_line_body(each) for each in lines]})


def _line_body(line: InvitedLine) -> dict[str, Any]:
    invitation = None if line.invitation is None else invitation_body(line.invitation)
    return {"email": line.email, "result": line.result.value, "mailed": line.is_mailed, "invitation": invitation}


class InvitationMessage(OrgView):
    """POST /api/orgs/:orgId/invitations/:id/send. Spec: D167"""

    gates = {
        "POST": Gate(
            Role.ADMIN, plan=PlanFunction.INVITATIONS, limit=settings.INVITATION_CREATE, token=TokenScope.ADMIN
        )
    }
    operations = {
        "POST": Operation(
            "Send an invitation again",
            answer=InvitationOut,
            refusals={409: "The invitation is for anyone, this service sends no email, or a day's limit is reached."},
        )
    }

    def post(self, request: Request, org_id: str, invitation_id: str) -> Response:
        key = ids.known_id(invitation_id)
        sent = invited_people.send_again(actor=self.actor, organization=self.organization, invitation_id=key)
        return self.answer(invitation_body(sent))


class InvitationDetail(OrgView):
    """DELETE /api/orgs/:orgId/invitations/:id. Spec: §4.4 · D9"""

    gates = {"DELETE": Gate(Role.ADMIN, token=TokenScope.ADMIN)}
    operations = {"DELETE": Operation("Revoke an invitation", status=204)}

    def delete(self, request: Request, org_id: str, invitation_id: str) -> Response:
        key = ids.known_id(invitation_id)
        invitations.revoke_invitation(actor=self.actor, organization=self.organization, invitation_id=key)
        return self.answer()
