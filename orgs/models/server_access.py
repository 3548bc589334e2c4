from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from gateway.lib import clock


class ServerAccess(models.Model):
    """One vendor that exactly one member or team may use. Spec: §4.5 · D33, D57"""

    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="server_access")
    membership = models.ForeignKey(
        "orgs.Membership", models.CASCADE, null=True, blank=True, related_name="server_access"
    )
    team = models.ForeignKey("orgs.Team", models.CASCADE, null=True, blank=True, related_name="server_access")
    vendor = models.CharField(max_length=40)
    granted_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    granted_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table = "orgs_serveraccessgrant"  # earlier releases use this name during an upgrade
        verbose_name_plural = "server access"
        constraints = [
            models.CheckConstraint(
                condition=Q(membership__isnull=False, team__isnull=True)
                | Q(membership__isnull=True, team__isnull=False),
                name="grant_has_one_principal",
            ),
            models.UniqueConstraint(
                fields=["organization", "membership", "vendor"],
                condition=Q(membership__isnull=False),
                name="member_grant_once",
            ),
            models.UniqueConstraint(
                fields=["organization", "team", "vendor"], condition=Q(team__isnull=False), name="team_grant_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.vendor} for {self.membership_id or self.team_id}"
