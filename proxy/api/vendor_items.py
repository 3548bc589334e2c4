"""A vendor's current resources, templates and prompts, with the roles that may use them."""

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
from orgs.roles import ROLE_CHOICES, Role, TokenScope
from proxy.control_plane.vendor_items import VendorItem, items_for, limited_roles
from proxy.protocol.item_kinds import ItemKind


class VendorItemOut(serializers.Serializer[Any]):
    """One resource, template or prompt."""

    own = serializers.CharField(help_text="The address or name at the vendor, and at the vendor's own endpoint.")
    exposed = serializers.CharField(help_text="The address or name at /v1/mcp.")
    name = serializers.CharField()
    title = serializers.CharField(allow_null=True)
    description = serializers.CharField(allow_null=True)
    mimeType = serializers.CharField(allow_null=True)
    arguments = serializers.ListField(child=serializers.CharField(), help_text="The names of a prompt's arguments.")


class VendorItemsOut(serializers.Serializer[Any]):
    """The vendor's lists. A vendor that does not declare resources or prompts has empty ones."""

    resources = VendorItemOut(many=True)
    templates = VendorItemOut(many=True)
    prompts = VendorItemOut(many=True)
    allowedRoles = serializers.ListField(
        child=serializers.ChoiceField(ROLE_CHOICES),
        help_text="Roles that can use all of these: they have no list of tools, resources or prompts for this vendor.",
    )


class VendorItems(OrgView):
    """GET /api/orgs/:orgId/tool-access/:vendor/items. Asks the vendor each time. docs/decisions/0104, 0115"""

    gates = {"GET": Gate(Role.ADMIN, organization_limit=settings.VENDOR_REQUESTS, token=TokenScope.READ)}
    operations = {
        "GET": Operation(
            "Load the vendor's resources and prompts",
            answer=VendorItemsOut,
            refusals={409: "The stored credential cannot be decrypted.", 502: "The vendor did not respond properly."},
        )
    }

    def get(self, request: Request, org_id: str, vendor: str) -> Response:
        known = registry.known_vendor(vendor)  # 404 for an unknown vendor, before the vendor is asked
        found = items_for(self.membership, known)
        limited = limited_roles(self.organization.id, known)
        return self.answer(
            {
                "resources": list(map(_shown, found[ItemKind.RESOURCE])),
                "templates": list(map(_shown, found[ItemKind.TEMPLATE])),
                "prompts": list(map(_shown, found[ItemKind.PROMPT])),
                "allowedRoles": [role.value for role in Role if role not in limited],
            }
        )


def _shown(item: VendorItem) -> dict[str, Any]:
    members = item.definition
    return {
        "own": item.own,
        "exposed": item.exposed,
        "name": members["name"],
        "title": members.get("title"),
        "description": members.get("description"),
        "mimeType": members.get("mimeType"),
        "arguments": [each["name"] for each in members.get("arguments", ())],
    }
