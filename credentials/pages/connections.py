"""The catalog of vendors, and the form that connects one."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy

from credentials.models import QUESTION_KINDS
from credentials.pages.credential import CredentialPage
from credentials.pages.forms import CredentialForm
from credentials.selectors import (
    connected_vendors,
    organization_connections,
    people_connections,
    question_rules,
    sign_in_rules,
)
from credentials.services.vendor_question_rules import change_question_rules
from credentials.services.vendor_sign_in_rules import change_rules
from gateway.catalog import registry
from gateway.lib.errors import DomainError
from gateway.lib.translated import translated
from gateway.web import onward
from gateway.web.gate import Gate, PlanFunction
from gateway.web.navigation import VENDOR_TABS
from gateway.web.onward import continuing
from gateway.web.org_page import OrgPage
from orgs.roles import Role
from proxy.control_plane.credential_holder import of_organization
from proxy.control_plane.vendor_sign_in import ORGANIZATION, begin_sign_in, shown_scopes


class CatalogPage(OrgPage):
    """GET /orgs/:orgId/catalog: the vendors that the organization may connect."""

    gates = {"GET": Gate(Role.ADMIN)}
    title = gettext_lazy("Add a vendor")
    nav_route = "proxy_pages:vendors"

    def get(self, request: HttpRequest) -> HttpResponse:
        connected = set(connected_vendors(self.organization))
        rest = sorted(
            (vendor for vendor in registry.load().all() if vendor.slug not in connected),
            key=lambda vendor: (vendor.category.casefold(), vendor.name.casefold()),
        )
        by_category = [(category, list(vendors)) for category, vendors in groupby(rest, key=lambda v: v.category)]
        sample = next((vendor for vendor in rest if vendor.sample is not None), None)
        return self.page("credentials/catalog.html", {"catalog": by_category, "sample": sample})


class ConnectionPage(CredentialPage):
    """GET, POST /orgs/:orgId/vendors/:vendor/settings. Never shows a value. Spec: D153"""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN, plan=PlanFunction.CREDENTIALS, limit=settings.CREDENTIAL_STORE),
        # Without a plan, too: people can be shut out at any time.
        "POST rules": Gate(Role.ADMIN),
        "POST questions": Gate(Role.ADMIN),
    }
    title = gettext_lazy("Vendor")
    nav_route = "proxy_pages:vendors"
    tabs = VENDOR_TABS
    tab_route = "credentials:connection"
    template = "credentials/connection.html"
    accepted = gettext_lazy("%(vendor)s is connected.")
    unchecked = gettext_lazy("%(vendor)s is saved, but we couldn’t verify it: %(detail)s")
    find_holder = staticmethod(of_organization)

    @property
    def back(self) -> str:
        return reverse("proxy_pages:vendor", args=[self.organization.id, self.vendor.slug])

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        action = request.POST.get("action")
        if action == "questions":
            return self._change_questions(request)
        if self.vendor.oauth is None or (action == "key" and self.vendor.takes_key):
            return super().post(request, **path)
        if action == "rules":
            return self._change_rules(request)
        try:
            address = self._begun(request.session.session_key or "")
        except DomainError as refusal:
            messages.error(request, translated(refusal.message))
            return redirect(request.path)
        return continuing(self.page(onward.TEMPLATE, onward.context_of(self.vendor, address)), address)

    def _change_rules(self, request: HttpRequest) -> HttpResponse:
        try:
            change_rules(
                actor=self.actor,
                organization=self.organization,
                vendor=self.vendor,
                people_may_connect="people_may_connect" in request.POST,
                scopes=request.POST.get("scopes", "").split(),
                accepts_any_server="accepts_any_server" in request.POST,
            )
            messages.success(request, gettext("The rules are saved."))
        except DomainError as refusal:
            messages.error(request, translated(refusal.message))
        return redirect(request.path)

    def _change_questions(self, request: HttpRequest) -> HttpResponse:
        """Raises: NotFound, Forbidden."""
        allowed = [kind for kind in QUESTION_KINDS if kind in request.POST]
        change_question_rules(actor=self.actor, organization=self.organization, vendor=self.vendor, allowed=allowed)
        messages.success(request, gettext("Saved. It counts for the next question."))
        return redirect(request.path)

    def _begun(self, session_key: str) -> str:
        """The address of the vendor's sign-in. Raises: as `begin_sign_in`."""
        return begin_sign_in(
            membership=self.membership,
            vendor=self.vendor,
            level=ORGANIZATION,
            session_key=session_key,
            back=self.request.path,
        )

    def context(self) -> dict[str, Any]:
        found = {**super().context(), "question_rules": question_rules(self.organization.id, self.vendor.slug)}
        if self.vendor.oauth is None:
            return found
        shared = organization_connections(self.organization)
        connection = next((row for row in shared if row.vendor == self.vendor.slug), None)
        rules = sign_in_rules(self.organization.id, self.vendor.slug)
        return {
            **found,
            "asked": shown_scopes(self.vendor, rules, connection),
            "levels": self.vendor.sign_in_levels,
            "rules": rules,
            "connection": connection,
            "people": people_connections(self.organization, self.vendor.slug),
        }

    def show(self, form: CredentialForm, *, status: int = 200, **extra: Any) -> HttpResponse:
        if self.vendor.oauth is None:
            return super().show(form, status=status, **extra)
        context = {"form": form, **self.context(), **extra}
        return self.page("credentials/oauth_connection.html", context, status=status)
