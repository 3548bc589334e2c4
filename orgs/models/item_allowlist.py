"""The resources or prompts of one vendor that a role may use."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from gateway.lib import clock
from orgs.allowed_items import ITEM_TYPE_CHOICES
from orgs.roles import ROLE_CHOICES


class ItemAllowlist(models.Model):
    """No row: all, or none where the role has a list of tools. With a row: exactly its entries. docs/decisions/0115"""

    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="item_allowlists")
    vendor = models.CharField(max_length=40)
    role = models.CharField(max_length=8, choices=ROLE_CHOICES)
    kind = models.CharField(max_length=9, choices=ITEM_TYPE_CHOICES)
    # Addresses, templates or names as the vendor has them.
    entries = models.JSONField(default=list)
    updated_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    updated_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "vendor", "role", "kind"], name="items_once_per_vendor_role_and_kind"
            )
        ]

    @property
    def version(self) -> str:
        """Changes with every change of the list; detects an edit that started from an older list."""
        return self.updated_at.isoformat()

    def __str__(self) -> str:
        return f"{self.role} at {self.vendor}: {len(self.entries)} {self.kind}"
