"""The teams of an organization: the list, the form that makes one, the page that deletes one."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from billing import entitlements
from billing.errors import SubscriptionRequired
from credentials.credential_scope import CredentialScope
from credentials.selectors import credential_summaries, vendors_by_team
from gateway.catalog import registry
from gateway.lib.errors import DomainError
from gateway.lib.text import NAME_MAX_CHARACTERS
from gateway.web.form_errors import show_on
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from gateway.web.paging import page_of
from gateway.web.rate import RateLimited
from gateway.web.typed_name import name_refusal
from orgs import selectors
from orgs.pages.vendor_names import vendor_names
from orgs.roles import Role
from orgs.services.teams import create_team, delete_team


class TeamForm(forms.Form):
    name = forms.CharField(
        label="Name",
        max_length=NAME_MAX_CHARACTERS,
        help_text="For example “Night shift”. No other team of the organization may have it.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class TeamsPage(OrgPage):
    """GET, POST /orgs/:orgId/teams"""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN, active_plan=True)}
    title = "Teams"
    nav_route = "orgs:teams"

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._page(TeamForm())

    def post(self, request: HttpRequest) -> HttpResponse:
        """Spec: §4.7 · D60"""
        form = TeamForm(request.POST)
        if form.is_valid():
            try:
                team = create_team(actor=self.actor, organization=self.organization, **form.cleaned_data)
            except DomainError as refusal:
                show_on(form, refusal)
            else:
                messages.success(request, f"{team.name} is ready. Add members and vendors next.")
                return redirect("orgs:team", self.organization.id, team.id)
        return self._page(form, status=422)

    def refused(self, refusal: RateLimited | SubscriptionRequired) -> HttpResponse:
        # Without a plan the page says so and keeps the name in its field.
        if self.request.method != "POST" or isinstance(refusal, RateLimited):
            raise refusal
        return self._page(TeamForm(initial={"name": self.request.POST.get("name", "")}), status=refusal.status)

    def _page(self, form: TeamForm, *, status: int = 200) -> HttpResponse:
        page = page_of(self.request, selectors.teams(self.organization))
        catalog = registry.load()
        granted, own = selectors.server_access_by_team(self.organization), vendors_by_team(self.organization)
        is_active = entitlements.is_active(self.organization)
        context = {
            "page": page,
            "rows": [
                {
                    "team": team,
                    "granted": vendor_names(granted.get(team.pk, []), catalog),
                    "own": vendor_names(own.get(team.pk, []), catalog),
                }
                for team in page
            ],
            "form": form,
            "is_active": is_active,
            **({} if is_active else self.renewal()),
        }
        return self.page("orgs/teams.html", context, status=status)


class DeleteTeamPage(OrgPage):
    """GET, POST /orgs/:orgId/teams/:teamId/delete. Asks for the team's name."""

    gates = {"GET": Gate(Role.OWNER), "POST": Gate(Role.OWNER)}
    title = "Delete team"
    nav_route = "orgs:teams"

    def get(self, request: HttpRequest, team_id: UUID) -> HttpResponse:
        return self._confirm(team_id)

    def post(self, request: HttpRequest, team_id: UUID) -> HttpResponse:
        """Spec: §4.7 · D61"""
        team = selectors.team(self.organization, str(team_id))
        if error := name_refusal(request, team.name):
            return self._confirm(team_id, error=error, status=422)
        delete_team(actor=self.actor, organization=self.organization, team_id=team_id)
        messages.success(request, f"The team {team.name} is deleted. Its members stay in the organization.")
        return redirect("orgs:teams", self.organization.id)

    def _confirm(self, team_id: UUID, *, error: str = "", status: int = 200) -> HttpResponse:
        team = selectors.team(self.organization, str(team_id))
        catalog = registry.load()
        held = [row for row in credential_summaries(self.organization) if row.team_id == team.pk]
        granted = selectors.server_access_by_team(self.organization).get(team.pk, [])
        context = {
            "team": team,
            "granted": vendor_names(granted, catalog),
            "credentials": vendor_names([row.vendor for row in held if row.scope is CredentialScope.TEAM], catalog),
            "keys": [row.name for row in held if row.scope is CredentialScope.NAMED_KEY],
            "error": error,
        }
        return self.page("orgs/team_delete.html", context, status=status)
