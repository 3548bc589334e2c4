"""The resources or prompts of one vendor that a service client may use."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from gateway.lib import clock
from orgs.allowed_items import ITEM_TYPE_CHOICES


class ServiceClientItemAllowlist(models.Model):
    """As `orgs.models.ItemAllowlist`. The lists of the role member count as well. docs/decisions/0115"""

    client = models.ForeignKey(
        settings.OAUTH2_PROVIDER_APPLICATION_MODEL, models.CASCADE, related_name="item_allowlists"
    )
    vendor = models.CharField(max_length=40)
    kind = models.CharField(max_length=9, choices=ITEM_TYPE_CHOICES)
    entries = models.JSONField(default=list)
    updated_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    updated_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["client", "vendor", "kind"], name="client_items_once_per_vendor_and_kind")
        ]

    @property
    def version(self) -> str:
        """Changes with every change of the list; detects an edit that started from an older list."""
        return self.updated_at.isoformat()

    def __str__(self) -> str:
        return f"{self.client_id} at {self.vendor}: {len(self.entries)} {self.kind}"
