"""The vendors of an organization: what is connected, what could be, and the form that connects one."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from credentials.pages.forms import ConnectionForm
from credentials.scopes import CredentialScope
from credentials.selectors import Connection, connections, credential
from credentials.services.connections import delete_credential
from gateway.catalog import registry
from gateway.catalog.vendor import Vendor
from gateway.lib.errors import DomainError, NotFound
from gateway.web.form_errors import show_on
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from orgs.roles import Role
from orgs.selectors import people_who_may
from proxy.connect_vendor import connect_vendor


class ConnectionsPage(OrgPage):
    """GET /orgs/:orgId/connections: connected vendors first, then the catalog by category."""

    gates = {"GET": Gate(Role.MEMBER)}
    title = "Connections"
    nav_route = "credentials:connections"

    def get(self, request: HttpRequest) -> HttpResponse:
        """Cards of the connected, the searchable catalog of the rest."""
        by_vendor = {
            slug: list(rows) for slug, rows in groupby(connections(self.organization), key=lambda row: row.vendor)
        }
        catalog = registry.load().all()
        connected = [
            {"vendor": vendor, "rows": by_vendor[vendor.slug]} for vendor in catalog if vendor.slug in by_vendor
        ]
        rest = sorted(
            (v for v in catalog if v.slug not in by_vendor), key=lambda v: (v.category.casefold(), v.name.casefold())
        )
        context = {
            "connected": connected,
            "catalog": [(category, list(vendors)) for category, vendors in groupby(rest, key=lambda v: v.category)],
            "may_edit": self.membership.has_role(Role.ADMIN),
            "admins": people_who_may(self.organization, Role.ADMIN),
        }
        return self.page("credentials/connections.html", context)


class ConnectionPage(OrgPage):
    """GET, POST /orgs/:orgId/connections/:vendor: connect, replace or disconnect one vendor. Never shows a value."""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN, active_plan=True, limit=settings.CREDENTIAL_STORE),
        "POST disconnect": Gate(Role.ADMIN),
    }
    title = "Connection"
    nav_route = "credentials:connections"

    def get(self, request: HttpRequest, vendor: str) -> HttpResponse:
        """The vendor's form, empty."""
        known = registry.known_vendor(vendor)
        return self._page(known, ConnectionForm(known))

    def post(self, request: HttpRequest, vendor: str) -> HttpResponse:
        """Disconnect, or check the fields with the vendor and store them. Spec: §4.6 · D62, D63"""
        known = registry.known_vendor(vendor)
        if request.POST.get("action") == "disconnect":
            return self._disconnect(known)
        form = ConnectionForm(known, request.POST)
        if form.is_valid():
            try:
                return self._store(known, form)
            except DomainError as refusal:
                show_on(form, refusal)
        return self._page(known, form, status=422)

    def _store(self, vendor: Vendor, form: ConnectionForm) -> HttpResponse:
        connected = connect_vendor(
            actor=self.actor, organization=self.organization, vendor=vendor, fields=form.values()
        )
        if connected.check.validated:
            messages.success(self.request, f"{vendor.name} is connected. It accepted the credentials.")
        else:
            messages.warning(
                self.request, f"{vendor.name} is stored, but could not be checked: {connected.check.detail}"
            )
        return redirect("credentials:connections", self.organization.id)

    def _disconnect(self, vendor: Vendor) -> HttpResponse:
        default = self._default(vendor)
        if default is None:
            raise NotFound
        delete_credential(actor=self.actor, credential=credential(self.organization, default.id))
        messages.success(self.request, f"{vendor.name} is disconnected.")
        return redirect("credentials:connections", self.organization.id)

    def _default(self, vendor: Vendor) -> Connection | None:
        rows = connections(self.organization, vendor=vendor.slug)
        return next((row for row in rows if row.scope is CredentialScope.ORGANIZATION), None)

    def _page(self, vendor: Vendor, form: ConnectionForm, *, status: int = 200) -> HttpResponse:
        context: dict[str, Any] = {
            "vendor": vendor,
            "form": form,
            "default": self._default(vendor),
            "rows": connections(self.organization, vendor=vendor.slug),
        }
        return self.page("credentials/connection.html", context, status=status)
