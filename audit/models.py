"""The two logs: plain ids and labels without foreign keys, because rows outlive their subjects. And their stream."""

from __future__ import annotations

from django.db import models

from audit.call_status import CallKind, CallSource, CallStatus
from audit.shipping_models import DeliveryHour, LogDestination, RefusedRecord, SentHour
from audit.usage_models import UsageCount, UsageDay, UsageDuration, UsageLabel
from gateway.lib import ids

__all__ = [
    "AdminAuditEntry",
    "DeliveryHour",
    "LogDestination",
    "LogModel",
    "PrunedLog",
    "RefusedRecord",
    "RequestAuditEntry",
    "Seal",
    "SentHour",
    "StreamCursor",
    "StreamEra",
    "UsageCount",
    "UsageDay",
    "UsageDuration",
    "UsageLabel",
]
SOURCE_CHOICES = [(source.value, source.value.upper()) for source in CallSource]
KIND_CHOICES = [(kind.value, kind.value.capitalize()) for kind in CallKind]
STATUS_CHOICES = [(status.value, status.value.capitalize()) for status in CallStatus]
REJECTED = "vendor_rejected_credentials"  # the error code of a call whose vendor answered 401 or 403
FINAL = models.Q(position__isnull=False)
NOT_SUCCESS = ~models.Q(status=CallStatus.SUCCESS.value)
NOT_TOOL = ~models.Q(kind=CallKind.TOOL.value)
REJECTED_CREDENTIAL = models.Q(error_code=REJECTED)


class RequestAuditEntry(models.Model):
    """One call or its refusal, never with arguments, results or secrets. Spec: §2, §6 · D80"""

    id = models.UUIDField(primary_key=True, editable=False)  # a log id of `timestamp`
    timestamp = models.DateTimeField()
    org_id = models.UUIDField()
    user_id = models.CharField(max_length=120)  # a person's id, or svc:<org-id>:<client-id>
    user_label = models.CharField(max_length=200)
    vendor = models.CharField(max_length=40, blank=True)
    tool = models.CharField(max_length=128, blank=True)
    kind = models.CharField(
        max_length=10, choices=KIND_CHOICES, default=CallKind.TOOL.value, db_default=CallKind.TOOL.value
    )
    item = models.CharField(max_length=512, blank=True, default="", db_default="")  # not of a tool
    source = models.CharField(max_length=3, choices=SOURCE_CHOICES)
    status = models.CharField(max_length=8, choices=STATUS_CHOICES)
    error_code = models.CharField(max_length=40, blank=True)
    duration_ms = models.PositiveIntegerField(default=0)
    vendor_ms = models.PositiveIntegerField(default=0)
    credential_scope = models.CharField(max_length=16, blank=True)
    credential_name = models.CharField(max_length=100, blank=True)
    cached = models.BooleanField(default=False)
    client_id = models.CharField(max_length=255, blank=True)
    client_name = models.CharField(max_length=100, blank=True)
    ip_address = models.CharField(max_length=45, blank=True)
    request_id = models.CharField(max_length=64)
    request_bytes = models.PositiveIntegerField(default=0)
    response_bytes = models.PositiveIntegerField(default=0)
    # Above 1 only in rows of rate-limited calls. Spec: D146
    # No PositiveIntegerField: adding its check, PostgreSQL reads the whole table while no call can be recorded.
    count = models.IntegerField(default=1, db_default=1)
    # The parts of `count` by process, so that a repeated statement changes nothing. None in all other rows.
    count_parts = models.JSONField(null=True, default=None, editable=False)

    # The place in the stream, given when the row becomes final; None until then. See audit.stream.
    position = models.BigIntegerField(null=True, default=None, editable=False)

    class Meta:
        verbose_name_plural = "request audit entries"
        # Ids are times, so an index that ends with the id serves filters by time and the order of the log. Each starts
        # with the organization: with an index on the id alone, the planner may scan the rows of all organizations for
        # the last page of a quiet one.
        # Each also holds the columns that filters are combined with, so that a count and the ids of a page are read
        # from it alone. None holds a column that an outcome changes, except the partial ones for what is rare.
        indexes = [
            models.Index(fields=["org_id", "id", "vendor", "tool", "source"], name="request_log_of_org"),
            models.Index(fields=["org_id", "user_id", "id", "vendor", "tool", "source"], name="request_log_of_user"),
            models.Index(fields=["org_id", "vendor", "id", "tool", "source"], name="request_log_of_vendor"),
            models.Index(fields=["org_id", "request_id", "id"], name="request_log_of_request"),
            models.Index(fields=["position", "id"], name="request_log_stream", condition=FINAL),
            models.Index(fields=["org_id", "position", "id"], name="request_log_stream_of_org", condition=FINAL),
            models.Index(
                fields=["org_id", "status", "id", "user_id", "vendor", "tool", "source"],
                name="request_log_of_status",
                condition=NOT_SUCCESS,
            ),
            models.Index(
                fields=["org_id", "kind", "id", "user_id", "vendor"],
                name="request_log_of_kind",
                condition=NOT_TOOL,
            ),
            models.Index(fields=["org_id", "id"], name="request_log_rejected", condition=REJECTED_CREDENTIAL),
            models.Index(fields=["id"], name="request_log_open", condition=~FINAL),
        ]

    def __str__(self) -> str:
        return f"{self.timestamp:%Y-%m-%d %H:%M:%S} {self.user_label} {self.tool} {self.status}"


class AdminAuditEntry(models.Model):
    """One administrative change, written in its transaction. Spec: §2 · D81, D82"""

    id = models.UUIDField(primary_key=True, editable=False)  # a log id of `timestamp`
    timestamp = models.DateTimeField()
    org_id = models.UUIDField()
    event_type = models.CharField(max_length=60)
    actor_id = models.CharField(max_length=120)
    actor_label = models.CharField(max_length=200)
    target_id = models.CharField(max_length=120, blank=True)
    target_label = models.CharField(max_length=200, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    ip_address = models.CharField(max_length=45, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    position = models.BigIntegerField(null=True, default=None, editable=False)  # as in the request log

    class Meta:
        verbose_name_plural = "admin audit entries"
        indexes = [
            models.Index(fields=["org_id", "id"], name="admin_log_by_org"),
            models.Index(fields=["org_id", "event_type", "id"], name="admin_log_by_event"),
            models.Index(fields=["org_id", "actor_id", "id"], name="admin_log_by_actor"),
            models.Index(fields=["org_id", "target_id", "id"], name="admin_log_by_target"),
            models.Index(fields=["position", "id"], name="admin_log_stream", condition=FINAL),
            models.Index(fields=["org_id", "position", "id"], name="admin_log_stream_of_org", condition=FINAL),
            models.Index(fields=["id"], name="admin_log_open", condition=~FINAL),
        ]

    def __str__(self) -> str:
        return f"{self.timestamp:%Y-%m-%d %H:%M:%S} {self.actor_label} {self.event_type}"


LogModel = type[RequestAuditEntry] | type[AdminAuditEntry]


class StreamEra(models.Model):
    """One database cluster that has numbered transactions for the logs. A restored copy begins an era of its own."""

    identity = models.CharField(max_length=80, primary_key=True)
    # Added to the cluster's transaction ids, so that positions go on rising in a cluster whose ids begin anew.
    start = models.BigIntegerField()


class StreamCursor(models.Model):
    """How far a named consumer has read one log."""

    name = models.CharField(max_length=80)
    log = models.CharField(max_length=8)
    position = models.BigIntegerField(default=0)
    # The last row that was handed out of those at `position`.
    row_id = models.UUIDField(default=ids.NO_ID)
    # All rows that were final at this time have been handed out.
    reached_at = models.DateTimeField(null=True, default=None)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "log"], name="stream_cursor_of_a_consumer")]

    def __str__(self) -> str:
        return f"{self.name} {self.log} {self.position}"


class Seal(models.Model):
    """A batch of one organization's rows in one log, sealed: any later change of them shows. docs/decisions/0043"""

    org_id = models.UUIDField()
    log = models.CharField(max_length=8)
    number = models.BigIntegerField()  # from 1, without gaps
    # The last row of the batch.
    position = models.BigIntegerField()
    row_id = models.UUIDField()
    rows = models.IntegerField()
    # The columns that the digests of rows cover: see audit.seals.
    version = models.SmallIntegerField()
    # For each row in the stream's order 16 bytes of id and 16 of digest.
    entries = models.BinaryField()
    entries_digest = models.BinaryField(max_length=32)
    digest = models.BinaryField(max_length=32)  # of the seal before, this one's facts and its entries' digest
    made_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["org_id", "log", "number"], name="seal_of_an_organization")]

    def __str__(self) -> str:
        return f"{self.org_id} {self.log} {self.number}"


class PrunedLog(models.Model):
    """Up to which time retention has removed a log's rows."""

    log = models.CharField(max_length=8, primary_key=True)
    before = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.log} before {self.before}"
