"""Allowlists of one service client over the API; shapes as those of roles. Spec: D75-D77, D165"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.catalog.registry import known_vendor
from gateway.catalog.vendor import TOOL_NAME_MAX_CHARACTERS
from gateway.web.api_view import OrgView
from gateway.web.fields import Text, Texts, Timestamp
from gateway.web.gate import Gate
from gateway.web.operation import Operation
from oauth_ext import selectors
from oauth_ext.services import service_client_allowlists as services
from orgs.roles import Role, TokenScope


class ClientAllowlistOut(serializers.Serializer[Any]):
    """Spec: D75, D165"""

    vendor = serializers.CharField()
    tools = serializers.ListField(child=serializers.CharField())
    updatedAt = Timestamp(source="updated_at")
    updatedBy = serializers.UUIDField(source="updated_by_id", allow_null=True)


class ClientAllowlistSetOut(serializers.Serializer[Any]):
    """Spec: D76, D165"""

    vendor = serializers.CharField()
    client_id = serializers.CharField(source="client.client_id")
    tools = serializers.ListField(child=serializers.CharField())
    updatedAt = Timestamp(source="updated_at")


class ClientToolsIn(serializers.Serializer[Any]):
    """The only tools that the service client may call; an empty list allows none. The role's list counts as well."""

    tools = Texts(max_length=settings.ALLOWLIST_TOOLS, max_characters=TOOL_NAME_MAX_CHARACTERS)


class ToolModeBody(serializers.Serializer[Any]):
    """The kind of tools that it may call at any vendor, later ones included."""

    mode = Text(
        help_text="`all`, or `read_only`: tools the vendor marks as read-only. An unmarked tool counts as writing."
    )


class ClientToolAccess(OrgView):
    """GET, PUT /api/orgs/:orgId/service-clients/:clientId/tool-access. Spec: D75, D165"""

    gates = {"GET": Gate(Role.ADMIN, token=TokenScope.READ), "PUT": Gate(Role.OWNER, token=TokenScope.ADMIN)}
    operations = {
        "GET": Operation("List the allowed tools of a service client, by vendor", answer=ClientAllowlistOut, many=True),
        "PUT": Operation(
            "Let a service client call every tool, or only read-only ones", body=ToolModeBody, answer=ToolModeBody
        ),
    }

    def get(self, request: Request, org_id: str, client_id: str) -> Response:
        return self.answer(selectors.client_allowlists(selectors.service_client(self.organization, client_id)))

    def put(self, request: Request, org_id: str, client_id: str) -> Response:
        client = selectors.service_client(self.organization, client_id)
        changed = services.set_tool_mode(
            actor=self.actor, organization=self.organization, client=client, mode=self.fields["mode"]
        )
        return self.answer({"mode": changed.tool_mode})


class ClientVendorToolAccess(OrgView):
    """GET, PUT, DELETE /api/orgs/:orgId/service-clients/:clientId/tool-access/:vendor. Spec: D9, D75, D76, D165"""

    gates = {
        "GET": Gate(Role.ADMIN, token=TokenScope.READ),
        "PUT": Gate(Role.OWNER, token=TokenScope.ADMIN),
        "DELETE": Gate(Role.OWNER, token=TokenScope.ADMIN),
    }
    operations = {
        "GET": Operation(
            "Read the allowed tools for a vendor; without a list, every tool is allowed",
            answer=ClientAllowlistOut,
            many=True,
        ),
        "PUT": Operation(
            "Let a service client call only these tools", body=ClientToolsIn, answer=ClientAllowlistSetOut
        ),
        "DELETE": Operation("Let a service client call every tool", status=204),
    }

    def get(self, request: Request, org_id: str, client_id: str, vendor: str) -> Response:
        rows = selectors.client_allowlists(selectors.service_client(self.organization, client_id), vendor)
        # A list of a vendor that left the catalog stays visible. Otherwise an unknown slug is 404.
        if not rows:
            known_vendor(vendor)
        return self.answer(rows)

    def put(self, request: Request, org_id: str, client_id: str, vendor: str) -> Response:
        client = selectors.service_client(self.organization, client_id)
        return self.answer(
            services.set_client_allowlist(
                actor=self.actor,
                organization=self.organization,
                client=client,
                vendor=vendor,
                tools=self.fields["tools"],
            )
        )

    def delete(self, request: Request, org_id: str, client_id: str, vendor: str) -> Response:
        client = selectors.service_client(self.organization, client_id)
        services.clear_client_allowlist(actor=self.actor, organization=self.organization, client=client, vendor=vendor)
        return self.answer()
