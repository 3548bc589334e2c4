from __future__ import annotations

from django.conf import settings
from django.db import models

from gateway.lib import clock
from orgs.roles import ROLE_CHOICES


class ToolAllowlist(models.Model):
    """The tools that `role` may call at `vendor`. No row: all; empty list: none. Spec: §2 Tool allowlist · D75-D77"""

    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="tool_allowlists")
    vendor = models.CharField(max_length=40)
    role = models.CharField(max_length=8, choices=ROLE_CHOICES)
    tools = models.JSONField(default=list)
    updated_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    updated_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "vendor", "role"], name="allowlist_once_per_vendor_and_role"
            )
        ]

    @property
    def version(self) -> str:
        """Changes with every change of the list; detects an edit that started from an older list."""
        return self.updated_at.isoformat()

    def __str__(self) -> str:
        return f"{self.role} at {self.vendor}: {len(self.tools)} tools"
