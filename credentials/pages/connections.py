"""The catalog of vendors, and the form that connects one."""

from __future__ import annotations

from itertools import groupby

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy

from credentials.pages.credential import CredentialPage
from credentials.selectors import connected_vendors
from gateway.catalog import registry
from gateway.web.gate import Gate, PlanFunction
from gateway.web.navigation import VENDOR_TABS
from gateway.web.org_page import OrgPage
from orgs.roles import Role
from proxy.control_plane.credential_holder import of_organization


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
