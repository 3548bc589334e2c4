"""The body and the answer of every route that stores credentials."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

REFUSED = {422: "The vendor rejected the credentials; nothing was stored."}


class FlatFields(serializers.Serializer[Any]):
    """The vendor's own fields, flat. Spec: D16, D64"""

    openapi_schema = {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "The fields that GET /api/vendors names for this vendor.",
    }

    def to_internal_value(self, data: object) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise serializers.ValidationError("Must be an object.")
        # Unknown fields are refused later, by the catalog: a typo would silently store nothing.
        return dict(data)


class StoredOut(serializers.Serializer[Any]):
    """Spec: D62, D66"""

    id = serializers.UUIDField()
    vendor = serializers.CharField()
    validated = serializers.BooleanField(help_text="Whether the vendor accepted it just now.")
