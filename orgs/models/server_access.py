from __future__ import annotations

from datetime import datetime
from typing import ClassVar, TypeVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from audit.actor import Target
from gateway.lib import clock

Row = TypeVar("Row", bound=models.Model)


class EndingQuerySet(models.QuerySet[Row]):
    """Rows with `expires_at`, None for access without an end."""

    def in_force(self, now: datetime) -> EndingQuerySet[Row]:
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now))

    def ended(self, now: datetime) -> EndingQuerySet[Row]:
        return self.filter(expires_at__lte=now)


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
    # The row counts until this moment, whether or not it is removed by then.
    expires_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[EndingQuerySet[ServerAccess]] = EndingQuerySet.as_manager()  # type: ignore[assignment]

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
        indexes = [
            models.Index(fields=["expires_at"], condition=Q(expires_at__isnull=False), name="server_access_by_end")
        ]

    def as_target(self) -> Target:
        """The member or the team."""
        holder = self.team or self.membership
        return Target(id="", label="") if holder is None else holder.as_target()

    def __str__(self) -> str:
        return f"{self.vendor} for {self.membership_id or self.team_id}"
