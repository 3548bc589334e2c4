"""What a vendor's tool looked like when somebody last decided about it."""

from __future__ import annotations

from django.db import models

from gateway.lib import clock


class KnownTool(models.Model):
    """One tool of one vendor as an organization saw it last, and as it was when the vendor's tools were approved.

    A description that changes afterwards can tell an agent something nobody agreed to.
    Spec: D78 · reliability.md 2 (CVE-2025-54136)
    """

    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="known_tools")
    vendor = models.CharField(max_length=40)
    tool = models.CharField(max_length=255)
    seen_sha256 = models.BinaryField(max_length=32)
    approved_sha256 = models.BinaryField(max_length=32)  # empty: appeared after the last approval
    seen_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "vendor", "tool"], name="known_tool_once_per_vendor")
        ]

    def __str__(self) -> str:
        return f"{self.tool} of {self.vendor}"
