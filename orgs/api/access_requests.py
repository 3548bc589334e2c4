"""Access requests over the API: members ask for a vendor, admins decide. Spec: D169"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from credentials.selectors import people_vendors
from gateway.lib import ids
from gateway.web.api_view import OrgView
from gateway.web.fields import Moment, Text, Timestamp
from gateway.web.gate import Gate
from gateway.web.operation import Operation
from orgs import selectors
from orgs.models import AccessRequest
from orgs.models.access_request import REASON_MAX_CHARACTERS
from orgs.roles import Role, TokenScope
from orgs.services import access_requests

_DECIDED = {409: "The request was already decided."}


class AccessRequestOut(serializers.Serializer[Any]):
    """`expiresAt`: the end of the access that an approval gave."""

    id = serializers.UUIDField()
    userId = serializers.UUIDField(source="membership.user_id")
    vendor = serializers.CharField()
    reason = serializers.CharField()
    status = serializers.ChoiceField(AccessRequest.State.values, source="state")
    createdAt = Timestamp(source="created_at")
    decidedAt = Timestamp(source="decided_at", allow_null=True)
    decidedBy = serializers.UUIDField(source="decided_by_id", allow_null=True)
    answer = serializers.CharField()
    expiresAt = Timestamp(source="access_until", allow_null=True)


class AccessRequestIn(serializers.Serializer[Any]):
    vendor = Text(max_length=40)
    reason = Text(required=False, default="", allow_blank=True, max_length=REASON_MAX_CHARACTERS)


class ApprovalIn(serializers.Serializer[Any]):
    """Without `expiresAt` the access has no end."""

    expiresAt = Moment(required=False, default=None, allow_null=True)


class DeclineIn(serializers.Serializer[Any]):
    answer = Text(
        required=False,
        default="",
        allow_blank=True,
        max_length=REASON_MAX_CHARACTERS,
        help_text="A message for the person who asked.",
    )


class AccessRequestList(OrgView):
    """GET, POST /api/orgs/:orgId/access-requests"""

    gates = {
        "GET": Gate(Role.MEMBER, token=TokenScope.READ),
        "POST": Gate(Role.MEMBER, limit=settings.ACCESS_REQUEST_CREATE, token=TokenScope.ADMIN),
    }
    operations = {
        "GET": Operation(
            "List access requests, waiting ones first: all for admins, their own for members",
            answer=AccessRequestOut,
            many=True,
            paged=True,
        ),
        "POST": Operation(
            "Ask for access to a vendor",
            body=AccessRequestIn,
            answer=AccessRequestOut,
            status=201,
            refusals={
                404: "There is no such vendor.",
                409: "The vendor is not connected, the caller has access, or an earlier request is waiting.",
            },
        ),
    }

    def get(self, request: Request, org_id: str) -> Response:
        of = None if self.membership.has_role(Role.ADMIN) else self.actor
        waiting = selectors.waiting_requests(self.organization, people_vendors(self.organization), of=of)
        return self.answer_page(waiting, selectors.decided_requests(self.organization, of=of))

    def post(self, request: Request, org_id: str) -> Response:
        made = access_requests.create_request(
            actor=self.actor,
            organization=self.organization,
            vendor=self.fields["vendor"],
            reason=self.fields["reason"],
            connected_vendors=lambda: people_vendors(self.organization),
        )
        return self.answer(made)


class AccessRequestDetail(OrgView):
    """DELETE /api/orgs/:orgId/access-requests/:id"""

    gates = {"DELETE": Gate(Role.MEMBER, token=TokenScope.ADMIN)}
    operations = {"DELETE": Operation("Withdraw your own request", status=204, refusals=_DECIDED)}

    def delete(self, request: Request, org_id: str, request_id: str) -> Response:
        key = ids.known_id(request_id)
        access_requests.withdraw_request(actor=self.actor, organization=self.organization, request_id=key)
        return self.answer()


class AccessRequestApproval(OrgView):
    """POST /api/orgs/:orgId/access-requests/:id/approve"""

    gates = {"POST": Gate(Role.ADMIN, token=TokenScope.ADMIN)}
    operations = {
        "POST": Operation("Give the requested access", body=ApprovalIn, answer=AccessRequestOut, refusals=_DECIDED)
    }

    def post(self, request: Request, org_id: str, request_id: str) -> Response:
        decided = access_requests.approve_request(
            actor=self.actor,
            organization=self.organization,
            request_id=ids.known_id(request_id),
            expires_at=self.fields["expiresAt"],
        )
        return self.answer(decided)


class AccessRequestRefusal(OrgView):
    """POST /api/orgs/:orgId/access-requests/:id/decline"""

    gates = {"POST": Gate(Role.ADMIN, token=TokenScope.ADMIN)}
    operations = {"POST": Operation("Decline a request", body=DeclineIn, answer=AccessRequestOut, refusals=_DECIDED)}

    def post(self, request: Request, org_id: str, request_id: str) -> Response:
        decided = access_requests.decline_request(
            actor=self.actor,
            organization=self.organization,
            request_id=ids.known_id(request_id),
            answer=self.fields["answer"],
        )
        return self.answer(decided)
