"""The teams of an organization: the list, the form that makes one, the page that deletes one."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpResponse, QueryDict
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_lazy

from billing.errors import SubscriptionRequired
from credentials.credential_scope import CredentialScope
from credentials.selectors import credential_summaries, vendors_by_team
from gateway.catalog import registry
from gateway.lib.text import NAME_MAX_CHARACTERS
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate, PlanFunction
from gateway.web.paging import page_of
from gateway.web.typed_name import TypedNameForm
from orgs import selectors
from orgs.models import Team
from orgs.roles import Role
from orgs.services.teams import create_team, delete_team


class TeamForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=NAME_MAX_CHARACTERS,
        help_text=gettext_lazy("For example “Night shift”. Must be unique."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class TeamsPage(OrgFormPage[TeamForm]):
    """GET, POST /orgs/:orgId/teams. Spec: §4.7 · D60"""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN, plan=PlanFunction.TEAMS)}
    title = gettext_lazy("Teams")
    nav_route = "orgs:teams"
    form_class = TeamForm
    template = "orgs/teams.html"
    shown_refusals = (SubscriptionRequired,)

    def save(self, form: TeamForm) -> HttpResponse:
        team = create_team(actor=self.actor, organization=self.organization, **form.cleaned_data)
        return self.done(
            gettext("%(name)s is ready. Add members and vendors next.") % {"name": team.name}, "orgs:team", team.id
        )

    def context(self) -> dict[str, Any]:
        page = page_of(self.request, selectors.teams(self.organization))
        catalog = registry.load()
        granted, own = selectors.server_access_by_team(self.organization), vendors_by_team(self.organization)
        return {
            "page": page,
            "rows": [
                {
                    "team": team,
                    "granted": catalog.names_of(granted.get(team.pk, [])),
                    "own": catalog.names_of(own.get(team.pk, [])),
                }
                for team in page
            ],
        }


class DeleteTeamPage(OrgFormPage[TypedNameForm]):
    """GET, POST /orgs/:orgId/teams/:teamId/delete. Asks for the team's name. Spec: §4.7 · D61"""

    gates = {"GET": Gate(Role.OWNER), "POST": Gate(Role.OWNER)}
    title = gettext_lazy("Delete team")
    nav_route = "orgs:teams"
    template = "orgs/team_delete.html"
    refusal_status = None

    @cached_property
    def team(self) -> Team:
        return selectors.team(self.organization, str(self.kwargs["team_id"]))

    def new_form(self, data: QueryDict | None = None) -> TypedNameForm:
        return TypedNameForm(self.team.name, data)

    def save(self, form: TypedNameForm) -> HttpResponse:
        name = self.team.name
        delete_team(actor=self.actor, organization=self.organization, team_id=self.team.id)
        return self.done(
            gettext("The team %(name)s was deleted. Its members stay in the organization.") % {"name": name},
            "orgs:teams",
        )

    def context(self) -> dict[str, Any]:
        catalog = registry.load()
        held = [row for row in credential_summaries(self.organization) if row.team_id == self.team.pk]
        granted = selectors.server_access_by_team(self.organization).get(self.team.pk, [])
        return {
            "team": self.team,
            "granted": catalog.names_of(granted),
            "credentials": catalog.names_of(row.vendor for row in held if row.scope is CredentialScope.TEAM),
            "keys": [row.name for row in held if row.scope is CredentialScope.NAMED_KEY],
        }
