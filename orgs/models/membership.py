from __future__ import annotations

from django.conf import settings
from django.db import models

from audit.actor import Target
from gateway.lib import clock
from orgs.roles import ROLE_CHOICES, Role


class Membership(models.Model):
    """Spec: §2 Member · D43"""

    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=ROLE_CHOICES, default=Role.MEMBER.value)
    joined_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "user"], name="member_once_per_organization"),
            # Target of composite foreign keys, which hold a referring row to the same organization.
            models.UniqueConstraint(fields=["organization", "id"], name="membership_of_organization"),
            models.CheckConstraint(condition=models.Q(role__in=[role.value for role in Role]), name="membership_role"),
        ]

    def has_role(self, role: Role) -> bool:
        return Role(self.role).at_least(role)

    def as_target(self) -> Target:
        """The person: a membership has no name of its own."""
        return Target(id=str(self.user_id), label=self.user.label)

    def __str__(self) -> str:
        return f"{self.user_id} is {self.role} of {self.organization_id}"
