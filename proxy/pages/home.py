"""Home: how things stand in one organization, and the first steps of people who are new there."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy

from audit.change_sentences import in_words
from audit.selectors import MAX_CALLS_COUNTED, RecentCalls, recent_calls, recent_changes
from credentials.rejections import SummaryWithRejection, summaries_with_rejection
from credentials.selectors import connected_among, people_vendors_among
from gateway.catalog import registry
from gateway.catalog.catalog import Catalog
from gateway.catalog.vendor import Vendor
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib import clock
from gateway.lib.errors import DomainError, NotFound
from gateway.lib.translated import sentences_of, translated
from gateway.web.gate import Gate, PlanFunction
from gateway.web.org_page import OrgPage
from oauth_ext.selectors import ending_service_clients
from orgs.roles import Role
from orgs.selectors import people_who_may, requests_of, tool_counts
from proxy.control_plane.alerts.listing import alerts_for_home
from proxy.control_plane.health.selectors import HealthEntry, health_of
from proxy.control_plane.own_vendors import OwnVendors, own_vendors
from proxy.control_plane.sample_vendor import connect_sample, sample_vendor
from proxy.pages.first_steps import FirstSteps, admin_steps, are_hidden, hide, member_steps
from proxy.pages.home_sections import SHOWN_ROWS, WaitingList, bars, troubles
from proxy.pages.setup import remembered

DAYS_DRAWN = 7
ENDS_SOON = timedelta(days=14)
CHANGES_SHOWN = 8


class HomePage(OrgPage):
    """GET, POST /orgs/:orgId. An admin sees the organization, a member what is theirs. Spec: ux 3"""

    gates = {
        "GET": Gate(Role.MEMBER),
        "POST hide": Gate(Role.MEMBER),
        "POST show": Gate(Role.MEMBER),
        "POST sample": Gate(Role.ADMIN, plan=PlanFunction.CREDENTIALS, limit=settings.CREDENTIAL_STORE),
    }
    title = gettext_lazy("Home")
    nav_route = "proxy_pages:home"

    def get(self, request: HttpRequest) -> HttpResponse:
        parts = self._of_admin() if self.is_admin else self._of_member()
        context = {
            **parts,
            "is_admin": self.is_admin,
            "max_counted": MAX_CALLS_COUNTED,
            "has_vendors": bool(self.health),
            "mcp_url": f"{settings.BASE_URL}/v1/mcp",
        }
        return self.page("proxy/home.html", context)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Connects the sample vendor, or hides the first steps, or shows them again. Raises: NotFound."""
        answer = redirect("proxy_pages:home", self.organization.id)
        if request.POST.get("action") == "sample":
            self._connect_sample(registry.known_vendor(request.POST.get("vendor", "")))
            return answer
        hide(answer, self.membership, hidden=request.POST.get("action") == "hide")
        return answer

    def _connect_sample(self, vendor: Vendor) -> None:
        try:
            connected = connect_sample(actor=self.actor, organization=self.organization, vendor=vendor)
        except (NotFound, CoordinationUnavailable):
            raise
        except DomainError as refusal:
            messages.error(self.request, sentences_of(refusal))
            return
        if connected is None:
            messages.info(
                self.request, gettext("%(name)s is already connected. Nothing changed.") % {"name": vendor.name}
            )
        elif connected.check.validated:
            messages.success(self.request, gettext("%(name)s is connected with sample data.") % {"name": vendor.name})
        else:
            messages.warning(
                self.request,
                gettext("%(name)s is saved, but not verified: %(detail)s")
                % {"name": vendor.name, "detail": translated(connected.check.detail)},
            )

    @property
    def is_admin(self) -> bool:
        return self.membership.has_role(Role.ADMIN)

    @cached_property
    def catalog(self) -> Catalog:
        return registry.load()

    @cached_property
    def credentials(self) -> list[SummaryWithRejection]:
        return summaries_with_rejection(self.organization)

    @cached_property
    def health(self) -> list[HealthEntry]:
        return health_of(self.credentials, self.catalog)

    @cached_property
    def people_vendors(self) -> list[str]:
        # The page has loaded the credentials anyhow.
        return people_vendors_among(self.credentials)

    def _of_admin(self) -> dict[str, Any]:
        calls = recent_calls(self.organization.id, DAYS_DRAWN)
        found = troubles(self.health, self.credentials)
        steps = admin_steps(
            self.membership,
            has_vendor=bool(connected_among(self.credentials)),
            has_calls=calls.has_any,
            is_hidden=are_hidden(self.request),
        )
        waiting = self._waiting()
        return {
            **self._drawing(calls),
            **self._first_steps(steps),
            "troubles": found[:SHOWN_ROWS],
            "troubles_left": len(found[SHOWN_ROWS:]),
            "waiting": waiting.rows,
            "changes": in_words(recent_changes(self.organization.id, CHANGES_SHOWN), self.catalog)
            if self.has_plan
            else [],
        }

    def _waiting(self) -> WaitingList:
        organization, soon = self.organization, clock.now() + ENDS_SOON
        waiting = WaitingList(organization)
        if self.membership.has_role(Role.OWNER):
            waiting.add_plan(self.plan)
        waiting.add_rejections(self.credentials, self.catalog)
        waiting.add_alerts(alerts_for_home(organization)[:SHOWN_ROWS])
        waiting.add_requests(self.requests_waiting)
        waiting.add_tool_changes(tool_counts(organization), self.health)
        waiting.add_ending(ending_service_clients(organization, soon), soon)
        return waiting

    def _of_member(self) -> dict[str, Any]:
        own = own_vendors(self.membership, self.credentials)
        calls = recent_calls(self.organization.id, DAYS_DRAWN, user_id=str(self.actor.id))
        # Rejections of other teams' and agents' credentials are not the member's to know.
        mine = [row for row in self.credentials if row.id in own.serving]
        found = troubles(self.health, mine, among=own.usable)
        steps = member_steps(
            self.membership,
            usable=bool(own.usable),
            has_calls=calls.has_any,
            is_hidden=are_hidden(self.request),
        )
        return {
            **self._drawing(calls),
            **self._first_steps(steps),
            **self._own(own),
            "troubles": found[:SHOWN_ROWS],
            "troubles_left": len(found[SHOWN_ROWS:]),
        }

    def _own(self, own: OwnVendors) -> dict[str, Any]:
        """The vendors that the member may use, and those asked for."""
        asked = [row for row in requests_of(self.membership) if row.vendor not in own.usable]
        return {
            "usable": [entry for entry in self.health if entry.vendor_slug in own.usable],
            "requests": [(self.catalog.name_of(row.vendor), row) for row in asked],
            "has_more_vendors": len(own.usable) < len(own.connected),
            "admins": [] if own.usable else people_who_may(self.organization, Role.ADMIN),
        }

    def _first_steps(self, steps: FirstSteps | None) -> dict[str, Any]:
        if steps is None or steps.is_hidden:
            return {"first_steps": steps}
        return {
            "first_steps": steps,
            "guide": remembered(self.request).filled(settings.BASE_URL, ""),
            "sample": sample_vendor(self.catalog, connected_among(self.credentials)) if self.is_admin else None,
        }

    def _drawing(self, recent: RecentCalls) -> dict[str, Any]:
        """Errors are read out of the request log, which needs a plan. Spec: D147"""
        days = recent.days if self.has_plan else [replace(day, errors=0) for day in recent.days]
        return {
            "bars": bars(days),
            "calls": sum(day.calls for day in days),
            "errors": sum(day.errors for day in days),
            "first_day": days[0].day,
            "has_plan": self.has_plan,
        }
