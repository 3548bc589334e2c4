"""What all routes that store credentials share: the vendor of the path and its flat fields."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework import serializers

from gateway.catalog import registry
from gateway.catalog.vendor import Vendor
from gateway.lib import ids
from gateway.lib.errors import NotFound

REFUSED = {422: "The vendor rejected the credentials; nothing was stored."}


class FlatFields(serializers.Serializer[Any]):
    """The vendor's own fields, flat. An unknown one is refused: a typo would silently store nothing. Spec: D16, D64"""

    openapi_schema = {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "The fields that GET /api/vendors names for this vendor.",
    }

    def to_internal_value(self, data: object) -> dict[str, Any]:
        """Any object; the catalog knows what belongs into it."""
        if not isinstance(data, dict):
            raise serializers.ValidationError("Must be an object.")
        return dict(data)


class StoredOut(serializers.Serializer[Any]):
    """A stored credential, without anything of what is in it. Spec: D62, D66"""

    id = serializers.UUIDField()
    vendor = serializers.CharField()
    validated = serializers.BooleanField(help_text="Whether the vendor accepted it just now.")


def known_vendor(slug: str) -> Vendor:
    """The vendor of the path.

    Raises: NotFound.   Spec: D64
    """
    vendor = registry.vendor_or_none(slug)
    if vendor is None:
        raise NotFound
    return vendor


def known_id(text: str) -> UUID:
    """An id of the path.

    Raises: NotFound.   Spec: D4
    """
    key = ids.parse_id(text)
    if key is None:
        raise NotFound
    return key
