"""A person's management tokens over the API. Only a browser session may use it. docs/decisions/0099"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.lib import ids
from gateway.web.api_view import ApiView
from gateway.web.fields import Text, Timestamp, WholeNumber
from gateway.web.gate import Gate
from gateway.web.operation import Operation
from orgs import membership_check, selectors
from orgs.roles import TOKEN_SCOPE_CHOICES, Role
from orgs.services import management_tokens


class ManagementTokenOut(serializers.Serializer[Any]):
    """Expired tokens stay listed for 30 days. Spec: D168"""

    id = serializers.UUIDField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="The part of the token that lists and logs show.")
    scope = serializers.ChoiceField(TOKEN_SCOPE_CHOICES)
    orgId = serializers.UUIDField(source="membership.organization_id")
    createdAt = Timestamp(source="created_at")
    expiresAt = Timestamp(source="expires_at")
    lastUsedAt = Timestamp(source="last_used_at", allow_null=True, help_text="To within five minutes.")


class MadeTokenOut(serializers.Serializer[Any]):
    """The only answer with the token."""

    id = serializers.UUIDField(source="row.id")
    name = serializers.CharField(source="row.name")
    prefix = serializers.CharField(source="row.prefix")
    scope = serializers.ChoiceField(TOKEN_SCOPE_CHOICES, source="row.scope")
    orgId = serializers.UUIDField(source="row.membership.organization_id")
    createdAt = Timestamp(source="row.created_at")
    expiresAt = Timestamp(source="row.expires_at")
    token = serializers.CharField()


class ManagementTokenIn(serializers.Serializer[Any]):
    org_id = Text(help_text="The organization that the token opens.")
    name = Text(trim_whitespace=False)
    scope = Text(help_text="read: read-only. admin: everything your role allows.")
    expires_in_days = WholeNumber(required=False, min_value=1, max_value=settings.MANAGEMENT_TOKEN_MAX_DAYS)


class ManagementTokenList(ApiView):
    """GET, POST /api/profile/tokens. Spec: D168"""

    gates = {"GET": Gate(), "POST": Gate(limit=settings.MANAGEMENT_TOKEN_CREATE)}
    operations = {
        "GET": Operation("List your management tokens", answer=ManagementTokenOut, many=True, paged=True),
        "POST": Operation(
            "Create a management token",
            body=ManagementTokenIn,
            answer=MadeTokenOut,
            status=201,
            shows_secret=True,
            refusals={
                404: "You are not a member of the organization.",
                409: "You have reached the limit of management tokens.",
            },
        ),
    }

    def get(self, request: Request) -> Response:
        return self.answer_page(selectors.management_tokens(self.actor))

    def post(self, request: Request) -> Response:
        fields = dict(self.fields)
        membership = membership_check.require_membership(self.actor, fields.pop("org_id"), role=Role.MEMBER)
        made = management_tokens.create_token(actor=self.actor, organization=membership.organization, **fields)
        return self.answer(made)


class ManagementTokenDetail(ApiView):
    """DELETE /api/profile/tokens/:tokenId. Spec: D168"""

    gates = {"DELETE": Gate()}
    operations = {
        "DELETE": Operation(
            "Revoke a management token", status=204, refusals={404: "You have no such token, or it has ended."}
        )
    }

    def delete(self, request: Request, token_id: str) -> Response:
        management_tokens.revoke_token(actor=self.actor, token_id=ids.known_id(token_id))
        return self.answer()
