"""Agents: the list, and the page that makes one with its limits and its key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy, ngettext

from credentials.selectors import organization_vendors, vendors_by_service_client
from gateway.catalog import registry
from gateway.lib.text import NAME_MAX_CHARACTERS
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from gateway.web.paging import page_of
from oauth_ext.pages.agent_snippets import CLIENTS, agent_snippets
from oauth_ext.pages.service_client import first_call, mcp_url, state_of
from oauth_ext.selectors import service_client, service_client_vendor_rows, service_clients
from oauth_ext.services.new_agents import NewAgent, create_agent
from orgs.roles import Role

ALREADY_SENT = gettext_lazy("Already created. If you lost the key, create a new one in the agent’s settings.")
LIFETIMES = tuple(days for days in (1, 7, 30, 90, 180, 365) if days <= settings.SERVICE_CLIENT_MAX_DAYS)
ALL, CHOSEN = "all", "chosen"


class ServiceClientsPage(OrgPage):
    """GET /orgs/:orgId/agents"""

    gates = {"GET": Gate(Role.ADMIN)}
    title = gettext_lazy("Agents")
    nav_route = "oauth_pages:service-clients"

    def get(self, request: HttpRequest) -> HttpResponse:
        shown = page_of(request, service_clients(self.organization))
        own, listed = vendors_by_service_client(self.organization), self._listed()
        catalog = registry.load()
        clients = [
            {
                "client": client,
                "state": state_of(client),
                "vendors": catalog.names_of({*listed.get(client.id, ()), *own.get(client.id, ())}),
                "own": catalog.names_of(own.get(client.id, [])),
            }
            for client in shown
        ]
        return self.page("oauth_ext/service_clients.html", {"page": shown, "clients": clients})

    def _listed(self) -> dict[Any, list[str]]:
        found: dict[Any, list[str]] = {}
        for client_pk, vendor in service_client_vendor_rows(self.organization).values_list("client_id", "vendor"):
            found.setdefault(client_pk, []).append(vendor)
        return found


class NewAgentForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=NAME_MAX_CHARACTERS,
        help_text=gettext_lazy("Shown in lists and logs, for example “Triage bot”."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    access = forms.ChoiceField(
        label=gettext_lazy("Vendors"),
        choices=((ALL, gettext_lazy("All connected vendors")), (CHOSEN, gettext_lazy("Only chosen vendors"))),
    )
    vendors = forms.MultipleChoiceField(
        label=gettext_lazy("Chosen vendors"), required=False, widget=forms.CheckboxSelectMultiple
    )
    read_only = forms.BooleanField(label=gettext_lazy("Only read-only tools"), required=False)
    compact_list = forms.BooleanField(label=gettext_lazy("Show three tools instead of all"), required=False)
    expires_in_days = forms.TypedChoiceField(
        label=gettext_lazy("Expires after"),
        coerce=int,
        help_text=gettext_lazy("Its key stops working then. You can extend it at any time."),
    )
    mcp_client = forms.ChoiceField(
        label=gettext_lazy("Client to set up"),
        choices=[(slug, gettext_lazy(name)) for slug, name in CLIENTS.items()],
        help_text=gettext_lazy("The next page has the configuration for it, with the key filled in."),
    )

    def __init__(self, data: QueryDict | None = None, *, vendors: Sequence[tuple[str, str]] = (), **options: Any):
        super().__init__(data, **options)
        self.fields["vendors"].choices = vendors  # type: ignore[attr-defined]
        self.fields["expires_in_days"].choices = [  # type: ignore[attr-defined]
            (days, ngettext("%(days)s day", "%(days)s days", days) % {"days": days}) for days in LIFETIMES
        ]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if cleaned.get("access") == CHOSEN and not cleaned.get("vendors") and "vendors" not in self.errors:
            self.add_error("vendors", gettext("Choose at least one vendor."))
        return cleaned


class NewServiceClientPage(OrgFormPage[NewAgentForm]):
    """GET, POST /orgs/:orgId/agents/new. The answer shows the agent key once. Spec: §4.8 · D72, D165, D173"""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN, limit=settings.AGENT_KEY_MINT, entitlement="serviceClients"),
    }
    title = gettext_lazy("New agent")
    nav_route = "oauth_pages:service-clients"
    form_class = NewAgentForm
    template = "oauth_ext/service_client_new.html"
    already_sent = ALREADY_SENT

    def sent_again(self) -> str:
        return reverse(self.nav_route, args=[self.organization.id])

    def new_form(self, data: QueryDict | None = None) -> NewAgentForm:
        catalog = registry.load()
        connected = [(slug, catalog.name_of(slug)) for slug in organization_vendors(self.organization)]
        first = {
            "access": ALL,
            "expires_in_days": settings.SERVICE_CLIENT_DEFAULT_DAYS,
            "mcp_client": next(iter(CLIENTS)),
        }
        return NewAgentForm(data, vendors=sorted(connected, key=lambda each: each[1].casefold()), initial=first)

    def save(self, form: NewAgentForm) -> HttpResponse:
        chosen = form.cleaned_data
        made = create_agent(
            actor=self.actor,
            organization=self.organization,
            name=chosen["name"],
            expires_in_days=chosen["expires_in_days"],
            vendors=chosen["vendors"] if chosen["access"] == CHOSEN else None,
            is_read_only=chosen["read_only"],
            lists_compactly=chosen["compact_list"],
        )
        return self._made(made, chosen["mcp_client"])

    def _made(self, made: NewAgent, chosen: str) -> HttpResponse:
        snippets = agent_snippets(mcp_url(), made.agent_key)
        client = service_client(self.organization, made.client.client_id)
        context = {
            "page_title": client.name,
            "client": client,
            "agent_key": made.agent_key,
            "snippet": next(each for each in snippets if each.slug == chosen),
            "other_snippets": [each for each in snippets if each.slug != chosen],
            **first_call(client, self.request),
        }
        return self.page("oauth_ext/service_client_made.html", context, status=201)
