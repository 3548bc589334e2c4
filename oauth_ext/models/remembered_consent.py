"""Consents that need not be asked for again."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from gateway.lib import clock


class RememberedConsent(models.Model):
    """A person allowed a client these scopes at this redirect address, for one organization. Spec: D119

    The address counts and not its host, where others may have pages too; the host is for people to read.
    `redirect_sha256` is of the address and null in rows of earlier releases, which match nothing.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    client = models.ForeignKey(settings.OAUTH2_PROVIDER_APPLICATION_MODEL, models.CASCADE, related_name="+")
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="+")
    scope = models.TextField()
    redirect_host = models.CharField(max_length=255)
    redirect_sha256 = models.BinaryField(max_length=32, null=True)
    granted_at = models.DateTimeField(default=clock.now)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "client", "scope", "redirect_sha256"], name="consent_once_per_client_scope_and_address"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id} allows {self.client_id}"
