from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from credentials.selectors import vendors_by_team
from gateway.lib.ids import known_id
from gateway.web.api_view import OrgView
from gateway.web.fields import Name, Timestamp
from gateway.web.gate import Gate, PlanFunction
from gateway.web.operation import NAME, Operation
from orgs import selectors
from orgs.models import Organization, Team
from orgs.roles import Role, TokenScope
from orgs.services import teams

_TAKEN = {409: "Another team has this name."}


class TeamOut(serializers.Serializer[Any]):
    """Spec: §2 Team · D60"""

    id = serializers.UUIDField()
    name = serializers.CharField()
    memberCount = serializers.IntegerField()
    vendors = serializers.ListField(child=serializers.CharField(), help_text="With credentials of this team.")
    createdAt = Timestamp()


class TeamIn(serializers.Serializer[Any]):
    name = Name()


class TeamMemberOut(serializers.Serializer[Any]):
    teamId = serializers.UUIDField(source="team_id")
    userId = serializers.UUIDField(source="membership.user_id")


def team_body(team: Team, member_count: int, vendors: Mapping[UUID, list[str]]) -> dict[str, Any]:
    """The input of TeamOut."""
    return {
        "id": team.id,
        "name": team.name,
        "memberCount": member_count,
        "vendors": vendors.get(team.id, []),
        "createdAt": team.created_at,
    }


def _one(organization: Organization, team_id: UUID) -> dict[str, Any]:
    team = selectors.team(organization, str(team_id))
    return team_body(team, team.member_count, vendors_by_team(organization))  # type: ignore[attr-defined]


class TeamList(OrgView):
    """GET, POST /api/orgs/:orgId/teams. Spec: §4.7 · D60"""

    gates = {
        "GET": Gate(Role.ADMIN, token=TokenScope.READ),
        "POST": Gate(Role.ADMIN, plan=PlanFunction.TEAMS, token=TokenScope.ADMIN),
    }
    operations = {
        "GET": Operation("List teams by name", answer=TeamOut, many=True, paged=True, query=[NAME]),
        "POST": Operation(
            "Create a team",
            body=TeamIn,
            answer=TeamOut,
            status=201,
            refusals={409: "Another team has this name, or the organization has reached its limit of teams."},
        ),
    }

    def get(self, request: Request, org_id: str) -> Response:
        vendors = vendors_by_team(self.organization)
        return self.answer_page(
            selectors.teams(self.organization, named=self.asked_name()),
            as_body=lambda team: team_body(team, team.member_count, vendors),
        )

    def post(self, request: Request, org_id: str) -> Response:
        team = teams.create_team(actor=self.actor, organization=self.organization, name=self.fields["name"])
        return self.answer(team_body(team, 0, {}))


class TeamDetail(OrgView):
    """PATCH, DELETE /api/orgs/:orgId/teams/:teamId. Spec: §4.7 · D60, D61"""

    gates = {"PATCH": Gate(Role.ADMIN, token=TokenScope.ADMIN), "DELETE": Gate(Role.OWNER, token=TokenScope.ADMIN)}
    operations = {
        "PATCH": Operation("Rename a team", body=TeamIn, answer=TeamOut, refusals=_TAKEN),
        "DELETE": Operation("Delete a team with its server access and credentials", status=204),
    }

    def patch(self, request: Request, org_id: str, team_id: str) -> Response:
        team = teams.rename_team(
            actor=self.actor, organization=self.organization, team_id=known_id(team_id), name=self.fields["name"]
        )
        return self.answer(_one(self.organization, team.id))

    def delete(self, request: Request, org_id: str, team_id: str) -> Response:
        teams.delete_team(actor=self.actor, organization=self.organization, team_id=known_id(team_id))
        return self.answer()


class TeamMember(OrgView):
    """PUT, DELETE /api/orgs/:orgId/teams/:teamId/members/:userId. Spec: §4.7 · D9, D10"""

    gates = {"PUT": Gate(Role.ADMIN, token=TokenScope.ADMIN), "DELETE": Gate(Role.ADMIN, token=TokenScope.ADMIN)}
    operations = {
        "PUT": Operation("Add a member to a team", answer=TeamMemberOut),
        "DELETE": Operation("Remove a member from a team", status=204),
    }

    def put(self, request: Request, org_id: str, team_id: str, user_id: str) -> Response:
        return self.answer(
            teams.add_team_member(
                actor=self.actor, organization=self.organization, team_id=known_id(team_id), user_id=known_id(user_id)
            )
        )

    def delete(self, request: Request, org_id: str, team_id: str, user_id: str) -> Response:
        teams.remove_team_member(
            actor=self.actor, organization=self.organization, team_id=known_id(team_id), user_id=known_id(user_id)
        )
        return self.answer()
