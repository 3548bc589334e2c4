from __future__ import annotations

from django.conf import settings
from django.db import models

from gateway.lib import clock


class IdempotencyRecord(models.Model):
    """The first answer to a POST with an Idempotency-Key, kept for a day and replayed. Spec: D29"""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    # Hash of route and key.
    key_sha256 = models.BinaryField(max_length=32)
    # An HMAC and no plain hash, because bodies hold passwords.
    body_sha256 = models.BinaryField(max_length=32)
    # Null until the first request has finished.
    status = models.PositiveSmallIntegerField(null=True)
    # Empty if the answer holds a secret that is shown once.
    sealed = models.BinaryField(default=b"")
    sealing_key_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=clock.now, db_index=True)

    class Meta:
        db_table = "orgs_rememberedanswer"  # earlier releases use this name during an upgrade
        constraints = [models.UniqueConstraint(fields=["user", "key_sha256"], name="answer_once_per_key")]

    def __str__(self) -> str:
        return f"answer {self.status} to {self.user_id}"
