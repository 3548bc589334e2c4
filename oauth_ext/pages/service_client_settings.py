"""Settings of one agent: its name, expiry and responsible person, its mode, its keys, and its end."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy

from gateway.lib import clock
from gateway.lib.text import NAME_MAX_CHARACTERS
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate
from oauth_ext.models.client import ToolMode
from oauth_ext.pages.service_client import ServiceClientThingPage
from oauth_ext.services.acting import set_acting
from oauth_ext.services.service_client_allowlists import set_tool_mode
from oauth_ext.services.service_client_changes import ServiceClientChanges, change_service_client
from orgs import selectors
from orgs.models import Organization, User
from orgs.roles import Role

# People that the field suggests; any other member's address can be typed.
SUGGESTED = 200


class AgentForm(forms.Form):
    """`person`: the email address of a member, or nothing."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=NAME_MAX_CHARACTERS,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    last_day = forms.DateField(
        label=gettext_lazy("Last day"),
        help_text=gettext_lazy("Its keys work until the end of this day, in UTC."),
        widget=forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"}),
    )
    person = forms.CharField(
        label=gettext_lazy("Responsible person"),
        required=False,
        max_length=254,
        help_text=gettext_lazy("The email address of a member who is responsible for this agent."),
        widget=forms.TextInput(attrs={"list": "people", "autocomplete": "off"}),
    )

    def __init__(self, organization: Organization, data: QueryDict | None = None, *, initial: Any = None):
        super().__init__(data, initial=initial)
        self._organization = organization

    def clean_person(self) -> User | None:
        typed = self.cleaned_data["person"].strip()
        if not typed:
            return None
        found = selectors.members(self._organization).filter(user__email__iexact=typed, user__is_active=True)[:2]
        # Two people may have one address.
        if len(found) != 1:
            raise forms.ValidationError(gettext("No active member has this email address."))
        return found[0].user


class ServiceClientSettingsPage(ServiceClientThingPage, OrgFormPage[AgentForm]):
    """GET, POST /orgs/:orgId/agents/:clientId/settings"""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN),
        "POST mode": Gate(Role.OWNER),
        "POST acting": Gate(Role.OWNER),
    }
    tab_route = "oauth_pages:service-client-settings"
    template = "oauth_ext/service_client_settings.html"

    def initial(self) -> dict[str, Any]:
        person = self.client.responsible_person
        return {
            "name": self.client.name,
            "last_day": self.client.expires_at.date(),
            "person": "" if person is None else person.email,
        }

    def new_form(self, data: QueryDict | None = None) -> AgentForm:
        return AgentForm(self.organization, data, initial=self.initial())

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        if request.POST.get("action") == "mode":
            return self._change_mode()
        if request.POST.get("action") == "acting":
            return self._change_acting()
        if request.POST.get("action") == "list":
            return self._change_list()
        return super().post(request, **path)

    def save(self, form: AgentForm) -> HttpResponse:
        # A field that was left alone keeps its value, also one that another admin changed meanwhile.
        changes: ServiceClientChanges = {}
        if "name" in form.changed_data:
            changes["name"] = form.cleaned_data["name"]
        if "last_day" in form.changed_data:
            changes["expires_at"] = end_of(form.cleaned_data["last_day"])
        if "person" in form.changed_data:
            person = form.cleaned_data["person"]
            changes["responsible_user_id"] = None if person is None else person.id
        change_service_client(actor=self.actor, client=self.client, changes=changes)
        return self.done(gettext("Saved."), self.tab_route, self.client.client_id)

    def _change_mode(self) -> HttpResponse:
        mode = ToolMode.READ_ONLY if self.request.POST.get("mode") == ToolMode.READ_ONLY else ToolMode.ALL
        set_tool_mode(actor=self.actor, organization=self.organization, client=self.client, mode=mode)
        text = (
            gettext("%(name)s can now call only read-only tools.")
            if mode is ToolMode.READ_ONLY
            else gettext("%(name)s can now call all its allowed tools.")
        )
        messages.success(self.request, text % {"name": self.client.name})
        return redirect(self.request.path)

    def _change_acting(self) -> HttpResponse:
        allowed = self.request.POST.get("acting") == "yes"
        set_acting(actor=self.actor, organization=self.organization, client=self.client, acts_for_people=allowed)
        text = (
            gettext("%(name)s may now act for people.")
            if allowed
            else gettext("%(name)s may no longer act for people. Its tokens for them no longer work.")
        )
        messages.success(self.request, text % {"name": self.client.name})
        return redirect(self.request.path)

    def _change_list(self) -> HttpResponse:
        is_compact = self.request.POST.get("list") == "compact"
        change_service_client(actor=self.actor, client=self.client, changes={"lists_compactly": is_compact})
        text = (
            gettext("%(name)s now gets three tools instead of all.")
            if is_compact
            else gettext("%(name)s now gets all its tools.")
        )
        messages.success(self.request, text % {"name": self.client.name})
        return redirect(self.request.path)

    def context(self) -> dict[str, Any]:
        people = selectors.members(self.organization)[:SUGGESTED]
        return {
            "people": [(row.user.email, row.user.name) for row in people if row.user.email],
            "is_owner": self.membership.has_role(Role.OWNER),
            "max_days": settings.SERVICE_CLIENT_MAX_DAYS,
        }


def end_of(day: date) -> datetime:
    """The last moment of the day, or the latest expiry that is allowed if that is earlier on this day."""
    end = clock.midnight(day) + timedelta(days=1) - clock.MILLISECOND
    latest = clock.now() + timedelta(days=settings.SERVICE_CLIENT_MAX_DAYS)
    return latest if latest.date() == day else end
