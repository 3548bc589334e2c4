"""Consents that are remembered for a while."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from gateway.lib import clock


class RememberedConsent(models.Model):
    """A person's consent to a client, its scopes and its redirect address, for one organization. Spec: D119"""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    client = models.ForeignKey(settings.OAUTH2_PROVIDER_APPLICATION_MODEL, models.CASCADE, related_name="+")
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="+")
    scope = models.TextField()
    # For display only: other parties may have pages on the same host.
    redirect_host = models.CharField(max_length=255)
    # Of the redirect address. Rows of earlier releases hold null, which matches nothing.
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
