"""Destinations of log shipping, and what became of the records sent there. Spec: §2 Log shipping destination · D95"""

from __future__ import annotations

from django.db import models

from gateway.lib import clock, ids

NAME_CHARACTERS = 100
URL_CHARACTERS = 2_048
ERROR_CHARACTERS = 300


class DestinationStatus(models.TextChoices):
    NEW = "new"  # nothing was sent yet
    OK = "ok"
    RETRYING = "retrying"
    FAILING = "failing"  # attempts have failed for minutes, or the destination has to be changed


class LogDestination(models.Model):
    """A platform that gets a copy of each record of one organization, and how far it has got."""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    org_id = models.UUIDField(db_index=True)
    label = models.CharField(max_length=NAME_CHARACTERS)
    platform = models.CharField(max_length=16)  # a value of the registry
    endpoint_url = models.CharField(max_length=URL_CHARACTERS)
    config_key_id = models.CharField(max_length=64)
    config_sealed = models.BinaryField()
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=clock.now)

    # The last record of each log that was delivered, refused or skipped.
    requests_position = models.BigIntegerField(default=0)
    requests_row = models.UUIDField(default=ids.NO_ID)
    admin_position = models.BigIntegerField(default=0)
    admin_row = models.UUIDField(default=ids.NO_ID)
    # Records from before this time are skipped. None: there are none.
    skip_before = models.DateTimeField(null=True, default=None)

    status = models.CharField(max_length=8, choices=DestinationStatus.choices, default=DestinationStatus.NEW)
    failures = models.IntegerField(default=0)  # since the last success
    failing_since = models.DateTimeField(null=True, default=None)
    last_error = models.CharField(max_length=ERROR_CHARACTERS, blank=True)
    last_attempt_at = models.DateTimeField(null=True, default=None)
    last_delivery_at = models.DateTimeField(null=True, default=None)
    next_attempt_at = models.DateTimeField(default=clock.now)
    # The holder of the claim delivers alone. A claim that is over may be taken by another.
    claim = models.UUIDField(null=True, default=None)
    claimed_until = models.DateTimeField(null=True, default=None)

    delivered = models.BigIntegerField(default=0)
    refused = models.BigIntegerField(default=0)
    skipped = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.label} ({self.platform})"


class DeliveryHour(models.Model):
    """The records that one destination got in one hour, in UTC. Kept for two days."""

    destination = models.ForeignKey(LogDestination, on_delete=models.CASCADE, related_name="hours")
    hour = models.DateTimeField()
    delivered = models.IntegerField(default=0)
    refused = models.IntegerField(default=0)
    skipped = models.IntegerField(default=0)
    failures = models.IntegerField(default=0)
    sent_bytes = models.BigIntegerField(default=0)  # before compression, of batches that the platform dealt with

    class Meta:
        constraints = [models.UniqueConstraint(fields=["destination", "hour"], name="delivery_hour_of_a_destination")]


class SentHour(models.Model):
    """The bytes that one organization sent in one hour, also in vain and to destinations that are gone."""

    org_id = models.UUIDField()
    hour = models.DateTimeField()
    sent_bytes = models.BigIntegerField(default=0)  # before compression

    class Meta:
        constraints = [models.UniqueConstraint(fields=["org_id", "hour"], name="sent_hour_of_an_organization")]


class RefusedRecord(models.Model):
    """A record that a platform refused for good. The latest ones are kept."""

    destination = models.ForeignKey(LogDestination, on_delete=models.CASCADE, related_name="refused_records")
    # Empty when the platform did not say which record it refused.
    log = models.CharField(max_length=8, blank=True)
    row_id = models.UUIDField(null=True)
    reason = models.CharField(max_length=ERROR_CHARACTERS)
    refused_at = models.DateTimeField()
    # Surely not the destination's fault.
    is_certain = models.BooleanField(default=False, db_default=False)
