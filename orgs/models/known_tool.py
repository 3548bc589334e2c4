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
    # What the checksums are of: canonical JSON of what an agent reads. Empty where it is too large to keep.
    seen_definition = models.TextField(blank=True, default="")
    approved_definition = models.TextField(blank=True, default="")
    seen_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "vendor", "tool"], name="known_tool_once_per_vendor")
        ]

    @property
    def is_offered(self) -> bool:
        """Whether the vendor had it when somebody looked last."""
        return bool(self.seen_sha256)

    @property
    def is_approved(self) -> bool:
        """Whether it is as it was when somebody approved the vendor's tools."""
        return bytes(self.seen_sha256) == bytes(self.approved_sha256)

    def __str__(self) -> str:
        return f"{self.tool} of {self.vendor}"


class ToolLook(models.Model):
    """When the tools of a vendor were compared last with what the organization knows of them."""

    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="tool_looks")
    vendor = models.CharField(max_length=40)
    looked_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "vendor"], name="tool_look_once_per_vendor")]

    def __str__(self) -> str:
        return f"{self.vendor} at {self.looked_at}"
