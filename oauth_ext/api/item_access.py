"""Lists of allowed resources and prompts of one service client over the API. docs/decisions/0115"""

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
from oauth_ext import selectors
from oauth_ext.services import service_client_item_lists as services
from orgs.allowed_items import ITEM_TYPE_CHOICES
from orgs.roles import Role, TokenScope


class ClientItemListOut(serializers.Serializer[Any]):
    """One list."""

    vendor = serializers.CharField()
    kind = serializers.ChoiceField(ITEM_TYPE_CHOICES)
    entries = serializers.ListField(child=serializers.CharField())
    updatedAt = Timestamp(source="updated_at")
    updatedBy = serializers.UUIDField(source="updated_by_id", allow_null=True)


class ClientItemListSetOut(serializers.Serializer[Any]):
    """The stored list."""

    vendor = serializers.CharField()
    client_id = serializers.CharField(source="client.client_id")
    kind = serializers.ChoiceField(ITEM_TYPE_CHOICES)
    entries = serializers.ListField(child=serializers.CharField())
    updatedAt = Timestamp(source="updated_at")


class ClientItemsIn(serializers.Serializer[Any]):
    """The only resources or prompts that it may use; an empty list allows none. The role's list counts as well."""

    entries = Texts(
        max_length=settings.ALLOWLIST_ITEMS,
        max_characters=MAX_ADDRESS_CHARACTERS,
        help_text="Addresses, templates of addresses, or names of prompts, as the vendor has them.",
    )


class ClientItemAccess(OrgView):
    """GET /api/orgs/:orgId/service-clients/:clientId/item-access/:vendor."""

    gates = {"GET": Gate(Role.ADMIN, token=TokenScope.READ)}
    operations = {
        "GET": Operation(
            "Read the allowed resources and prompts of a service client", answer=ClientItemListOut, many=True
        )
    }

    def get(self, request: Request, org_id: str, client_id: str, vendor: str) -> Response:
        rows = selectors.client_item_lists(selectors.service_client(self.organization, client_id), vendor)
        # A list of a vendor that left the catalog stays visible. Otherwise an unknown slug is 404.
        if not rows:
            known_vendor(vendor)
        return self.answer(rows)


class ClientVendorItemAccess(OrgView):
    """PUT, DELETE /api/orgs/:orgId/service-clients/:clientId/item-access/:vendor/:kind. Spec: D9"""

    gates = {"PUT": Gate(Role.OWNER, token=TokenScope.ADMIN), "DELETE": Gate(Role.OWNER, token=TokenScope.ADMIN)}
    operations = {
        "PUT": Operation(
            "Let a service client use only these resources or prompts",
            body=ClientItemsIn,
            answer=ClientItemListSetOut,
        ),
        "DELETE": Operation("Remove a service client’s list of resources or prompts", status=204),
    }

    def put(self, request: Request, org_id: str, client_id: str, vendor: str, kind: str) -> Response:
        return self.answer(
            services.set_client_item_list(
                actor=self.actor,
                organization=self.organization,
                client=selectors.service_client(self.organization, client_id),
                vendor=vendor,
                kind=kind,
                entries=self.fields["entries"],
            )
        )

    def delete(self, request: Request, org_id: str, client_id: str, vendor: str, kind: str) -> Response:
        services.clear_client_item_list(
            actor=self.actor,
            organization=self.organization,
            client=selectors.service_client(self.organization, client_id),
            vendor=vendor,
            kind=kind,
        )
        return self.answer()
