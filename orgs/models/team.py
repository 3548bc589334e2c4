from __future__ import annotations

from django.db import models

from audit.actor import Target
from gateway.lib import clock, ids
from gateway.lib.text import NAME_MAX_CHARACTERS


class Team(models.Model):
    """Members who share server access and credentials. Spec: §2 Team · D60"""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="teams")
    name = models.CharField(max_length=NAME_MAX_CHARACTERS)
    created_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "name"], name="team_name_once_per_organization"),
            # Target of composite foreign keys, which hold a referring row to the same organization.
            models.UniqueConstraint(fields=["organization", "id"], name="team_of_organization"),
        ]

    def as_target(self) -> Target:
        return Target(id=str(self.id), label=self.name)

    def __str__(self) -> str:
        return self.name


class TeamMembership(models.Model):
    """A member of a team."""

    team = models.ForeignKey(Team, models.CASCADE, related_name="team_memberships")
    # The membership and not the person: leaving the organization ends its team memberships.
    # The row has no organization, so no constraint holds both to one: `add_team_member` looks both up by it.
    membership = models.ForeignKey("orgs.Membership", models.CASCADE, related_name="team_memberships")
    joined_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "membership"], name="team_member_once")]

    def __str__(self) -> str:
        return f"{self.membership_id} in {self.team_id}"
