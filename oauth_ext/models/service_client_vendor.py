"""The vendors that a restricted service client may use."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from audit.actor import Target
from gateway.lib import clock
from orgs.models.server_access import EndingQuerySet


class ServiceClientVendor(models.Model):
    """One vendor on a service client's list; `Client.restricted` says whether the list applies. Spec: D34"""

    client = models.ForeignKey(
        settings.OAUTH2_PROVIDER_APPLICATION_MODEL, models.CASCADE, related_name="restricted_vendors"
    )
    vendor = models.CharField(max_length=40)
    granted_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    granted_at = models.DateTimeField(default=clock.now)
    # The row counts until this moment. The client stays restricted after it.
    expires_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[EndingQuerySet[ServiceClientVendor]] = EndingQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        db_table = "oauth_ext_serviceclientgrant"  # earlier releases use this name
        constraints = [models.UniqueConstraint(fields=["client", "vendor"], name="service_client_grant_once")]
        indexes = [
            models.Index(fields=["expires_at"], condition=Q(expires_at__isnull=False), name="client_vendor_by_end")
        ]

    def as_target(self) -> Target:
        return self.client.as_target()

    def __str__(self) -> str:
        return f"{self.vendor} for {self.client_id}"
