"""Service clients and agent keys over the API. Field names are snake_case. Spec: §4.8 · D13"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.web.api_view import OrgView
from gateway.web.fields import Name, Timestamp, WholeNumber
from gateway.web.gate import Gate
from gateway.web.operation import Operation
from oauth_ext import selectors
from oauth_ext.services import agent_keys, service_clients
from orgs.roles import Role


class CreatedOut(serializers.Serializer[Any]):
    """The only answer with the client secret. Spec: §2 Service client"""

    id = serializers.UUIDField(source="client.id")
    name = serializers.CharField(source="client.name")
    client_id = serializers.CharField(source="client.client_id")
    client_secret = serializers.CharField()
    expires_at = Timestamp(source="client.expires_at")
    created_at = Timestamp(source="client.created")


class ServiceClientOut(serializers.Serializer[Any]):
    """Expired clients stay listed. Spec: D71, D73"""

    id = serializers.UUIDField()
    name = serializers.CharField()
    client_id = serializers.CharField()
    expires_at = Timestamp()
    created_at = Timestamp(source="created")
    last_used_at = Timestamp(allow_null=True)
    agent_key_prefix = serializers.CharField(allow_null=True)
    restricted = serializers.BooleanField(help_text="Whether it may use the vendors on its list only.")


class ServiceClientIn(serializers.Serializer[Any]):
    """Spec: D70"""

    name = Name()
    expires_in_days = WholeNumber(required=False, min_value=1, max_value=settings.SERVICE_CLIENT_MAX_DAYS)


class AgentKeyOut(serializers.Serializer[Any]):
    """The only answer with the agent key. Spec: §2 Agent key"""

    agent_key = serializers.CharField()
    prefix = serializers.CharField()
    rotated = serializers.BooleanField(help_text="Whether it replaced an earlier key, which no longer works.")


class ServiceClientList(OrgView):
    """GET, POST /api/orgs/:orgId/service-clients. Spec: §4.8 · D70, D71"""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    operations = {
        "GET": Operation("Its service clients, newest first", answer=ServiceClientOut, many=True, paged=True),
        "POST": Operation(
            "Create a service client",
            body=ServiceClientIn,
            answer=CreatedOut,
            status=201,
            shows_secret=True,
            refusals={409: "The organization has as many service clients as it may have."},
        ),
    }

    def get(self, request: Request, org_id: str) -> Response:
        return self.answer_page(selectors.service_clients(self.organization))

    def post(self, request: Request, org_id: str) -> Response:
        return self.answer(
            service_clients.create_service_client(actor=self.actor, organization=self.organization, **self.fields)
        )


class ServiceClientDetail(OrgView):
    """DELETE /api/orgs/:orgId/service-clients/:clientId. Spec: §4.8 · D9, D74"""

    gates = {"DELETE": Gate(Role.ADMIN)}
    operations = {"DELETE": Operation("Delete a service client with its tokens, key and credentials", status=204)}

    def delete(self, request: Request, org_id: str, client_id: str) -> Response:
        client = selectors.service_client(self.organization, client_id)
        service_clients.delete_service_client(actor=self.actor, client=client)
        return self.answer()


class AgentKeyView(OrgView):
    """POST, DELETE /api/orgs/:orgId/service-clients/:clientId/agent-key. Spec: §4.8, §8 · D72-D74"""

    gates = {
        "POST": Gate(Role.ADMIN, limit=settings.AGENT_KEY_MINT, entitlement="serviceClients"),
        # Revoking stays allowed when the plan has lapsed.
        "DELETE": Gate(Role.ADMIN),
    }
    operations = {
        "POST": Operation(
            "Make or rotate the agent key",
            answer=AgentKeyOut,
            status=201,
            shows_secret=True,
            refusals={409: "The service client has expired."},
        ),
        "DELETE": Operation("Revoke the agent key", status=204),
    }

    def post(self, request: Request, org_id: str, client_id: str) -> Response:
        client = selectors.service_client(self.organization, client_id)
        # An earlier key stops working at once.
        return self.answer(agent_keys.mint_agent_key(actor=self.actor, client=client))

    def delete(self, request: Request, org_id: str, client_id: str) -> Response:
        client = selectors.service_client(self.organization, client_id)
        agent_keys.revoke_agent_key(actor=self.actor, client=client)
        return self.answer()
