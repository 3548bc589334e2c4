"""Service clients: list, create, delete, and mint, rotate or revoke a key. A secret is rendered once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from credentials.selectors import vendors_by_service_client
from gateway.catalog import registry
from gateway.lib import clock
from gateway.lib.errors import DomainError
from gateway.lib.text import NAME_MAX_CHARACTERS
from gateway.web import form_idempotency
from gateway.web.form_errors import show_on
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from gateway.web.paging import page_of
from gateway.web.typed_name import name_refusal
from oauth_ext.models import Client
from oauth_ext.pages.service_client import vendor_name
from oauth_ext.selectors import service_client, service_clients
from oauth_ext.services.agent_keys import mint_agent_key, revoke_agent_key
from oauth_ext.services.service_clients import create_service_client, delete_service_client
from orgs.roles import Role

RECENT = timedelta(hours=24)  # a use within it asks for the typed name
SOON = timedelta(days=14)  # an expiry within it is marked


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


class ServiceClientsPage(OrgPage):
    """GET, POST /orgs/:orgId/service-accounts."""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    title = "Service accounts"
    nav_route = "oauth_pages:service-clients"

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._page(ServiceClientForm())

    def post(self, request: HttpRequest) -> HttpResponse:
        form = ServiceClientForm(request.POST)
        if form.is_valid():
            if not form_idempotency.claim_key(request):
                return _already_done(self)
            try:
                created = create_service_client(actor=self.actor, organization=self.organization, **form.cleaned_data)
            except DomainError as refusal:
                show_on(form, refusal)
            else:
                secret = {
                    "kind": "client_secret",
                    "title": "Client secret",
                    "client": created.client,
                    "values": [
                        ("Client ID", "GATEWAY_CLIENT_ID", created.client.client_id),
                        ("Client secret", "GATEWAY_CLIENT_SECRET", created.client_secret),
                    ],
                }
                return self._page(ServiceClientForm(), secret=secret, status=201)
        return self._page(form, status=422)

    def _page(
        self, form: ServiceClientForm, *, secret: dict[str, Any] | None = None, status: int = 200
    ) -> HttpResponse:
        return service_clients_page(self, form, secret=secret, status=status)


class AgentKeyPage(OrgPage):
    """GET, POST /orgs/:orgId/service-accounts/:clientId/agent-key: confirm, then mint, rotate or revoke."""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN, limit=settings.AGENT_KEY_MINT, entitlement="serviceClients"),
        "POST revoke": Gate(Role.ADMIN),
    }
    title = "Agent key"
    nav_route = "oauth_pages:service-clients"

    def get(self, request: HttpRequest, client_id: str) -> HttpResponse:
        return self._confirm(service_client(self.organization, client_id))

    def post(self, request: HttpRequest, client_id: str) -> HttpResponse:
        client = service_client(self.organization, client_id)
        if not form_idempotency.claim_key(request):
            return _already_done(self)
        if error := _name_refusal(request, client):
            return self._confirm(client, error=error, status=422)
        if request.POST.get("action") == "revoke":
            revoke_agent_key(actor=self.actor, client=client)
            messages.success(request, f"The agent key of {client.name} no longer works.")
            return redirect("oauth_pages:service-clients", self.organization.id)
        try:
            minted = mint_agent_key(actor=self.actor, client=client)
        except DomainError as refusal:
            return self._confirm(client, error=refusal.message, status=refusal.status)
        secret = {
            "kind": "agent_key",
            "title": "Agent key",
            "client": client,
            "values": [("Agent key", "GATEWAY_KEY", minted.agent_key)],
            "rotated": minted.rotated,
        }
        return service_clients_page(self, ServiceClientForm(), secret=secret, status=201)

    def _confirm(self, client: Client, *, error: str = "", status: int = 200) -> HttpResponse:
        context = {
            "client": client,
            "needs_name": needs_typed_name(client),
            "revoking": self.request.GET.get("revoke") == "1" or self.request.POST.get("action") == "revoke",
            "form_key": form_idempotency.new_key(self.request),
            "error": error,
        }
        return self.page("oauth_ext/agent_key.html", context, status=status)


class DeleteServiceClientPage(OrgPage):
    """GET, POST /orgs/:orgId/service-accounts/:clientId/delete."""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    title = "Delete service account"
    nav_route = "oauth_pages:service-clients"

    def get(self, request: HttpRequest, client_id: str) -> HttpResponse:
        return self._confirm(service_client(self.organization, client_id))

    def post(self, request: HttpRequest, client_id: str) -> HttpResponse:
        client = service_client(self.organization, client_id)
        if error := _name_refusal(request, client):
            return self._confirm(client, error=error, status=422)
        delete_service_client(actor=self.actor, client=client)
        messages.success(request, f"{client.name} is deleted. Its key and tokens no longer work.")
        return redirect("oauth_pages:service-clients", self.organization.id)

    def _confirm(self, client: Client, *, error: str = "", status: int = 200) -> HttpResponse:
        context = {"client": client, "needs_name": needs_typed_name(client), "error": error}
        return self.page("oauth_ext/service_client_delete.html", context, status=status)


def service_clients_page(
    page: OrgPage, form: ServiceClientForm, *, secret: dict[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    """Renders the list; `secret` opens the copy-once dialog."""
    now = clock.now()
    shown = page_of(page.request, service_clients(page.organization))
    vendors, catalog = vendors_by_service_client(page.organization), registry.load()
    clients = [
        {
            "client": client,
            "vendors": [vendor_name(slug, catalog) for slug in vendors.get(client.id, [])],
            "state": "expired" if client.is_expired() else ("soon" if client.expires_at - now < SOON else "active"),
        }
        for client in shown
        if client.expires_at is not None
    ]
    context = {
        "page": shown,
        "clients": clients,
        "form": form,
        "secret": secret,
        "form_key": form_idempotency.new_key(page.request),
        "mcp_url": f"{settings.BASE_URL}/v1/mcp",
        "token_url": f"{settings.BASE_URL}/oauth/token",
    }
    return page.page("oauth_ext/service_clients.html", context, status=status)


def needs_typed_name(client: Client) -> bool:
    """Returns True for a client that was used within the last day: deleting its access would break something."""
    used = client.last_used_at
    return used is not None and clock.now() - used < RECENT


def _name_refusal(request: HttpRequest, client: Client) -> str:
    if not needs_typed_name(client):
        return ""
    return name_refusal(request, client.name, because="it was used within the last day")


def _already_done(page: OrgPage) -> HttpResponse:
    # After a reload or a second submit: the secret was shown already.
    messages.info(
        page.request, "That form was already sent. A secret is shown only once; create a new one if you lost it."
    )
    return redirect("oauth_pages:service-clients", page.organization.id)
