"""Consents that need not be asked for again."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from gateway.lib import clock


class RememberedConsent(models.Model):
    """A person allowed a client these scopes at this redirect host, for one organization. Spec: D119"""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    client = models.ForeignKey(settings.OAUTH2_PROVIDER_APPLICATION_MODEL, models.CASCADE, related_name="+")
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="+")
    scope = models.TextField()
    redirect_host = models.CharField(max_length=255)
    granted_at = models.DateTimeField(default=clock.now)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "client", "scope", "redirect_host"], name="consent_once_per_client_scope_and_host"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id} allows {self.client_id}"
