"""Settings of an organization: its name, its default access, and its deletion."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy

from credentials.selectors import credential_summaries, people_vendors
from gateway.catalog import registry
from gateway.lib.text import NAME_MAX_CHARACTERS
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from gateway.web.paging import page_of
from gateway.web.typed_name import TypedNameForm
from oauth_ext.selectors import service_clients
from orgs import selectors
from orgs.default_access_preview import default_access_changes
from orgs.models import Organization
from orgs.roles import Role
from orgs.services.organizations import delete_organization, rename_organization, update_settings


class NameForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Organization name"),
        max_length=NAME_MAX_CHARACTERS,
        widget=forms.TextInput(attrs={"autocomplete": "organization"}),
    )


class SettingsPage(OrgFormPage[NameForm]):
    """GET, POST /orgs/:orgId/settings. Spec: §4.4 · D38"""

    gates = {"GET": Gate(Role.OWNER), "POST": Gate(Role.OWNER)}
    title = gettext_lazy("General settings")
    nav_route = "orgs:settings"
    form_class = NameForm
    template = "orgs/settings.html"

    def initial(self) -> dict[str, Any]:
        return {"name": self.organization.name}

    def save(self, form: NameForm) -> HttpResponse:
        renamed = rename_organization(actor=self.actor, organization=self.organization, **form.cleaned_data)
        return self.done(gettext("The organization is now called %(name)s.") % {"name": renamed.name}, "orgs:settings")

    def context(self) -> dict[str, Any]:
        return {"connected": len(people_vendors(self.organization))}


class DefaultAccessPage(OrgPage):
    """GET, POST /orgs/:orgId/settings/default-access. Previews the members who gain or lose vendors."""

    gates = {"GET": Gate(Role.OWNER), "POST": Gate(Role.OWNER)}
    title = gettext_lazy("Default access")
    nav_route = "orgs:settings"

    def get(self, request: HttpRequest) -> HttpResponse:
        """Preview of `?to=none` or `?to=all`."""
        asked = request.GET.get("to", "")
        if asked not in Organization.DefaultServerAccess.values:
            return redirect("orgs:settings", self.organization.id)
        if asked == self.organization.default_server_access:
            messages.info(request, gettext("This is already the default access. Nothing changed."))
            return redirect("orgs:settings", self.organization.id)
        return self._preview(asked)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Spec: §4.4 · D38"""
        asked = request.POST.get("to", "")
        update_settings(actor=self.actor, organization=self.organization, default_server_access=asked)
        gives = asked == Organization.DefaultServerAccess.ALL
        text = (
            gettext("Members can now use all connected vendors.")
            if gives
            else gettext("Members can now use only the vendors given to them or their teams.")
        )
        return self.done(text, "orgs:settings")

    def _preview(self, asked: str) -> HttpResponse:
        gives = asked == Organization.DefaultServerAccess.ALL
        changes = default_access_changes(
            self.organization, default_all=gives, connected_vendors=people_vendors(self.organization)
        )
        catalog = registry.load()
        page = page_of(self.request, changes)
        shown = selectors.members(self.organization).filter(pk__in=[change.membership_id for change in page])
        people = {row.pk: row.user for row in shown}
        context: dict[str, Any] = {
            "to": asked,
            "gives": gives,
            "page": page,
            "vendors_touched": len({vendor for change in changes for vendor in change.vendors}),
            "rows": [
                {"person": people[change.membership_id], "vendors": catalog.names_of(change.vendors)}
                for change in page
                if change.membership_id in people
            ],
        }
        return self.page("orgs/default_access.html", context)


class DeleteOrganizationPage(OrgFormPage[TypedNameForm]):
    """GET, POST /orgs/:orgId/settings/delete. Asks for the organization's name. Spec: §4.4 · D37"""

    gates = {"GET": Gate(Role.OWNER), "POST": Gate(Role.OWNER)}
    title = gettext_lazy("Delete organization")
    nav_route = "orgs:settings"
    template = "orgs/organization_delete.html"
    refusal_status = None

    def new_form(self, data: QueryDict | None = None) -> TypedNameForm:
        return TypedNameForm(self.organization.name, data)

    def save(self, form: TypedNameForm) -> HttpResponse:
        name = self.organization.name
        delete_organization(actor=self.actor, organization=self.organization)
        messages.success(self.request, gettext("%(name)s was deleted.") % {"name": name})
        return redirect("landing")

    def context(self) -> dict[str, Any]:
        organization = self.organization
        return {
            "members": selectors.members(organization).count(),
            "teams": selectors.teams(organization).count(),
            "service_clients": service_clients(organization).count(),
            "credentials": len(credential_summaries(organization)),
            "invitations": selectors.pending_invitations(organization).count(),
            "retention_days": settings.AUDIT_RETENTION_DAYS,
        }
