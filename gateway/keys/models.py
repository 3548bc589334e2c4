from __future__ import annotations

from uuid import uuid4

from django.db import models
from django.db.models import Q

from gateway.lib import clock
from gateway.lib.crypto import KEY_ID_MAX_CHARACTERS


class KeyRecord(models.Model):
    """A key that the environment brings, by its id: since when it is known, and since when it is the one in use."""

    class Kind(models.TextChoices):
        MASTER = "master"  # of CREDENTIAL_KEYS
        SECRET = "secret"  # noqa: S105 - SECRET_KEY, by its fingerprint
        SIGNING = "signing"  # of TOKEN_SIGNING_KEYS

    kind = models.CharField(max_length=10, choices=Kind)
    name = models.CharField(max_length=KEY_ID_MAX_CHARACTERS)
    first_seen_at = models.DateTimeField(default=clock.now)
    # Null until it has been current.
    used_from = models.DateTimeField(null=True, blank=True)
    is_current = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "name"], name="key_record_once"),
            models.UniqueConstraint(fields=["kind"], condition=Q(is_current=True), name="one_current_key_of_a_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} key {self.name}"


class KeyHolder(models.Model):
    """A running process, and the master keys that it can open with. It says so again every half minute."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    name = models.CharField(max_length=120)
    key_names = models.JSONField()
    seen_at = models.DateTimeField(default=clock.now)

    def __str__(self) -> str:
        return self.name
