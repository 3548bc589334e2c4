"""Service clients and agent keys over the API. Field names are snake_case. Spec: §4.8 · D13"""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from audit.query_values import moment_of
from gateway.web.api_view import OrgView
from gateway.web.fields import Name, Text, Timestamp, TrueOrFalse, WholeNumber
from gateway.web.gate import Gate
from gateway.web.operation import NAME, Operation
from oauth_ext import selectors
from oauth_ext.models.client import ToolMode
from oauth_ext.services import agent_keys, service_clients
from oauth_ext.services.service_client_changes import ServiceClientChanges, change_service_client
from orgs.roles import Role, TokenScope


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
    restricted = serializers.BooleanField(help_text="Whether it can use only the vendors on its list.")
    responsible_user_id = serializers.UUIDField(
        source="responsible_person.id", default=None, allow_null=True, help_text="Null once the person has left."
    )
    previous_secret_ends_at = Timestamp(
        source="previous_secret_counts_until", allow_null=True, help_text="Until then, the previous secret works too."
    )
    agent_key_created_at = Timestamp(allow_null=True)
    previous_agent_key_ends_at = Timestamp(
        source="previous_key_ends_at", allow_null=True, help_text="Until then, the previous agent key works too."
    )
    tool_mode = serializers.ChoiceField(
        ToolMode.choices, help_text="Which tools it can call, before its lists are applied."
    )
    acts_for_people = serializers.BooleanField(help_text="Whether it may get tokens to act for a member.")
    compact_list = serializers.BooleanField(
        source="lists_compactly", help_text="Whether /v1/mcp lists three tools in place of all to it."
    )


class ServiceClientIn(serializers.Serializer[Any]):
    """Spec: D70"""

    name = Name()
    expires_in_days = WholeNumber(required=False, min_value=1, max_value=settings.SERVICE_CLIENT_MAX_DAYS)


class ServiceClientChange(serializers.Serializer[Any]):
    """Absent members stay as they are."""

    name = Name(required=False)
    expires_at = Text(
        required=False,
        max_length=40,
        help_text=f"A date, or an RFC 3339 time, within {settings.SERVICE_CLIENT_MAX_DAYS} days.",
    )
    responsible_user_id = serializers.UUIDField(required=False, allow_null=True, help_text="A member, or null.")
    compact_list = TrueOrFalse(
        required=False,
        source="lists_compactly",
        help_text="Whether /v1/mcp lists three tools in place of all to it: to find, describe and call the others.",
    )

    def validate_expires_at(self, value: str) -> datetime:
        try:
            return moment_of(value)
        except ValueError as fault:
            raise serializers.ValidationError(str(fault)) from fault


class RotationIn(serializers.Serializer[Any]):
    overlap_hours = WholeNumber(
        required=False,
        help_text="0, 1 or 24: how long the old value keeps working. With 0, the default, it ends at once.",
    )


class RotatedOut(serializers.Serializer[Any]):
    """The only answer with the new client secret."""

    id = serializers.UUIDField(source="client.id")
    client_id = serializers.CharField(source="client.client_id")
    client_secret = serializers.CharField()
    previous_secret_ends_at = Timestamp(source="client.previous_secret_ends_at", allow_null=True)


class AgentKeyOut(serializers.Serializer[Any]):
    """The only answer with the agent key. Spec: §2 Agent key"""

    agent_key = serializers.CharField()
    prefix = serializers.CharField()
    rotated = serializers.BooleanField(
        help_text="Whether it replaced an earlier key, which ends now or with the overlap."
    )


class ServiceClientList(OrgView):
    """GET, POST /api/orgs/:orgId/service-clients. Spec: §4.8 · D70, D71"""

    gates = {"GET": Gate(Role.ADMIN, token=TokenScope.READ), "POST": Gate(Role.ADMIN, token=TokenScope.ADMIN)}
    operations = {
        "GET": Operation(
            "List service clients, newest first", answer=ServiceClientOut, many=True, paged=True, query=[NAME]
        ),
        "POST": Operation(
            "Create a service client",
            body=ServiceClientIn,
            answer=CreatedOut,
            status=201,
            shows_secret=True,
            refusals={409: "The organization has reached its limit of service clients."},
        ),
    }

    def get(self, request: Request, org_id: str) -> Response:
        return self.answer_page(selectors.service_clients(self.organization, named=self.asked_name()))

    def post(self, request: Request, org_id: str) -> Response:
        return self.answer(
            service_clients.create_service_client(actor=self.actor, organization=self.organization, **self.fields)
        )


class ServiceClientDetail(OrgView):
    """PATCH, DELETE /api/orgs/:orgId/service-clients/:clientId. Spec: §4.8 · D9, D74"""

    gates = {"PATCH": Gate(Role.ADMIN, token=TokenScope.ADMIN), "DELETE": Gate(Role.ADMIN, token=TokenScope.ADMIN)}
    operations = {
        "PATCH": Operation(
            "Change the name, expiry, responsible member or list of tools",
            body=ServiceClientChange,
            answer=ServiceClientOut,
        ),
        "DELETE": Operation("Delete a service client with its tokens, key and credentials", status=204),
    }

    def patch(self, request: Request, org_id: str, client_id: str) -> Response:
        client = selectors.service_client(self.organization, client_id)
        changes = cast("ServiceClientChanges", self.fields)
        changed = change_service_client(actor=self.actor, client=client, changes=changes)
        return self.answer(selectors.service_client(self.organization, str(changed.pk)))

    def delete(self, request: Request, org_id: str, client_id: str) -> Response:
        client = selectors.service_client(self.organization, client_id)
        service_clients.delete_service_client(actor=self.actor, client=client)
        return self.answer()


class ClientSecretView(OrgView):
    """POST /api/orgs/:orgId/service-clients/:clientId/rotate-secret. Spec: D72, D171"""

    # It stays allowed when the plan has lapsed: a secret may be known to others.
    gates = {"POST": Gate(Role.ADMIN, limit=settings.CLIENT_SECRET_ROTATION, token=TokenScope.ADMIN)}
    operations = {
        "POST": Operation("Rotate the client secret", body=RotationIn, answer=RotatedOut, status=201, shows_secret=True)
    }

    def post(self, request: Request, org_id: str, client_id: str) -> Response:
        client = selectors.service_client(self.organization, client_id)
        return self.answer(service_clients.rotate_client_secret(actor=self.actor, client=client, **self.fields))


class AgentKeyView(OrgView):
    """POST, DELETE /api/orgs/:orgId/service-clients/:clientId/agent-key. Spec: §4.8, §8 · D72-D74"""

    gates = {
        "POST": Gate(Role.ADMIN, limit=settings.AGENT_KEY_MINT, entitlement="serviceClients", token=TokenScope.ADMIN),
        # Revoking stays allowed when the plan has lapsed.
        "DELETE": Gate(Role.ADMIN, token=TokenScope.ADMIN),
    }
    operations = {
        "POST": Operation(
            "Create or rotate the agent key",
            body=RotationIn,
            answer=AgentKeyOut,
            status=201,
            shows_secret=True,
            refusals={409: "The service client has expired."},
        ),
        "DELETE": Operation("Revoke the agent key", status=204),
    }

    def post(self, request: Request, org_id: str, client_id: str) -> Response:
        client = selectors.service_client(self.organization, client_id)
        return self.answer(agent_keys.mint_agent_key(actor=self.actor, client=client, **self.fields))

    def delete(self, request: Request, org_id: str, client_id: str) -> Response:
        client = selectors.service_client(self.organization, client_id)
        agent_keys.revoke_agent_key(actor=self.actor, client=client)
        return self.answer()
