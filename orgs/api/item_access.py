"""Lists of allowed resources and prompts over the API. docs/decisions/0115"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.catalog.registry import known_vendor
from gateway.lib.uri_templates import MAX_ADDRESS_CHARACTERS
from gateway.web.api_view import OrgView
from gateway.web.fields import Texts, Timestamp
from gateway.web.gate import Gate
from gateway.web.operation import Operation
from orgs import selectors
from orgs.allowed_items import ITEM_TYPE_CHOICES
from orgs.roles import ROLE_CHOICES, Role, TokenScope
from orgs.services import item_access


class ItemListOut(serializers.Serializer[Any]):
    """One list. `kind`: resources or prompts."""

    role = serializers.ChoiceField(ROLE_CHOICES)
    kind = serializers.ChoiceField(ITEM_TYPE_CHOICES)
    entries = serializers.ListField(child=serializers.CharField())
    updatedAt = Timestamp(source="updated_at")
    updatedBy = serializers.UUIDField(source="updated_by_id", allow_null=True)


class ItemListSetOut(serializers.Serializer[Any]):
    """The stored list."""

    vendor = serializers.CharField()
    role = serializers.ChoiceField(ROLE_CHOICES)
    kind = serializers.ChoiceField(ITEM_TYPE_CHOICES)
    entries = serializers.ListField(child=serializers.CharField())
    updatedAt = Timestamp(source="updated_at")


class ItemsIn(serializers.Serializer[Any]):
    """The only resources or prompts that may be used; an empty list allows none."""

    entries = Texts(
        max_length=settings.ALLOWLIST_ITEMS,
        max_characters=MAX_ADDRESS_CHARACTERS,
        help_text="Addresses, templates of addresses, or names of prompts, as the vendor has them.",
    )


class ItemAccess(OrgView):
    """GET /api/orgs/:orgId/item-access/:vendor."""

    gates = {"GET": Gate(Role.ADMIN, token=TokenScope.READ)}
    operations = {
        "GET": Operation("Read the allowed resources and prompts of each role", answer=ItemListOut, many=True)
    }

    def get(self, request: Request, org_id: str, vendor: str) -> Response:
        rows = selectors.item_list_rows(self.organization, vendor)
        # Lists of a vendor that left the catalog stay visible. Otherwise an unknown slug is 404.
        if not rows:
            known_vendor(vendor)
        return self.answer(rows)


class RoleItemAccess(OrgView):
    """PUT, DELETE /api/orgs/:orgId/item-access/:vendor/:role/:kind. Spec: D9"""

    gates = {"PUT": Gate(Role.OWNER, token=TokenScope.ADMIN), "DELETE": Gate(Role.OWNER, token=TokenScope.ADMIN)}
    operations = {
        "PUT": Operation("Let a role use only these resources or prompts", body=ItemsIn, answer=ItemListSetOut),
        "DELETE": Operation("Remove a role’s list of resources or prompts", status=204),
    }

    def put(self, request: Request, org_id: str, vendor: str, role: str, kind: str) -> Response:
        return self.answer(
            item_access.set_item_list(
                actor=self.actor,
                organization=self.organization,
                vendor=vendor,
                role=role,
                kind=kind,
                entries=self.fields["entries"],
            )
        )

    def delete(self, request: Request, org_id: str, vendor: str, role: str, kind: str) -> Response:
        item_access.clear_item_list(
            actor=self.actor, organization=self.organization, vendor=vendor, role=role, kind=kind
        )
        return self.answer()
