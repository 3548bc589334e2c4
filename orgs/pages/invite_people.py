"""The page that invites several people by e-mail, and shows the result of each address."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.conf import settings
from django.http import HttpResponse
from django.utils.translation import gettext_lazy

from billing.errors import SubscriptionRequired
from credentials.selectors import people_vendors
from gateway.catalog import registry
from gateway.lib import ids
from gateway.lib.sentences import sentence
from gateway.lib.translated import translated
from gateway.web import rate
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate, PlanFunction
from orgs.pages.invitation_window import window_facts
from orgs.roles import ROLE_CHOICES, Role
from orgs.selectors import teams
from orgs.services.invited_people import InvitedLine, LineResult, addresses_in, invite_people

RESULT_WORDS = {
    LineResult.INVITED: sentence("Invited"),
    LineResult.ALREADY_MEMBER: sentence("Already a member"),
    LineResult.ALREADY_INVITED: sentence("Already invited"),
    LineResult.INVALID: sentence("Not an email address"),
    LineResult.LIMIT_REACHED: sentence("Not invited: limit reached"),
}


class InvitePeopleForm(forms.Form):
    """Spec: D167"""

    emails = forms.CharField(
        label=gettext_lazy("Email addresses"),
        max_length=20_000,
        help_text=gettext_lazy("One per line, or separated by commas. 50 at most."),
        widget=forms.Textarea(attrs={"rows": 5, "autocomplete": "off", "spellcheck": "false"}),
    )
    role = forms.ChoiceField(label=gettext_lazy("Role"), initial=Role.MEMBER.value)
    teams = forms.MultipleChoiceField(
        label=gettext_lazy("Teams"), required=False, widget=forms.SelectMultiple(attrs={"size": 5})
    )
    vendors = forms.MultipleChoiceField(
        label=gettext_lazy("Vendors"), required=False, widget=forms.SelectMultiple(attrs={"size": 5})
    )
    expires_in_days = forms.IntegerField(
        label=gettext_lazy("Valid for (days)"),
        min_value=1,
        max_value=settings.INVITATION_MAX_DAYS,
        initial=settings.INVITATION_DEFAULT_DAYS,
    )


class InvitePeoplePage(OrgFormPage[InvitePeopleForm]):
    """GET, POST /orgs/:orgId/invitations/people. Same gate and rate limit as the API. Spec: §4.4 · D51, D167"""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN, plan=PlanFunction.INVITATIONS, limit=settings.INVITATION_CREATE),
    }
    title = gettext_lazy("Invite people")
    nav_route = "orgs:invitations"
    form_class = InvitePeopleForm
    template = "orgs/invite_people.html"
    already_sent = gettext_lazy("That form was already sent. Its invitations are in the list.")
    shown_refusals = (rate.RateLimited, SubscriptionRequired)

    def new_form(self, data: Any = None) -> InvitePeopleForm:
        form = super().new_form(data)
        catalog, is_owner = registry.load(), self.membership.has_role(Role.OWNER)
        choices = {
            # Only owners invite admins.
            "role": [(value, translated(word)) for value, word in ROLE_CHOICES[: 2 if is_owner else 1]],
            "teams": [(str(team.pk), team.name) for team in teams(self.organization)],
            "vendors": [(slug, catalog.name_of(slug)) for slug in people_vendors(self.organization)],
        }
        for name, offered in choices.items():
            cast(forms.ChoiceField, form.fields[name]).choices = offered
        return form

    def save(self, form: InvitePeopleForm) -> HttpResponse:
        chosen = form.cleaned_data
        lines = invite_people(
            actor=self.actor,
            organization=self.organization,
            emails=addresses_in(chosen["emails"]),
            role=Role(chosen["role"]),
            team_ids=[ids.known_id(each) for each in chosen["teams"]],
            vendors=chosen["vendors"],
            expires_in_days=chosen["expires_in_days"],
        )
        return self.show(self.new_form(), status=201, lines=[_shown(line) for line in lines])

    def context(self) -> dict[str, Any]:
        facts = window_facts(self.request, needs_plan=self.form_needs_plan)
        return {"delivery": settings.MAIL_DELIVERY, **facts}


def _shown(line: InvitedLine) -> tuple[InvitedLine, str, str]:
    """The line, its words and its badge."""
    badge = "good" if line.result is LineResult.INVITED else "info"
    if line.result in {LineResult.INVALID, LineResult.LIMIT_REACHED}:
        badge = "bad"
    return line, RESULT_WORDS[line.result], badge
