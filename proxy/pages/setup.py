"""My setup: the gateway's address, a snippet per client, usable vendors, and likely causes of trouble."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from credentials.selectors import connected_vendors, vendors_serving
from gateway.catalog import registry
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from orgs.access_rules import person_may_use_vendor
from orgs.roles import Role
from orgs.selectors import granted_vendors, people_who_may, team_ids
from proxy.pages.snippets import snippets

# Shown while the person can use no vendor.
EXAMPLE_VENDOR = "<vendor>"


class SetupPage(OrgPage):
    """GET /orgs/:orgId/setup."""

    gates = {"GET": Gate(Role.MEMBER)}
    title = "My setup"
    nav_route = "proxy_pages:setup"

    def get(self, request: HttpRequest) -> HttpResponse:
        connected = connected_vendors(self.organization)
        catalog = registry.load()
        granted = self._granted(connected)
        serving = vendors_serving(self.organization, team_ids(self.membership))
        usable = [slug for slug in granted if slug in serving]
        context = {
            "mcp_url": f"{settings.BASE_URL}/v1/mcp",
            "snippets": snippets(settings.BASE_URL, usable[0] if usable else EXAMPLE_VENDOR),
            "usable": [vendor for slug in usable if (vendor := catalog.get(slug))],
            "not_granted": [vendor for slug in connected if slug not in granted and (vendor := catalog.get(slug))],
            "not_serving": [vendor for slug in granted if slug not in usable and (vendor := catalog.get(slug))],
            "admins": people_who_may(self.organization, Role.ADMIN),
            "is_admin": self.membership.has_role(Role.ADMIN),
        }
        return self.page("proxy/setup.html", context)

    def _granted(self, connected: list[str]) -> list[str]:
        """The rule that decides calls, without a token. Spec: D33"""
        role, default_all = Role(self.membership.role), self.organization.gives_access_by_default
        granted = granted_vendors(self.membership, team_ids(self.membership))
        return [
            slug for slug in connected if person_may_use_vendor(role, granted, slug, default_access_all=default_all)
        ]
