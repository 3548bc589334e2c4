"""The pages of one person: who they are here, and which vendors they may use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_lazy

from audit.selectors import last_calls
from gateway.catalog import registry
from gateway.catalog.vendor import Vendor
from gateway.lib.errors import Forbidden, Invalid
from gateway.lib.translated import translated
from gateway.web.gate import Gate
from gateway.web.navigation import PERSON_TABS
from gateway.web.org_page import OrgPage
from oauth_ext.selectors import connected_apps
from orgs import selectors
from orgs.models import Membership, Team
from orgs.roles import Role, may_read_server_access, may_remove
from orgs.server_access_reasons import AccessReason, effective_server_access
from orgs.services.server_access_changes import change_member_access
from proxy.control_plane.assumed_callers import principal_of_member
from proxy.control_plane.tool_rights import VendorTools, tools_of

APPS_SHOWN = 20


class PersonThingPage(OrgPage):
    """A page below /orgs/:orgId/people/:userId: one's own, and for admins every member's."""

    nav_route = "orgs:members"
    tabs = PERSON_TABS

    @cached_property
    def target(self) -> Membership:
        """Raises: NotFound; Forbidden."""
        # Members learn from the refusal no more than from the list of members.
        found = selectors.member(self.organization, str(self.kwargs["user_id"]))
        if not may_read_server_access(Role(self.membership.role), themselves=found.pk == self.membership.pk):
            raise Forbidden(gettext("Only admins can open another member’s page."))
        return found

    @property
    def is_own(self) -> bool:
        return self.target.pk == self.membership.pk

    @property
    def is_admin(self) -> bool:
        return self.membership.has_role(Role.ADMIN)

    def frame(self) -> dict[str, Any]:
        target = self.target
        return {
            **super().frame(),
            "page_title": target.user.name,
            "target": target,
            "is_own": self.is_own,
            "is_admin": self.is_admin,
            "may_remove": not self.is_own
            and may_remove(Role(self.membership.role), Role(target.role), themselves=False),
        }


class PersonPage(PersonThingPage):
    """GET /orgs/:orgId/people/:userId"""

    gates = {"GET": Gate(Role.MEMBER)}
    title = gettext_lazy("Person")
    tab_route = "orgs:person"

    def get(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        target = self.target
        vendors = {each.vendor for each in effective_server_access(target, self.people_vendors)}
        apps = connected_apps(self.organization, of=target.user)
        context = {
            "teams": selectors.teams_of(target),
            "vendors": sorted(registry.load().names_of(vendors), key=str.casefold),
            "apps": list(apps[:APPS_SHOWN]),
            "last_call": last_calls(self.organization.id, [str(target.user_id)]).get(str(target.user_id)),
        }
        return self.page("orgs/person.html", context)


@dataclass(frozen=True, slots=True)
class VendorAccess:
    """One vendor and a person. `reasons`: why they may use it, in words; empty without access."""

    slug: str
    name: str
    is_connected: bool
    reasons: tuple[str, ...]
    is_direct: bool
    # Tools that the vendor offers, and those that the person may call.
    offered: int
    allowed: int
    # Why a call would be refused although the person has access; "" otherwise.
    refusal: str


class PersonAccessPage(PersonThingPage):
    """GET, POST /orgs/:orgId/people/:userId/access. With ?vendor=: its tools. Spec: §4.5 · D33, D57-D59"""

    gates = {"GET": Gate(Role.MEMBER), "POST": Gate(Role.ADMIN)}
    title = gettext_lazy("Person")
    tab_route = "orgs:person-access"

    def get(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        if "vendor" in request.GET:
            return self._tools_at(registry.known_vendor(request.GET["vendor"]))
        return self.page("orgs/person_access.html", {"vendors": self._vendors()})

    def _tools_at(self, vendor: Vendor) -> HttpResponse:
        """The tools of one vendor that the person may call; admins see the others too."""
        access, teams = effective_server_access(self.target, self.people_vendors), selectors.teams_of(self.target)
        tools = self._tools(access, teams, [vendor])[vendor.slug]
        others = sorted(set(tools.offered) - tools.allowed) if self.is_admin else []
        context = {"vendor": vendor, "tools": tools, "allowed": sorted(tools.allowed), "others": others}
        return self.page("orgs/person_tools.html", context)

    def _tools(
        self, access: Sequence[AccessReason], teams: Sequence[Team], vendors: Iterable[Vendor]
    ) -> dict[str, VendorTools]:
        """By the rules that decide calls. Raises: Forbidden."""
        oldest_first = sorted(teams, key=lambda team: (team.created_at, team.pk))
        principal = principal_of_member(self.target, access, [team.pk for team in oldest_first])
        return tools_of(principal, self.organization, vendors)

    def post(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        """Raises: NotFound, Invalid, Forbidden."""
        gives = "give" in request.POST
        pair = {(self.target.user_id, request.POST.get("give" if gives else "remove", ""))}
        if not gives and "remove" not in request.POST:
            raise Invalid(gettext("Choose whether to give or to remove access."))
        none: set[tuple[UUID, str]] = set()
        change_member_access(
            actor=self.actor,
            organization=self.organization,
            added=pair if gives else none,
            removed=none if gives else pair,
        )
        messages.success(request, gettext("Access given.") if gives else gettext("Access removed."))
        return redirect(request.path)

    def _vendors(self) -> list[VendorAccess]:
        connected, catalog = self.people_vendors, registry.load()
        access = effective_server_access(self.target, connected)
        teams = selectors.teams_of(self.target)
        slugs = {*connected, *(each.vendor for each in access)}
        tools = self._tools(access, teams, filter(None, map(catalog.get, slugs)))
        found = []
        for slug, counted in tools.items():
            mine = [each for each in access if each.vendor == slug]
            found.append(
                VendorAccess(
                    slug,
                    catalog.name_of(slug),
                    slug in connected,
                    tuple(translated(each.in_words()) for each in mine),
                    any(each.source == "direct" for each in mine),
                    len(counted.offered),
                    len(counted.allowed),
                    counted.refusal if mine else "",
                )
            )
        return sorted(found, key=lambda each: (each.name.casefold(), each.slug))
