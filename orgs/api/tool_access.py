"""Tool allowlists over the API. proxy.api.discover lists the vendor's tools."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.catalog.registry import known_vendor
from gateway.catalog.vendor import TOOL_NAME_MAX_CHARACTERS
from gateway.web.api_view import OrgView
from gateway.web.fields import Texts, Timestamp
from gateway.web.gate import Gate
from gateway.web.operation import Operation
from orgs import selectors
from orgs.roles import ROLE_CHOICES, Role, TokenScope
from orgs.services import tool_access


class AllowlistOut(serializers.Serializer[Any]):
    """Spec: D75"""

    role = serializers.ChoiceField(ROLE_CHOICES)
    tools = serializers.ListField(child=serializers.CharField())
    updatedAt = Timestamp(source="updated_at")
    updatedBy = serializers.UUIDField(source="updated_by_id", allow_null=True)


class AllowlistSetOut(serializers.Serializer[Any]):
    """Spec: D76"""

    vendor = serializers.CharField()
    role = serializers.ChoiceField(ROLE_CHOICES)
    tools = serializers.ListField(child=serializers.CharField())
    updatedAt = Timestamp(source="updated_at")


class ToolsIn(serializers.Serializer[Any]):
    """The only tools that the role may call; an empty list allows none."""

    tools = Texts(max_length=settings.ALLOWLIST_TOOLS, max_characters=TOOL_NAME_MAX_CHARACTERS)


class ToolAccess(OrgView):
    """GET /api/orgs/:orgId/tool-access/:vendor. Spec: §4.9 · D75"""

    gates = {"GET": Gate(Role.ADMIN, token=TokenScope.READ)}
    operations = {
        "GET": Operation(
            "Read the allowed tools of each role; a role without a list can call every tool",
            answer=AllowlistOut,
            many=True,
        )
    }

    def get(self, request: Request, org_id: str, vendor: str) -> Response:
        rows = selectors.allowlist_rows(self.organization, vendor)
        # Lists of a vendor that left the catalog stay visible. Otherwise an unknown slug is 404.
        if not rows:
            known_vendor(vendor)
        return self.answer(rows)


class RoleToolAccess(OrgView):
    """PUT, DELETE /api/orgs/:orgId/tool-access/:vendor/:role. Spec: §4.9 · D9, D76"""

    gates = {"PUT": Gate(Role.OWNER, token=TokenScope.ADMIN), "DELETE": Gate(Role.OWNER, token=TokenScope.ADMIN)}
    operations = {
        "PUT": Operation("Let a role call only these tools", body=ToolsIn, answer=AllowlistSetOut),
        "DELETE": Operation("Let a role call every tool", status=204),
    }

    def put(self, request: Request, org_id: str, vendor: str, role: str) -> Response:
        return self.answer(
            tool_access.set_allowlist(
                actor=self.actor,
                organization=self.organization,
                vendor=vendor,
                role=role,
                tools=self.fields["tools"],
            )
        )

    def delete(self, request: Request, org_id: str, vendor: str, role: str) -> Response:
        tool_access.clear_allowlist(actor=self.actor, organization=self.organization, vendor=vendor, role=role)
        return self.answer()
