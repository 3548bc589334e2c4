"""The tools of one vendor that a service client may call."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from gateway.lib import clock


class ServiceClientAllowlist(models.Model):
    """No row: every tool; an empty list: none. The list of the role member counts as well. Spec: D75-D77, D165"""

    client = models.ForeignKey(
        settings.OAUTH2_PROVIDER_APPLICATION_MODEL, models.CASCADE, related_name="tool_allowlists"
    )
    vendor = models.CharField(max_length=40)
    tools = models.JSONField(default=list)
    updated_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    updated_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["client", "vendor"], name="client_allowlist_once_per_vendor")]

    @property
    def version(self) -> str:
        """Changes with every change of the list; detects an edit that started from an older list."""
        return self.updated_at.isoformat()

    def __str__(self) -> str:
        return f"{self.client_id} at {self.vendor}: {len(self.tools)} tools"
