"""Keys that sign access tokens, unless TOKEN_SIGNING_KEYS holds them."""

from __future__ import annotations

from django.db import models

from gateway.lib import clock


class SigningKey(models.Model):
    """An ES256 key: published from creation, signing from `signs_from`, deleted at `retires_at`. Spec: D121, D130"""

    kid = models.CharField(primary_key=True, max_length=64)
    key_id = models.CharField(max_length=64)  # of the key of CREDENTIAL_KEYS that seals the private half
    sealed_private_key = models.BinaryField()
    public_jwk = models.JSONField()
    created_at = models.DateTimeField(default=clock.now)
    signs_from = models.DateTimeField()
    retires_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.kid
