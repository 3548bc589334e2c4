"""The vendors of an organization: connected ones, the catalog, and the form that connects one."""

from __future__ import annotations

from datetime import datetime
from itertools import groupby

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from credentials.pages.credential import CredentialPage
from credentials.rejections import SummaryWithRejection, summaries_with_rejection
from credentials.selectors import connected_vendors
from gateway.catalog import registry
from gateway.web.gate import Gate, PlanFunction
from gateway.web.org_page import OrgPage
from orgs.roles import Role
from orgs.selectors import people_who_may
from proxy.control_plane.credential_holder import of_organization


class ConnectionsPage(OrgPage):
    """GET /orgs/:orgId/connections"""

    gates = {"GET": Gate(Role.MEMBER)}
    title = "Connections"
    nav_route = "credentials:connections"

    def get(self, request: HttpRequest) -> HttpResponse:
        # A vendor with only unbound named keys is not connected.
        usable = connected_vendors(self.organization)
        by_vendor = {
            slug: list(rows)
            for slug, rows in groupby(summaries_with_rejection(self.organization), key=lambda row: row.vendor)
            if slug in usable
        }
        catalog = registry.load().all()
        connected = [
            {"vendor": vendor, "rows": rows, "rejected_at": _last_rejected(rows)}
            for vendor in catalog
            if (rows := by_vendor.get(vendor.slug))
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


def _last_rejected(rows: list[SummaryWithRejection]) -> datetime | None:
    return max((row.rejected_at for row in rows if row.rejected_at), default=None)


class ConnectionPage(CredentialPage):
    """GET, POST /orgs/:orgId/connections/:vendor. Never shows a value."""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN, plan=PlanFunction.CREDENTIALS, limit=settings.CREDENTIAL_STORE),
        "POST disconnect": Gate(Role.ADMIN),
    }
    title = "Connection"
    nav_route = "credentials:connections"
    template = "credentials/connection.html"
    accepted = "{vendor} is connected. It accepted the credentials."
    unchecked = "{vendor} is stored, but could not be checked: {detail}"
    deleted = "{vendor} is disconnected."
    delete_action = "disconnect"
    find_holder = staticmethod(of_organization)
    back_route = "credentials:connections"
