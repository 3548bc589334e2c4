"""Authorization requests that wait for a person's decision."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from oauth2_provider.models import ResourceJSONField

from gateway.lib import clock, ids


class AuthorizationRequest(models.Model):
    """A validated request, never read from the browser again, and decided once. Spec: D118, D119"""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    client = models.ForeignKey(settings.OAUTH2_PROVIDER_APPLICATION_MODEL, models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    # Only the browser session and the person that opened the request may decide it.
    # See reliability.md 2: FastMCP CVE-2026-27124, Keycloak CVE-2026-7571.
    session_sha256 = models.BinaryField(max_length=32)
    redirect_uri = models.TextField()
    scope = models.TextField()
    resource = ResourceJSONField(default=list)
    state = models.TextField(blank=True)
    code_challenge = models.CharField(max_length=43)
    created_at = models.DateTimeField(default=clock.now)
    expires_at = models.DateTimeField(db_index=True)
    decided_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return str(self.id)
