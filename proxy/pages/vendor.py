"""The pages of one vendor: how it stands, and who may use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy, ngettext

from audit.selectors import recent_errors
from audit.usage.period import Period
from audit.usage.response_times import response_times
from audit.usage.selectors import vendors as usage_of_vendors
from billing import entitlements
from credentials.rejections import with_rejections
from credentials.selectors import CredentialSummary, connected_among, credential_summaries, people_vendors_among
from gateway.catalog import registry
from gateway.catalog.catalog import Catalog
from gateway.catalog.vendor import Vendor
from gateway.lib import clock, ids
from gateway.lib.errors import Invalid, NotFound
from gateway.lib.translated import translated
from gateway.web.gate import Gate
from gateway.web.log_reads import log_read
from gateway.web.navigation import VENDOR_TABS
from gateway.web.org_page import OrgPage
from gateway.web.organization_slots import ShareTaken, SlotsTaken
from gateway.web.paging import page_of
from gateway.web.search import MAX_SEARCH_CHARACTERS, search_words
from oauth_ext import selectors as clients
from oauth_ext.services.service_client_vendors import add_client_vendor, remove_client_vendor
from orgs import selectors
from orgs.roles import Role
from orgs.server_access_reasons import effective_server_access, effective_server_access_of
from orgs.services.server_access_changes import ChangeCounts, change_member_access, change_team_access
from proxy.control_plane.health.selectors import health_of
from proxy.control_plane.offered_tool import offered_tool
from proxy.pages.tool_callers import shown_callers
from proxy.pages.vendors import VendorRow

PEOPLE_ON_A_PAGE = 50
ERRORS_SHOWN = 5


class VendorThingPage(OrgPage):
    """A page below /orgs/:orgId/vendors/:vendor. An unknown vendor is not found."""

    nav_route = "proxy_pages:vendors"
    tabs = VENDOR_TABS

    @cached_property
    def catalog(self) -> Catalog:
        return registry.load()

    @cached_property
    def vendor(self) -> Vendor:
        """Raises: NotFound."""
        found = self.catalog.get(self.kwargs["vendor"])
        if found is None:
            raise NotFound
        return found

    @cached_property
    def credentials(self) -> list[CredentialSummary]:
        """Of every vendor of the organization."""
        return credential_summaries(self.organization)

    @cached_property
    def people_vendors(self) -> list[str]:
        return people_vendors_among(self.credentials)

    @property
    def is_admin(self) -> bool:
        return self.membership.has_role(Role.ADMIN)

    @cached_property
    def is_connected(self) -> bool:
        return self.vendor.slug in connected_among(self.credentials)

    def frame(self) -> dict[str, Any]:
        return {
            **super().frame(),
            "page_title": self.vendor.name,
            "vendor": self.vendor,
            "is_admin": self.is_admin,
            "is_connected": self.is_connected,
        }


class VendorPage(VendorThingPage):
    """GET /orgs/:orgId/vendors/:vendor. Reading never probes."""

    gates = {"GET": Gate(Role.MEMBER)}
    title = gettext_lazy("Vendor")
    tab_route = "proxy_pages:vendor"

    def get(self, request: HttpRequest, vendor: str) -> HttpResponse:
        context: dict[str, Any] = {"row": self._row(), "access": self._own_access(), "admins": self._admins()}
        if self.is_admin:
            context |= self._activity()
        return self.page("proxy/vendor.html", context)

    def _row(self) -> VendorRow | None:
        """None for a vendor that is not connected."""
        slug = self.vendor.slug
        health = health_of(self.credentials, self.catalog)
        entry = next((each for each in health if each.vendor_slug == slug), None)
        if entry is None:
            return None
        listed = selectors.allowlists(self.organization.id).get((slug, self.membership.role))
        offered, waiting = selectors.tool_counts(self.organization).get(slug, (0, 0))
        held = with_rejections(self.organization, [each for each in self.credentials if each.vendor == slug])
        return VendorRow(entry, tuple(held), offered, None if listed is None else len(listed), waiting)

    def _admins(self) -> Sequence[str]:
        """The people whom a member may ask."""
        return () if self.is_admin else selectors.people_who_may(self.organization, Role.ADMIN)

    def _own_access(self) -> list[str]:
        """Why the reader may use the vendor, in words; empty without access."""
        found = effective_server_access(self.membership, self.people_vendors)
        return [translated(each.in_words()) for each in found if each.vendor == self.vendor.slug]

    def _activity(self) -> dict[str, Any]:
        """Calls of the last seven days, under the gate of the log. Spec: D147"""
        if not entitlements.is_active(self.organization):
            return {"has_plan": False}
        slug, org_id = self.vendor.slug, self.organization.id
        try:
            with log_read(org_id):
                found = usage_of_vendors(org_id, Period.parse({"range": "7d"}, clock.now()), self.catalog, slug=slug)
                times = response_times(org_id, slug)
        except (ShareTaken, SlotsTaken):
            # The rest of the page does not wait for figures.
            return {"has_plan": True, "is_busy": True}
        errors = [(row, self.vendor.name) for row in recent_errors(org_id, ERRORS_SHOWN, vendor=slug)]
        return {"has_plan": True, "usage": next(iter(found), None), "times": times, "errors": errors}


@dataclass(frozen=True, slots=True)
class Holder:
    """A person, team or agent in the list of those who may use the vendor. `key`: the id in the form."""

    kind: str
    key: str
    name: str
    note: str
    # Why it has access, in words; empty without access.
    reasons: tuple[str, ...]
    # Whether this page gave the access, and so can remove it.
    is_direct: bool
    # The id in the address of its own page; "" without one.
    page_id: str = ""


class VendorAccessPage(VendorThingPage):
    """GET, POST /orgs/:orgId/vendors/:vendor/access[?q=&page=]. With ?tool= it lists the callers of one tool.

    Spec: §4.5 · D33, D34, D57-D59
    """

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    title = gettext_lazy("Vendor access")
    tab_route = "proxy_pages:vendor-access"

    def get(self, request: HttpRequest, vendor: str) -> HttpResponse:
        if "tool" in request.GET:
            return self._callers(request.GET["tool"])
        asked = search_words(request, "q")
        rows = selectors.members(self.organization, matching=asked).select_related("organization", "user")
        page: Any = page_of(request, rows, size=PEOPLE_ON_A_PAGE)
        context = {
            "asked": asked,
            "page": page,
            "people": self._people(list(page)),
            "teams": self._teams(list(selectors.teams(self.organization))),
            "agents": self._agents(),
            "tools": self._tools_to_choose(),
        }
        return self.page("proxy/vendor_access.html", context)

    def _callers(self, name: str) -> HttpResponse:
        """The callers of the tool with this name, instead of the users of the vendor."""
        tool = offered_tool(self.membership, self.vendor, name.strip())
        if tool is None:
            named = {"vendor": self.vendor.name, "tool": name[:MAX_SEARCH_CHARACTERS]}
            text = gettext("%(vendor)s has no tool called “%(tool)s”.") % named
            messages.error(self.request, text)
            return redirect(self.request.path)
        callers = shown_callers(self.request, self.organization, self.people_vendors, self.vendor, tool)
        context = {"tool": tool, "callers": callers, "tools": self._tools_to_choose()}
        return self.page("proxy/vendor_tool_access.html", context)

    def _tools_to_choose(self) -> list[str]:
        rows = selectors.offered_tools_named(self.organization, "", vendors=[self.vendor.slug])
        return [row.tool for row in rows]

    def post(self, request: HttpRequest, vendor: str) -> HttpResponse:
        """Raises: NotFound, Invalid, Forbidden."""
        kind, key, gives = request.POST.get("kind", ""), request.POST.get("key", ""), "give" in request.POST
        if not gives and "remove" not in request.POST:
            raise Invalid(gettext("Choose whether to give or to remove access."))
        match kind:
            case "person" | "team":
                changed = self._change(kind, key, gives=gives)
            case "agent":
                changed = self._change_agent(key, gives=gives)
            case _:
                raise Invalid(gettext("Choose a person, a team or an agent."))
        if changed:
            messages.success(request, gettext("Access given.") if gives else gettext("Access removed."))
        else:
            messages.info(request, gettext("Nothing changed."))
        return redirect(request.get_full_path())

    def _change(self, kind: str, key: str, *, gives: bool) -> bool:
        principal = ids.parse_id(key)
        if principal is None:
            raise NotFound
        pair = {(principal, self.vendor.slug)}
        none: set[tuple[UUID, str]] = set()
        change = change_team_access if kind == "team" else change_member_access
        done: ChangeCounts = change(
            actor=self.actor,
            organization=self.organization,
            added=pair if gives else none,
            removed=none if gives else pair,
        )
        return bool(done.added or done.removed)

    def _change_agent(self, key: str, *, gives: bool) -> bool:
        client = clients.service_client(self.organization, key)
        change = add_client_vendor if gives else remove_client_vendor
        change(actor=self.actor, organization=self.organization, client=client, vendor=self.vendor.slug)
        return True

    def _people(self, members: list[Any]) -> list[Holder]:
        slug = self.vendor.slug
        access = effective_server_access_of(members, self.people_vendors)
        mine = {pk: [each for each in reasons if each.vendor == slug] for pk, reasons in access.items()}
        return [
            Holder(
                "person",
                str(row.user_id),
                row.user.name,
                f"{row.user.email}, {translated(row.role)}",
                tuple(translated(each.in_words()) for each in mine[row.pk]),
                any(each.source == "direct" for each in mine[row.pk]),
            )
            for row in members
        ]

    def _teams(self, teams: Sequence[Any]) -> list[Holder]:
        given = set(
            selectors.server_access(self.organization)
            .filter(vendor=self.vendor.slug, team__isnull=False)
            .values_list("team_id", flat=True)
        )
        return [
            Holder(
                "team",
                str(team.pk),
                team.name,
                ngettext("%(count)s member", "%(count)s members", team.member_count) % {"count": team.member_count},
                (gettext("directly"),) if team.pk in given else (),
                team.pk in given,
                str(team.pk),
            )
            for team in teams
        ]

    def _agents(self) -> list[Holder]:
        slug = self.vendor.slug
        own = {row.service_client_id for row in self.credentials if row.vendor == slug}
        listed = set(
            clients.service_client_vendor_rows(self.organization)
            .filter(vendor=slug)
            .values_list("client_id", flat=True)
        )
        found = []
        for client in clients.service_clients(self.organization):
            reasons = [
                text
                for text, applies in (
                    (gettext("own credentials"), client.id in own),
                    (gettext("directly"), client.id in listed),
                    (gettext("can use all vendors"), not client.restricted),
                )
                if applies
            ]
            note = gettext("expired") if client.is_expired() else client.client_id
            found.append(
                Holder(
                    "agent", str(client.id), client.name, note, tuple(reasons), client.id in listed, client.client_id
                )
            )
        return found
