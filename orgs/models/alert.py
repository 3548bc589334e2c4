"""Alerts of an organization: its settings, the causes, and the messages. docs/decisions/0096"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from gateway.lib import clock, ids
from orgs.alert_terms import URL_CHARACTERS, AlertKind, Moment

CAUSE_CHARACTERS = 120
LABEL_CHARACTERS = 200
DETAIL_CHARACTERS = 300
_KINDS = [(kind.value, kind.value) for kind in AlertKind]


class AlertSettings(models.Model):
    """An organization without a row has the defaults: every kind, by e-mail to owners and admins."""

    organization = models.OneToOneField(
        "orgs.Organization", models.CASCADE, primary_key=True, related_name="alert_settings"
    )
    muted_kinds = models.JSONField(default=list)
    by_mail = models.BooleanField(default=True)
    webhook_url = models.CharField(max_length=URL_CHARACTERS, blank=True)
    # JSON with `secret`, and `previousSecret` for a while after a rotation. Empty without a webhook.
    secret_key_id = models.CharField(max_length=64, blank=True)
    secret_sealed = models.BinaryField(default=bytes)
    previous_secret_ends_at = models.DateTimeField(null=True)
    # Minutes of the day in `time_zone`; equal ones stand for no quiet hours.
    quiet_from = models.PositiveSmallIntegerField(default=0)
    quiet_until = models.PositiveSmallIntegerField(default=0)
    time_zone = models.CharField(max_length=64, default="UTC")

    def __str__(self) -> str:
        return f"alert settings of {self.organization_id}"


class Alert(models.Model):
    """One cause. The row stays when it is over: a cause that comes back soon begins no new alert."""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="alerts")
    kind = models.CharField(max_length=24, choices=_KINDS)
    cause = models.CharField(max_length=CAUSE_CHARACTERS)
    # The name of the thing, and the reason, as they were seen last. English; pages translate them.
    label = models.CharField(max_length=LABEL_CHARACTERS)
    detail = models.CharField(max_length=DETAIL_CHARACTERS, blank=True)
    level = models.PositiveSmallIntegerField(default=1)
    began_at = models.DateTimeField()
    # None while it goes on.
    ended_at = models.DateTimeField(null=True)
    # Since when the cause has not been seen; it is over after OVER_AFTER.
    absent_since = models.DateTimeField(null=True)
    # The level that people know of; 0: none, or they were told the end.
    told_level = models.PositiveSmallIntegerField(default=0)
    # When people were last told a begin.
    told_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "kind", "cause"], name="alert_once_per_cause"),
        ]
        indexes = [
            models.Index(fields=["organization", "-began_at"], name="alerts_of_organization"),
            # The next look reads them, of all organizations.
            models.Index(
                fields=["kind", "organization"],
                condition=Q(ended_at__isnull=True) | Q(told_level__gt=0),
                name="alerts_that_count",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.label}"


class AlertMessage(models.Model):
    """One message: to people by e-mail, to the webhook, or both. Kept for MESSAGES_KEPT_FOR."""

    class Delivery(models.TextChoices):
        """The state at the webhook."""

        NONE = "none", "No webhook"
        WAITING = "waiting", "Waiting"
        SENT = "sent", "Sent"
        FAILED = "failed", "Failed"

    # The id of the webhook's event: a message that is sent again is recognised.
    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="+", db_index=False)
    alert = models.ForeignKey(Alert, models.CASCADE, null=True, related_name="messages", db_index=False)
    kind = models.CharField(max_length=24, blank=True)  # empty for a test
    cause = models.CharField(max_length=CAUSE_CHARACTERS, blank=True)
    moment = models.CharField(max_length=5, choices=[(each.value, each.value) for each in Moment])
    label = models.CharField(max_length=LABEL_CHARACTERS, blank=True)
    detail = models.CharField(max_length=DETAIL_CHARACTERS, blank=True)
    level = models.PositiveSmallIntegerField(default=1)
    began_at = models.DateTimeField()
    created_at = models.DateTimeField(default=clock.now)
    mails = models.PositiveIntegerField(default=0)  # addresses that it goes to
    webhook = models.CharField(max_length=7, choices=Delivery.choices, default=Delivery.NONE)
    attempts = models.PositiveSmallIntegerField(default=0)
    reason = models.CharField(max_length=DETAIL_CHARACTERS, blank=True)
    # The deliverer that has it now. It is free again at `next_attempt_at`.
    claim = models.UUIDField(null=True)
    next_attempt_at = models.DateTimeField(default=clock.now)
    delivered_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["organization", "-created_at", "-id"], name="alert_messages_of_org"),
            models.Index(
                fields=["organization", "created_at", "id"],
                condition=Q(webhook="waiting"),
                name="alert_messages_waiting",
            ),
            models.Index(fields=["created_at"], name="alert_messages_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.moment} {self.kind} {self.label}"
