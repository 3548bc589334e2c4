"""Connections to vendors that people sign in to, over the API. Contract: 8"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from credentials import selectors
from credentials.services.vendor_connections import end_organization_connection, end_own_connection
from credentials.services.vendor_sign_in_rules import change_rules
from gateway.catalog.registry import known_vendor
from gateway.web.api_view import ApiView, OrgView
from gateway.web.fields import Text, Texts, Timestamp, TrueOrFalse
from gateway.web.gate import Gate, PlanFunction
from gateway.web.operation import Operation, QueryParameter
from orgs import membership_check
from orgs.roles import Role, TokenScope
from proxy.control_plane.vendor_sign_in import ORGANIZATION, PERSON, begin_sign_in

_STATUSES = ("connected", "expired", "error")
_REFUSED = {
    404: "There is no such vendor, or you are not a member of the organization.",
    409: "The vendor now names another authorization server, which an admin has to allow.",
    422: "The vendor doesn't support signing in at this level, or an admin has turned personal connections off.",
    502: "The vendor or its authorization server does not let a sign-in start.",
}
ORG_ID = QueryParameter("org_id", "The organization in which the connection is used.")


class VendorConnectionOut(serializers.Serializer[Any]):
    """Nothing of a token."""

    vendor = serializers.CharField()
    level = serializers.ChoiceField(
        [ORGANIZATION, PERSON], source="scope", help_text="person: only the calls of this person use it."
    )
    orgId = serializers.UUIDField(source="organization_id")
    status = serializers.ChoiceField(_STATUSES, source="state", help_text="expired: a new sign-in is needed.")
    account = serializers.CharField(help_text="The account at the vendor; empty if the vendor doesn't say.")
    scopes = serializers.ListField(child=serializers.CharField(), source="scope_list")
    wantedScopes = serializers.ListField(
        child=serializers.CharField(),
        source="wanted_scope_list",
        help_text="Scopes that a call needed and the connection lacks; a new sign-in asks for them.",
    )
    expiresAt = Timestamp(
        source="expires_at", allow_null=True, help_text="When the current token expires; it is renewed before then."
    )
    connectedAt = Timestamp(source="connected_at")


class SignInOut(serializers.Serializer[Any]):
    authorizationUrl = serializers.CharField(help_text="Open it in the browser of this session, within ten minutes.")


class SignInRulesOut(serializers.Serializer[Any]):
    vendor = serializers.CharField()
    peopleMayConnect = serializers.BooleanField(
        source="people_may_connect", help_text="Whether members may connect their own accounts."
    )
    scopes = serializers.ListField(
        child=serializers.CharField(),
        source="scope_list",
        help_text="The only scopes to ask for; empty: those that the vendor names.",
    )
    issuer = serializers.CharField(
        help_text="The authorization server of the first connection; sign-ins go to no other one. Empty: none yet."
    )


class SignInRulesIn(serializers.Serializer[Any]):
    peopleMayConnect = TrueOrFalse(help_text="False ends the connections that members have.")
    scopes = Texts(
        max_length=100,
        default=list,
        help_text="The only scopes to ask for; empty: those that the vendor names.",
    )
    acceptAnyServer = TrueOrFalse(
        default=False, help_text="True: the next sign-in may go to another authorization server than before."
    )


class OwnConnectionIn(serializers.Serializer[Any]):
    org_id = Text(help_text="The organization in which the connection will be used.")


_LIST = Operation("List the organization's vendor connections", answer=VendorConnectionOut, many=True)
_BEGIN = Operation(
    "Start the organization's sign-in to a vendor", answer=SignInOut, status=201, shows_secret=True, refusals=_REFUSED
)
_END = Operation(
    "End the organization's connection to a vendor", status=204, refusals={404: "There is no such connection."}
)


class OrganizationConnections(OrgView):
    """GET /api/orgs/:orgId/vendor-connections."""

    gates = {"GET": Gate(Role.ADMIN, token=TokenScope.READ)}
    operations = {"GET": _LIST}

    def get(self, request: Request, org_id: str) -> Response:
        return self.answer(selectors.organization_connections(self.organization))


class OrganizationConnection(OrgView):
    """POST, DELETE /api/orgs/:orgId/vendor-connections/:vendor. The browser of the session has to end the sign-in."""

    gates = {
        "POST": Gate(Role.ADMIN, plan=PlanFunction.CREDENTIALS, limit=settings.CREDENTIAL_STORE),
        "DELETE": Gate(Role.ADMIN, token=TokenScope.ADMIN),
    }
    operations = {"POST": _BEGIN, "DELETE": _END}

    def post(self, request: Request, org_id: str, vendor: str) -> Response:
        session_key = request._request.session.session_key or ""
        found = known_vendor(vendor)
        url = begin_sign_in(membership=self.membership, vendor=found, level=ORGANIZATION, session_key=session_key)
        return self.answer({"authorizationUrl": url})

    def delete(self, request: Request, org_id: str, vendor: str) -> Response:
        end_organization_connection(actor=self.actor, organization=self.organization, vendor=vendor)
        return self.answer()


class SignInRules(OrgView):
    """GET, PUT /api/orgs/:orgId/vendor-connections/:vendor/rules."""

    gates = {"GET": Gate(Role.ADMIN, token=TokenScope.READ), "PUT": Gate(Role.ADMIN, token=TokenScope.ADMIN)}
    operations = {
        "GET": Operation("Show what is allowed of sign-ins to a vendor", answer=SignInRulesOut),
        "PUT": Operation(
            "Change what is allowed of sign-ins to a vendor",
            body=SignInRulesIn,
            answer=SignInRulesOut,
            refusals={404: "There is no such vendor.", 422: "The vendor doesn't support signing in."},
        ),
    }

    def get(self, request: Request, org_id: str, vendor: str) -> Response:
        return self.answer(selectors.sign_in_rules(self.organization.id, known_vendor(vendor).slug))

    def put(self, request: Request, org_id: str, vendor: str) -> Response:
        wanted = self.fields
        return self.answer(
            change_rules(
                actor=self.actor,
                organization=self.organization,
                vendor=known_vendor(vendor),
                people_may_connect=wanted["peopleMayConnect"],
                scopes=wanted["scopes"],
                accepts_any_server=wanted["acceptAnyServer"],
            )
        )


class OwnConnections(ApiView):
    """GET /api/profile/vendor-connections."""

    gates = {"GET": Gate()}
    operations = {"GET": Operation("List your vendor connections", answer=VendorConnectionOut, many=True)}

    def get(self, request: Request) -> Response:
        return self.answer(selectors.own_connections(self.actor))


class OwnConnection(ApiView):
    """POST, DELETE /api/profile/vendor-connections/:vendor."""

    gates = {"POST": Gate(limit=settings.CREDENTIAL_STORE), "DELETE": Gate()}
    operations = {
        "POST": Operation(
            "Start your own sign-in to a vendor",
            body=OwnConnectionIn,
            answer=SignInOut,
            status=201,
            shows_secret=True,
            refusals=_REFUSED,
        ),
        "DELETE": Operation(
            "End your own connection to a vendor",
            status=204,
            query=[ORG_ID],
            refusals={404: "There is no such connection, or you are not a member of the organization."},
        ),
    }

    def post(self, request: Request, vendor: str) -> Response:
        membership = membership_check.require_membership(self.actor, self.fields["org_id"])
        session_key = request._request.session.session_key or ""
        found = known_vendor(vendor)
        url = begin_sign_in(membership=membership, vendor=found, level=PERSON, session_key=session_key)
        return self.answer({"authorizationUrl": url})

    def delete(self, request: Request, vendor: str) -> Response:
        membership = membership_check.require_membership(self.actor, request._request.GET.get(ORG_ID.name, ""))
        end_own_connection(membership=membership, vendor=vendor)
        return self.answer()
