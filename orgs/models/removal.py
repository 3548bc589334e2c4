from __future__ import annotations

from django.conf import settings
from django.db import models

from gateway.lib import clock


class Removal(models.Model):
    """The last removal of a person by another; earlier invitations no longer admit the person. Spec: D162"""

    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    removed_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "user"], name="removal_once_per_person")]

    def __str__(self) -> str:
        return f"{self.user_id} from {self.organization_id}"
