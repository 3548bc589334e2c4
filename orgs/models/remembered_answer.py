"""What a person's request was answered, for the one who sends it again."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from gateway.lib import clock


class RememberedAnswer(models.Model):
    """The first answer to a POST that came with an Idempotency-Key, kept for a day. Spec: D29

    `status` is null until the first request has finished. `sealed` is empty where the answer holds a secret that is
    shown once.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key_sha256 = models.BinaryField(max_length=32)  # of route and key
    body_sha256 = models.BinaryField(max_length=32)  # keyed: an HMAC, because bodies hold passwords
    status = models.PositiveSmallIntegerField(null=True)
    sealed = models.BinaryField(default=b"")
    sealing_key_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=clock.now, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key_sha256"], name="answer_once_per_key")]

    def __str__(self) -> str:
        return f"answer {self.status} to {self.user_id}"
