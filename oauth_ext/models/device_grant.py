"""Device authorizations that wait for a person's decision, and counts of wrong user codes."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from oauth2_provider.models import ResourceJSONField

from gateway.lib import clock

ADDRESS_CHARACTERS = 45  # the longest text of an IPv6 address


class Decision(models.TextChoices):
    APPROVED = "approved"
    DENIED = "denied"


class DeviceGrant(models.Model):
    """A device authorization; its two codes are stored only as hashes. Spec: §2, §3 Device authorization · D126-D129"""

    device_code_sha256 = models.BinaryField(max_length=32, unique=True)
    user_code_hash = models.BinaryField(max_length=32, unique=True)  # keyed: the code is short
    client = models.ForeignKey(settings.OAUTH2_PROVIDER_APPLICATION_MODEL, models.CASCADE, related_name="+")
    scope = models.TextField()
    resource = ResourceJSONField(default=list)
    requester_ip = models.CharField(max_length=ADDRESS_CHARACTERS, blank=True)
    created_at = models.DateTimeField(default=clock.now)
    expires_at = models.DateTimeField(db_index=True)
    interval_s = models.PositiveIntegerField()
    last_polled_at = models.DateTimeField(null=True, blank=True)
    decision = models.CharField(max_length=8, choices=Decision.choices, blank=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    decided_at = models.DateTimeField(null=True, blank=True)
    consumed_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[models.Manager[DeviceGrant]] = models.Manager()

    def __str__(self) -> str:
        return f"device authorization {self.pk}"


class UserCodeMiss(models.Model):
    """A wrong user code, counted for the person and for the address. Spec: D126"""

    counted_for = models.CharField(max_length=80)
    missed_at = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name_plural = "user code misses"
        indexes = [models.Index(fields=["counted_for", "missed_at"], name="user_code_miss_by_key")]

    def __str__(self) -> str:
        return f"{self.counted_for} at {self.missed_at}"
