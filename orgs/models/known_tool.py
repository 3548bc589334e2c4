"""What a vendor's tool looked like when somebody last decided about it."""

from __future__ import annotations

from django.db import models

from gateway.lib import clock

SCOPE_MAX_CHARACTERS = 60
FINGERPRINT_MAX_BYTES = 33


class KnownTool(models.Model):
    """One tool of one vendor as an organization saw it last, and as it was when the vendor's tools were approved.

    A description that changes afterwards can tell an agent something unapproved. `credential_scope` names the
    credential whose list it is on, "" for the general list; a further list keeps only what differs from that.
    Spec: D78 · reliability.md 2 (CVE-2025-54136)
    """

    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="known_tools")
    vendor = models.CharField(max_length=40)
    credential_scope = models.CharField(max_length=SCOPE_MAX_CHARACTERS, blank=True, default="", db_default="")
    tool = models.CharField(max_length=255)
    seen_sha256 = models.BinaryField(max_length=FINGERPRINT_MAX_BYTES)
    approved_sha256 = models.BinaryField(max_length=FINGERPRINT_MAX_BYTES)  # empty: appeared after the last approval
    # The texts that the checksums are of: canonical JSON of what an agent reads. Empty where it is too large to keep;
    # the approved one also where it is the one that was seen last.
    seen_definition = models.TextField(blank=True, default="")
    approved_definition = models.TextField(blank=True, default="")
    seen_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "vendor", "credential_scope", "tool"], name="known_tool_once_per_list"
            )
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
    """When one credential's list of a vendor's tools was compared last with the organization's rows.

    `recorded` rows of the admin log were written since `recorded_since`; `folded` changes after them were only counted.
    """

    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="tool_looks")
    vendor = models.CharField(max_length=40)
    credential_scope = models.CharField(max_length=SCOPE_MAX_CHARACTERS, blank=True, default="", db_default="")
    looked_at = models.DateTimeField(default=clock.now)
    recorded_since = models.DateTimeField(null=True, blank=True)
    recorded = models.PositiveSmallIntegerField(default=0, db_default=0)
    folded = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "vendor", "credential_scope"], name="tool_look_once_per_list"
            )
        ]

    def __str__(self) -> str:
        return f"{self.vendor} at {self.looked_at}"
