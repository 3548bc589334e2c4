"""The vendors that a restricted service client may use."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from gateway.lib import clock


class ServiceClientVendor(models.Model):
    """One vendor on a service client's list; `Client.restricted` says whether the list applies. Spec: D34"""

    client = models.ForeignKey(
        settings.OAUTH2_PROVIDER_APPLICATION_MODEL, models.CASCADE, related_name="restricted_vendors"
    )
    vendor = models.CharField(max_length=40)
    granted_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    granted_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table = "oauth_ext_serviceclientgrant"  # earlier releases use this name
        constraints = [models.UniqueConstraint(fields=["client", "vendor"], name="service_client_grant_once")]

    def __str__(self) -> str:
        return f"{self.vendor} for {self.client_id}"
