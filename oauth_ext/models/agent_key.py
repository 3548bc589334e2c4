"""Agent keys: long-lived bearers of a service client for the unified MCP endpoint."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from gateway.lib import clock, ids


class AgentKey(models.Model):
    """At most one for each service client. Spec: §2, §3 Agent key · D72"""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    client = models.OneToOneField(settings.OAUTH2_PROVIDER_APPLICATION_MODEL, models.CASCADE, related_name="agent_key")
    prefix = models.CharField(max_length=32, unique=True)
    # The secret half itself is never stored.
    secret_sha256 = models.BinaryField(max_length=32)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=clock.now)
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.prefix
