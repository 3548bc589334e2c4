"""The two audit tables: plain ids and labels without foreign keys, because rows outlive their subjects."""

from __future__ import annotations

from django.db import models

from audit.call_status import CallSource, CallStatus
from gateway.lib import clock, ids

SOURCE_CHOICES = [(source.value, source.value.upper()) for source in CallSource]
STATUS_CHOICES = [(status.value, status.value.capitalize()) for status in CallStatus]


class RequestAuditEntry(models.Model):
    """One tool call or its refusal, never with arguments, results or secrets. Spec: §2, §6 · D80"""

    id = models.UUIDField(primary_key=True, default=ids.new_log_id, editable=False)
    timestamp = models.DateTimeField(default=clock.now)
    org_id = models.UUIDField()
    user_id = models.CharField(max_length=120)  # a person's id, or svc:<org-id>:<client-id>
    user_label = models.CharField(max_length=200)
    vendor = models.CharField(max_length=40, blank=True)
    tool = models.CharField(max_length=128, blank=True)
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

    class Meta:
        verbose_name_plural = "request audit entries"
        # Each starts with the organization. With an index on the time alone, the planner may scan the rows of all
        # organizations for the last page of a quiet one.
        indexes = [
            models.Index(fields=["org_id", "-timestamp", "-id"], name="request_audit_by_org"),
            models.Index(fields=["org_id", "user_id", "-timestamp", "-id"], name="request_audit_by_user"),
            models.Index(fields=["org_id", "vendor", "-timestamp", "-id"], name="request_audit_by_vendor"),
            models.Index(fields=["org_id", "tool", "-timestamp", "-id"], name="request_audit_by_tool"),
            models.Index(fields=["org_id", "status", "-timestamp", "-id"], name="request_audit_by_status"),
            models.Index(fields=["org_id", "request_id", "-timestamp", "-id"], name="request_audit_by_request"),
            models.Index(
                fields=["org_id", "-timestamp"],
                condition=models.Q(error_code="vendor_rejected_credentials"),
                name="request_audit_rejected",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.timestamp:%Y-%m-%d %H:%M:%S} {self.user_label} {self.tool} {self.status}"


class AdminAuditEntry(models.Model):
    """One administrative change, written in its transaction. Spec: §2 · D81, D82"""

    id = models.UUIDField(primary_key=True, default=ids.new_log_id, editable=False)
    timestamp = models.DateTimeField(default=clock.now)
    org_id = models.UUIDField()
    event_type = models.CharField(max_length=60)
    actor_id = models.CharField(max_length=120)
    actor_label = models.CharField(max_length=200)
    target_id = models.CharField(max_length=120, blank=True)
    target_label = models.CharField(max_length=200, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    ip_address = models.CharField(max_length=45, blank=True)
    request_id = models.CharField(max_length=64, blank=True)

    class Meta:
        verbose_name_plural = "admin audit entries"
        indexes = [models.Index(fields=["org_id", "-timestamp", "-id"], name="admin_audit_by_org")]

    def __str__(self) -> str:
        return f"{self.timestamp:%Y-%m-%d %H:%M:%S} {self.actor_label} {self.event_type}"
