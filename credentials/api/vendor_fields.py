"""What all routes that store credentials share: the vendor's flat fields, and what is said of them afterwards."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

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
