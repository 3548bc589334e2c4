"""The tools that a member of a team may call through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from gateway.catalog import registry
from gateway.catalog.catalog import Catalog
from gateway.catalog.vendor import Vendor
from gateway.lib.errors import NotFound
from gateway.web.gate import Gate
from orgs.pages.team import TeamThingPage
from orgs.roles import Role
from proxy.control_plane.assumed_callers import principal_in_team
from proxy.control_plane.tool_rights import VendorTools, tools_of


@dataclass(frozen=True, slots=True)
class TeamVendor:
    vendor: Vendor
    tools: VendorTools


class TeamToolsPage(TeamThingPage):
    """GET /orgs/:orgId/teams/:teamId/tools. With ?vendor=: its tools, one by one. Spec: §4.9 · D33, D57, D75"""

    gates = {"GET": Gate(Role.ADMIN)}
    tab_route = "orgs:team-tools"

    def get(self, request: HttpRequest, **path: Any) -> HttpResponse:
        found = self._tools(registry.load())
        if "vendor" not in request.GET:
            return self.page("orgs/team_tools.html", {"vendors": found})
        chosen = next((each for each in found if each.vendor.slug == request.GET["vendor"]), None)
        if chosen is None:
            raise NotFound
        allowed = sorted(chosen.tools.allowed)
        others = sorted(set(chosen.tools.offered) - chosen.tools.allowed)
        context = {"chosen": chosen, "lists": [(True, allowed), (False, others)]}
        return self.page("orgs/team_tools.html", context)

    def _tools(self, catalog: Catalog) -> list[TeamVendor]:
        """By name, of the vendors that a member of the team may use. Raises: Forbidden."""
        granted = [row.vendor for row in self.server_access]
        slugs = {*granted, *(self.people_vendors if self.organization.gives_access_by_default else ())}
        vendors = sorted(filter(None, map(catalog.get, slugs)), key=lambda each: (each.name.casefold(), each.slug))
        tools = tools_of(principal_in_team(self.team, granted), self.organization, vendors)
        return [TeamVendor(vendor, tools[vendor.slug]) for vendor in vendors]
