"""A vendor's current tools, with the roles that may call each and whether it changed."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.catalog import registry
from gateway.web.api_view import OrgView
from gateway.web.gate import Gate
from gateway.web.operation import Operation
from orgs import selectors
from orgs.access_rules import Allowlists, role_may_call_tool
from orgs.roles import ROLE_CHOICES, Role, TokenScope
from proxy.control_plane import discovery
from proxy.protocol.tool_definitions import title_of


class ToolOut(serializers.Serializer[Any]):
    """One tool, by the vendor's own name. Spec: D77, D78"""

    name = serializers.CharField()
    title = serializers.CharField(allow_null=True)
    description = serializers.CharField(allow_null=True)
    inputSchema = serializers.JSONField()
    annotations = serializers.JSONField(allow_null=True)
    changed = serializers.BooleanField(help_text="Whether it differs from the last approved version.")
    allowedRoles = serializers.ListField(child=serializers.ChoiceField(ROLE_CHOICES))


class DiscoveredOut(serializers.Serializer[Any]):
    """The vendor's tools, in its order."""

    tools = ToolOut(many=True)


class Discover(OrgView):
    """GET /api/orgs/:orgId/tool-access/:vendor/discover. Asks the vendor each time. Spec: §4.9 · D78"""

    gates = {"GET": Gate(Role.ADMIN, organization_limit=settings.VENDOR_REQUESTS, token=TokenScope.READ)}
    operations = {
        "GET": Operation(
            "Load the vendor's tools",
            answer=DiscoveredOut,
            refusals={409: "The stored credential cannot be decrypted.", 502: "The vendor did not respond properly."},
        )
    }

    def get(self, request: Request, org_id: str, vendor: str) -> Response:
        # 404 for an unknown vendor, before the vendor is asked.
        known = registry.known_vendor(vendor)
        found = discovery.discover_for(self.membership, known)
        allowlists = selectors.allowlists(self.organization.id)
        tools = [
            _tool(name, each, name in found.changed, _roles(vendor, name, allowlists))
            for name, each in found.definitions.items()
        ]
        return self.answer({"tools": tools})


def _roles(vendor: str, tool: str, allowlists: Allowlists) -> list[str]:
    # The function that also filters tools/list and refuses calls.
    return [role.value for role in Role if role_may_call_tool(role, vendor, tool, allowlists)]


def _tool(name: str, definition: dict[str, Any], is_changed: bool, roles: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "title": title_of(definition),
        "description": definition.get("description"),
        "inputSchema": definition.get("inputSchema", {"type": "object"}),
        "annotations": definition.get("annotations"),
        "changed": is_changed,
        "allowedRoles": roles,
    }
