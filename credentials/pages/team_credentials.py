"""Credentials of one team: choose the vendor, then store, replace or delete them. Never shows a value."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from credentials.pages.forms import ConnectionForm
from credentials.scopes import CredentialScope
from credentials.selectors import Connection, connections, credential_at
from credentials.services.connections import delete_credential
from gateway.catalog import registry
from gateway.catalog.vendor import Vendor
from gateway.lib.errors import DomainError
from gateway.web.form_errors import show_on
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from orgs.models import Team
from orgs.roles import Role
from orgs.selectors import team
from proxy.connect_vendor import connect_vendor


class ChooseTeamCredentialPage(OrgPage):
    """GET /orgs/:orgId/teams/:teamId/credentials?vendor=: where the team's form for a vendor leads."""

    gates = {"GET": Gate(Role.ADMIN)}
    title = "Credentials of a team"
    nav_route = "orgs:teams"

    def get(self, request: HttpRequest, team_id: UUID) -> HttpResponse:
        """On to the vendor's form, or back where none was chosen."""
        known = team(self.organization, str(team_id))
        vendor = registry.vendor_or_none(request.GET.get("vendor", ""))
        if vendor is None:
            messages.info(request, "Choose a vendor first.")
            return redirect("orgs:team", self.organization.id, known.id)
        return redirect("credentials:team-credential", self.organization.id, known.id, vendor.slug)


class TeamCredentialPage(OrgPage):
    """GET, POST /orgs/:orgId/teams/:teamId/credentials/:vendor. The gates of the API's route. Spec: §4.6 · D66, D67"""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN, organization_limit=settings.VENDOR_QUESTIONS),
        "POST delete": Gate(Role.ADMIN),
    }
    title = "Credentials of a team"
    nav_route = "orgs:teams"

    def get(self, request: HttpRequest, team_id: UUID, vendor: str) -> HttpResponse:
        """The vendor's form, empty."""
        known, of_team = registry.known_vendor(vendor), team(self.organization, str(team_id))
        return self._page(known, of_team, ConnectionForm(known))

    def post(self, request: HttpRequest, team_id: UUID, vendor: str) -> HttpResponse:
        """Delete what is stored, or check the fields with the vendor and store them."""
        known, of_team = registry.known_vendor(vendor), team(self.organization, str(team_id))
        if request.POST.get("action") == "delete":
            return self._delete(known, of_team)
        form = ConnectionForm(known, request.POST)
        if form.is_valid():
            try:
                return self._store(known, of_team, form)
            except DomainError as refusal:
                show_on(form, refusal)
        return self._page(known, of_team, form, status=422)

    def _store(self, vendor: Vendor, of_team: Team, form: ConnectionForm) -> HttpResponse:
        stored = connect_vendor(
            actor=self.actor,
            organization=self.organization,
            vendor=vendor,
            scope=CredentialScope.TEAM,
            fields=form.values(),
            team=of_team,
        )
        if stored.check.validated:
            text = f"{of_team.name} has credentials of its own for {vendor.name}. It accepted them."
            messages.success(self.request, text)
        else:
            text = f"The credentials for {vendor.name} are stored, but could not be checked: {stored.check.detail}"
            messages.warning(self.request, text)
        return redirect("orgs:team", self.organization.id, of_team.id)

    def _delete(self, vendor: Vendor, of_team: Team) -> HttpResponse:
        found = credential_at(self.organization, vendor.slug, CredentialScope.TEAM, team_id=of_team.id)
        delete_credential(actor=self.actor, credential=found)
        messages.success(self.request, f"{of_team.name} has no credentials of its own for {vendor.name} any more.")
        return redirect("orgs:team", self.organization.id, of_team.id)

    def _stored(self, vendor: Vendor, of_team: Team) -> Connection | None:
        rows = connections(self.organization, vendor=vendor.slug)
        return next((row for row in rows if row.scope is CredentialScope.TEAM and row.team_id == of_team.id), None)

    def _page(self, vendor: Vendor, of_team: Team, form: ConnectionForm, *, status: int = 200) -> HttpResponse:
        context = {"vendor": vendor, "team": of_team, "form": form, "stored": self._stored(vendor, of_team)}
        return self.page("credentials/team_credential.html", context, status=status)
