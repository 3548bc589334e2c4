"""A vendor's tools as an organization last saw and last approved them."""

from __future__ import annotations

from django.db import models

from gateway.lib import clock

# Width of the columns `credential_scope`.
SCOPE_MAX_CHARACTERS = 60
# SHA-256 and one leading byte for the version of the fingerprint.
FINGERPRINT_MAX_BYTES = 33


# A description that changes after the approval can give an agent instructions that no owner approved.
class KnownTool(models.Model):
    """One tool of one vendor, as last seen and as last approved. Spec: D78 · reliability.md 2 (CVE-2025-54136)

    `credential_scope`: the credential whose list has the tool, "" for the general list. Further lists keep differences.
    """

    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="known_tools")
    vendor = models.CharField(max_length=40)
    credential_scope = models.CharField(max_length=SCOPE_MAX_CHARACTERS, blank=True, default="", db_default="")
    tool = models.CharField(max_length=255)
    seen_sha256 = models.BinaryField(max_length=FINGERPRINT_MAX_BYTES)
    approved_sha256 = models.BinaryField(max_length=FINGERPRINT_MAX_BYTES)  # empty: appeared after the last approval
    # The texts behind the checksums: canonical JSON of the parts that an agent reads. Empty if too large to keep;
    # the approved text is also empty if it equals the one seen last.
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
        # Empty once the vendor no longer lists the tool.
        return bool(self.seen_sha256)

    @property
    def is_approved(self) -> bool:
        return bytes(self.seen_sha256) == bytes(self.approved_sha256)

    def __str__(self) -> str:
        return f"{self.tool} of {self.vendor}"


class ToolSnapshot(models.Model):
    """When one credential's list of a vendor's tools was last compared with the rows of KnownTool."""

    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="tool_snapshots")
    vendor = models.CharField(max_length=40)
    credential_scope = models.CharField(max_length=SCOPE_MAX_CHARACTERS, blank=True, default="", db_default="")
    looked_at = models.DateTimeField(default=clock.now)
    # Of the whole list as callers see it, in canonical JSON; 0 before the first comparison that measured it.
    list_bytes = models.IntegerField(default=0, db_default=0)
    # Rows written to the admin log since `recorded_since`; later changes in the window are only counted (`folded`).
    recorded_since = models.DateTimeField(null=True, blank=True)
    recorded = models.PositiveSmallIntegerField(default=0, db_default=0)
    folded = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        db_table = "orgs_toollook"  # earlier releases use this name during an upgrade
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "vendor", "credential_scope"], name="tool_look_once_per_list"
            )
        ]

    def __str__(self) -> str:
        return f"{self.vendor} at {self.looked_at}"
