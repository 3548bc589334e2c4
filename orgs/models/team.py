"""Teams: groups of members that share vendor grants and credentials."""

from __future__ import annotations

from django.db import models

from gateway.lib import clock, ids
from gateway.lib.text import NAME_MAX_CHARACTERS


class Team(models.Model):
    """A named group inside one organization. Spec: §2 Team · D60"""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="teams")
    name = models.CharField(max_length=NAME_MAX_CHARACTERS)
    created_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "name"], name="team_name_once_per_organization"),
            models.UniqueConstraint(fields=["organization", "id"], name="team_of_organization"),
        ]

    def __str__(self) -> str:
        return self.name


class TeamMembership(models.Model):
    """A member of a team. It hangs on the membership, so that leaving the organization leaves its teams.

    No constraint holds both to one organization, which is not in the row: `add_team_member` finds both by it.
    """

    team = models.ForeignKey(Team, models.CASCADE, related_name="team_memberships")
    membership = models.ForeignKey("orgs.Membership", models.CASCADE, related_name="team_memberships")
    joined_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "membership"], name="team_member_once")]

    def __str__(self) -> str:
        return f"{self.membership_id} in {self.team_id}"
