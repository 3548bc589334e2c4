"""Pages that store, replace and delete one team's credentials."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import cached_property

from credentials.credential_scope import CredentialScope
from credentials.pages.credential import CredentialHolder, HolderCredentialPage
from gateway.catalog import registry
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from orgs.roles import Role
from orgs.selectors import team


class ChooseTeamCredentialPage(OrgPage):
    """GET /orgs/:orgId/teams/:teamId/credentials?vendor=: redirects to the vendor's form."""

    gates = {"GET": Gate(Role.ADMIN)}
    title = "Credentials of a team"
    nav_route = "orgs:teams"

    def get(self, request: HttpRequest, team_id: UUID) -> HttpResponse:
        known = team(self.organization, str(team_id))
        vendor = registry.vendor_or_none(request.GET.get("vendor", ""))
        if vendor is None:
            messages.info(request, "Choose a vendor first.")
            return redirect("orgs:team", self.organization.id, known.id)
        return redirect("credentials:team-credential", self.organization.id, known.id, vendor.slug)


class TeamCredentialPage(HolderCredentialPage):
    """GET, POST /orgs/:orgId/teams/:teamId/credentials/:vendor."""

    title = "Credentials of a team"
    nav_route = "orgs:teams"
    template = "credentials/team_credential.html"

    @cached_property
    def holder(self) -> CredentialHolder:
        found = team(self.organization, str(self.kwargs["team_id"]))
        back = reverse("orgs:team", args=[self.organization.id, found.id])
        return CredentialHolder(CredentialScope.TEAM, found.name, back, team=found)
