"""Trusted issuers over the API, and the permission of a service client to act for people. docs/decisions/0109"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.lib import ids
from gateway.web.api_view import OrgView
from gateway.web.fields import Text, Texts, Timestamp, TrueOrFalse
from gateway.web.gate import Gate
from gateway.web.operation import Operation
from oauth_ext import selectors
from oauth_ext.jwt.assertion import ALGORITHMS
from oauth_ext.models.trusted_issuer import ISSUER_CHARACTERS, JWKS_URL_CHARACTERS
from oauth_ext.services import acting, trusted_issuers
from oauth_ext.services.trusted_issuers import DEFAULT_ALGORITHMS, Wanted
from orgs.roles import Role, TokenScope


class TrustedIssuerOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    issuer = serializers.CharField()
    jwks_url = serializers.CharField(help_text="Empty: the address in the issuer’s discovery document.")
    tenant = serializers.CharField(help_text="Empty: the issuer has one tenant.")
    algorithms = serializers.ListField(child=serializers.CharField())
    client_ids = serializers.ListField(
        child=serializers.CharField(), help_text="Empty: every service client that may act for people."
    )
    created_at = Timestamp()
    last_used_at = Timestamp(allow_null=True, help_text="To within five minutes.")


class TrustedIssuerIn(serializers.Serializer[Any]):
    issuer = Text(max_length=ISSUER_CHARACTERS, help_text="As the claim iss of the provider’s tokens has it.")
    jwks_url = Text(
        required=False,
        allow_blank=True,
        max_length=JWKS_URL_CHARACTERS,
        help_text="Where the signing keys are. Without it, the issuer’s discovery document says so.",
    )
    tenant = Text(
        required=False,
        allow_blank=True,
        max_length=ISSUER_CHARACTERS,
        help_text="For an issuer with several tenants: the claim tenant of your tokens.",
    )
    algorithms = Texts(
        required=False,
        max_length=len(ALGORITHMS),
        help_text=f"Of {', '.join(ALGORITHMS)}. Default: {', '.join(DEFAULT_ALGORITHMS)}.",
    )
    client_ids = Texts(
        required=False,
        max_length=settings.SERVICE_CLIENTS_PER_ORGANIZATION,
        help_text="The service clients that may present assertions. Without it, each one that may act for people.",
    )


class ActingBody(serializers.Serializer[Any]):
    acts_for_people = TrueOrFalse(help_text="Whether the service client may get tokens to act for a member.")


class TrustedIssuerList(OrgView):
    """GET, POST /api/orgs/:orgId/trusted-issuers"""

    gates = {
        "GET": Gate(Role.OWNER, token=TokenScope.READ),
        "POST": Gate(Role.OWNER, organization_limit=settings.VENDOR_REQUESTS, token=TokenScope.ADMIN),
    }
    operations = {
        "GET": Operation("List the identity providers that may vouch for members", answer=TrustedIssuerOut, many=True),
        "POST": Operation(
            "Trust an identity provider to vouch for members",
            body=TrustedIssuerIn,
            answer=TrustedIssuerOut,
            status=201,
            refusals={409: "It is trusted already, or the organization has reached its limit of trusted issuers."},
        ),
    }

    def get(self, request: Request, org_id: str) -> Response:
        return self.answer(trusted_issuers.trusted_issuers(self.organization))

    def post(self, request: Request, org_id: str) -> Response:
        wanted = Wanted(**self.fields)
        return self.answer(trusted_issuers.add_issuer(actor=self.actor, organization=self.organization, wanted=wanted))


class TrustedIssuerDetail(OrgView):
    """DELETE /api/orgs/:orgId/trusted-issuers/:issuerId"""

    gates = {"DELETE": Gate(Role.OWNER, token=TokenScope.ADMIN)}
    operations = {"DELETE": Operation("End the trust in an identity provider, with all tokens from it", status=204)}

    def delete(self, request: Request, org_id: str, issuer_id: str) -> Response:
        key = ids.known_id(issuer_id)
        trusted_issuers.remove_issuer(actor=self.actor, organization=self.organization, issuer_id=key)
        return self.answer()


class ClientActing(OrgView):
    """PUT /api/orgs/:orgId/service-clients/:clientId/acting"""

    gates = {"PUT": Gate(Role.OWNER, token=TokenScope.ADMIN)}
    operations = {
        "PUT": Operation("Let a service client act for people, or end that", body=ActingBody, answer=ActingBody)
    }

    def put(self, request: Request, org_id: str, client_id: str) -> Response:
        client = selectors.service_client(self.organization, client_id)
        return self.answer(
            acting.set_acting(actor=self.actor, organization=self.organization, client=client, **self.fields)
        )
