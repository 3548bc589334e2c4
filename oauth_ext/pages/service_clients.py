"""Service clients: list, create, delete, and mint, rotate or revoke a key. A secret is rendered once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.http import HttpResponse, QueryDict
from django.urls import reverse
from django.utils.functional import cached_property

from credentials.selectors import vendors_by_service_client
from gateway.catalog import registry
from gateway.lib import clock
from gateway.lib.text import NAME_MAX_CHARACTERS
from gateway.web import form_idempotency
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from gateway.web.paging import page_of
from gateway.web.typed_name import TypedNameForm
from oauth_ext.models import Client
from oauth_ext.selectors import service_client, service_clients
from oauth_ext.services.agent_keys import mint_agent_key, revoke_agent_key
from oauth_ext.services.service_clients import create_service_client, delete_service_client
from orgs.roles import Role

RECENT = timedelta(hours=24)  # a use within it asks for the typed name
SOON = timedelta(days=14)  # an expiry within it is marked
ALREADY_SENT = "That form was already sent. A secret is shown only once; create a new one if you lost it."


class ServiceClientForm(forms.Form):
    name = forms.CharField(
        label="Name",
        max_length=NAME_MAX_CHARACTERS,
        help_text="What the audit log calls it, for example “triage bot”.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    expires_in_days = forms.IntegerField(
        label="Expires in (days)",
        min_value=1,
        max_value=settings.SERVICE_CLIENT_MAX_DAYS,
        initial=settings.SERVICE_CLIENT_DEFAULT_DAYS,
        help_text="Its secret, its agent key and its tokens stop working on that day.",
    )


class ServiceClientsPage(OrgFormPage[ServiceClientForm]):
    """GET, POST /orgs/:orgId/service-accounts."""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    title = "Service accounts"
    nav_route = "oauth_pages:service-clients"
    form_class = ServiceClientForm
    template = "oauth_ext/service_clients.html"
    already_sent = ALREADY_SENT

    def save(self, form: ServiceClientForm) -> HttpResponse:
        created = create_service_client(actor=self.actor, organization=self.organization, **form.cleaned_data)
        secret = {
            "kind": "client_secret",
            "title": "Client secret",
            "client": created.client,
            "values": [
                ("Client ID", "GATEWAY_CLIENT_ID", created.client.client_id),
                ("Client secret", "GATEWAY_CLIENT_SECRET", created.client_secret),
            ],
        }
        return self.show(self.new_form(), secret=secret, status=201)

    def context(self) -> dict[str, Any]:
        return _list_context(self)


class _ConfirmPage(OrgFormPage[TypedNameForm]):
    """Confirms a change of one service client. A client that was used within a day needs its name."""

    nav_route = "oauth_pages:service-clients"
    refusal_status = None

    @cached_property
    def client(self) -> Client:
        return service_client(self.organization, self.kwargs["client_id"])

    def new_form(self, data: QueryDict | None = None) -> TypedNameForm:
        used = self.client.last_used_at
        needs_name = used is not None and clock.now() - used < RECENT
        return TypedNameForm(self.client.name if needs_name else "", data, because="it was used within the last day")

    def context(self) -> dict[str, Any]:
        return {"client": self.client}


class AgentKeyPage(_ConfirmPage):
    """GET, POST /orgs/:orgId/service-accounts/:clientId/agent-key: confirm, then mint, rotate or revoke."""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN, limit=settings.AGENT_KEY_MINT, entitlement="serviceClients"),
        "POST revoke": Gate(Role.ADMIN),
    }
    title = "Agent key"
    template = "oauth_ext/agent_key.html"
    already_sent = ALREADY_SENT

    def sent_again(self) -> str:
        return reverse(self.nav_route, args=[self.organization.id])

    def save(self, form: TypedNameForm) -> HttpResponse:
        if self.request.POST.get("action") == "revoke":
            revoke_agent_key(actor=self.actor, client=self.client)
            return self.done(f"The agent key of {self.client.name} no longer works.", self.nav_route)
        minted = mint_agent_key(actor=self.actor, client=self.client)
        secret = {
            "kind": "agent_key",
            "title": "Agent key",
            "client": self.client,
            "values": [("Agent key", "GATEWAY_KEY", minted.agent_key)],
            "rotated": minted.rotated,
        }
        form_key = form_idempotency.new_key(self.request)
        listed = {"form": ServiceClientForm(), "form_key": form_key, "secret": secret, **_list_context(self)}
        return self.page("oauth_ext/service_clients.html", listed, status=201)

    def context(self) -> dict[str, Any]:
        is_revoking = self.request.GET.get("revoke") == "1" or self.request.POST.get("action") == "revoke"
        return {**super().context(), "revoking": is_revoking}


class DeleteServiceClientPage(_ConfirmPage):
    """GET, POST /orgs/:orgId/service-accounts/:clientId/delete."""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    title = "Delete service account"
    template = "oauth_ext/service_client_delete.html"

    def save(self, form: TypedNameForm) -> HttpResponse:
        delete_service_client(actor=self.actor, client=self.client)
        return self.done(f"{self.client.name} is deleted. Its key and tokens no longer work.", self.nav_route)


def _list_context(page: OrgPage) -> dict[str, Any]:
    now = clock.now()
    shown = page_of(page.request, service_clients(page.organization))
    vendors, catalog = vendors_by_service_client(page.organization), registry.load()
    clients = [
        {
            "client": client,
            "vendors": catalog.names_of(vendors.get(client.id, [])),
            "state": "expired" if client.is_expired() else ("soon" if client.expires_at - now < SOON else "active"),
        }
        for client in shown
        if client.expires_at is not None
    ]
    return {
        "page": shown,
        "clients": clients,
        "mcp_url": f"{settings.BASE_URL}/v1/mcp",
        "token_url": f"{settings.BASE_URL}/oauth/token",
    }
