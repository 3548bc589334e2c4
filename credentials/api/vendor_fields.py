"""The body and the answer of every route that stores credentials."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from gateway.lib.errors import Invalid
from gateway.web.operation import QueryParameter

REFUSED = {422: "The vendor rejected the credentials; nothing was stored."}
KEPT = {
    409: "The vendor did not confirm the new credentials (`credential_unconfirmed`): the stored ones stay active. "
    "Send them again, or with `anyway=true`."
}
ANYWAY = QueryParameter(
    "anyway",
    "`true` replaces stored credentials even if the vendor does not respond. Rejected credentials are never stored.",
    {"type": "string", "enum": ["true", "false"]},
)


def asks_anyway(request: Request) -> bool:
    """Raises: Invalid."""
    match request.query_params.get("anyway", "false"):
        case "true":
            return True
        case "false":
            return False
    raise Invalid(fields={"anyway": ["Must be true or false."]})


class FlatFields(serializers.Serializer[Any]):
    """The vendor's own fields, flat. Spec: D16, D64"""

    openapi_schema = {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "The fields that GET /api/vendors lists for this vendor.",
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
    validated = serializers.BooleanField(help_text="Whether the vendor accepted the credentials just now.")
