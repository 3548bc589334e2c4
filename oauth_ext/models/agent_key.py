"""Agent keys: long-lived bearers of a service client for the unified MCP endpoint."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from gateway.lib import clock, ids


class AgentKey(models.Model):
    """One for each service client, and for a while the one before it. Spec: §2, §3 Agent key · D72, D171"""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    client = models.ForeignKey(settings.OAUTH2_PROVIDER_APPLICATION_MODEL, models.CASCADE, related_name="agent_keys")
    prefix = models.CharField(max_length=32, unique=True)
    # The secret half itself is never stored.
    secret_sha256 = models.BinaryField(max_length=32)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=clock.now)
    last_used_at = models.DateTimeField(null=True, blank=True)
    # Of a key that was rotated with an overlap: the end of the overlap. None for the current key.
    ends_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["client"], condition=Q(ends_at=None), name="one_current_agent_key"),
            models.UniqueConstraint(
                fields=["client"], condition=Q(ends_at__isnull=False), name="one_previous_agent_key"
            ),
        ]

    def __str__(self) -> str:
        return self.prefix
