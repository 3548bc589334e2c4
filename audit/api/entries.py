"""Entries of both logs as JSON and as CSV. Spec: §2 Audit entries · D80, D81, D85"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rest_framework import serializers

from audit.models import KIND_CHOICES, SOURCE_CHOICES, STATUS_CHOICES, AdminAuditEntry, RequestAuditEntry
from gateway.lib import clock
from gateway.web.fields import Timestamp


class TextOrNull(serializers.CharField):
    """The empty text of a column is null."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_null": True, "read_only": True, **options})

    def to_representation(self, value: str) -> str | None:  # type: ignore[override]
        return value or None


class CredentialUsedOut(serializers.Serializer[Any]):
    """The level and name of the credential that served the call."""

    scope = serializers.CharField(source="credential_scope")
    name = serializers.CharField(source="credential_name")

    def to_representation(self, instance: RequestAuditEntry) -> dict[str, Any] | None:  # type: ignore[override]
        return super().to_representation(instance) if instance.credential_scope else None


class RequestEntryOut(serializers.Serializer[Any]):
    """One call or its refusal. Spec: D80, D146"""

    id = serializers.UUIDField()
    timestamp = Timestamp()
    orgId = serializers.UUIDField(source="org_id")
    userId = serializers.CharField(source="user_id")
    userLabel = serializers.CharField(source="user_label", help_text="As it was at the time of the call.")
    vendor = serializers.CharField()
    tool = serializers.CharField(help_text="Empty for a call that is not of a tool.")
    kind = serializers.ChoiceField(KIND_CHOICES)
    item = TextOrNull(
        help_text="The address of a resource, without its query, or the name of a prompt, as the vendor has it."
    )
    source = serializers.ChoiceField(SOURCE_CHOICES)  # type: ignore[assignment]
    status = serializers.ChoiceField(
        STATUS_CHOICES,
        help_text="unknown: the service stopped after sending the call and before its outcome was known.",
    )
    errorCode = TextOrNull(source="error_code")
    durationMs = serializers.IntegerField(source="duration_ms")
    vendorMs = serializers.IntegerField(source="vendor_ms")
    credential = CredentialUsedOut(source="*", allow_null=True)
    cached = serializers.BooleanField()
    clientId = serializers.CharField(source="client_id")
    clientName = TextOrNull(source="client_name")
    ipAddress = serializers.CharField(source="ip_address")
    requestId = serializers.CharField(source="request_id")
    requestBytes = serializers.IntegerField(source="request_bytes")
    responseBytes = serializers.IntegerField(source="response_bytes")
    count = serializers.IntegerField(
        help_text="Above 1 only where the rate-limited calls of one caller in one minute share an entry."
    )


class OwnCallOut(RequestEntryOut):
    """One call of the reader, or its refusal. The names of credentials are for admins."""

    credential = None  # type: ignore[assignment]


class AdminEntryOut(serializers.Serializer[Any]):
    """One administrative change. Spec: D81"""

    id = serializers.UUIDField()
    timestamp = Timestamp()
    orgId = serializers.UUIDField(source="org_id")
    eventType = serializers.CharField(source="event_type")
    actorId = serializers.CharField(source="actor_id")
    actorLabel = serializers.CharField(source="actor_label", help_text="As it was at the time of the change.")
    targetId = serializers.CharField(source="target_id", required=False, help_text="Absent if there is no target.")
    targetLabel = serializers.CharField(
        source="target_label", required=False, help_text="Absent if there is no target."
    )
    metadata = serializers.DictField()
    ipAddress = serializers.CharField(source="ip_address")
    requestId = serializers.CharField(source="request_id")

    def to_representation(self, instance: AdminAuditEntry) -> dict[str, Any]:
        shown = super().to_representation(instance)
        if not instance.target_id:
            del shown["targetId"], shown["targetLabel"]
        return shown


class _LogOut(serializers.Serializer[Any]):
    total = serializers.IntegerField(help_text="All matching entries.")
    limit = serializers.IntegerField()
    offset = serializers.IntegerField()
    totalIsEstimate = serializers.BooleanField(
        required=False, help_text="Present (and true) if there are more than 100,000 entries."
    )
    nextCursor = serializers.UUIDField(
        required=False, help_text="The `cursor` of the next page. Absent on the last page."
    )


class RequestLogOut(_LogOut):
    """A page of the request log, newest first. Spec: D79"""

    entries = RequestEntryOut(many=True)


class OwnCallsOut(_LogOut):
    """A page of one's own calls, newest first."""

    entries = OwnCallOut(many=True)


class AdminLogOut(_LogOut):
    """A page of the admin log, newest first. Spec: D79"""

    entries = AdminEntryOut(many=True)


def csv_row(values: Sequence[object]) -> list[str]:
    return [_cell(value) for value in values]


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return clock.rfc3339(value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return str(value)
