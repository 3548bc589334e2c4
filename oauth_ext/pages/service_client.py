"""The pages of one agent: how it stands, and the tools that it may call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_lazy

from audit.selectors import last_calls, recent_errors
from audit.usage.period import Period
from audit.usage.selectors import DayUsage, days_of_caller
from billing import entitlements
from credentials.selectors import CredentialSummary, credential_summaries, organization_vendors_among
from gateway.catalog import registry
from gateway.catalog.catalog import Catalog
from gateway.lib import clock
from gateway.web.gate import Gate
from gateway.web.log_reads import log_read
from gateway.web.navigation import AGENT_TABS
from gateway.web.org_page import OrgPage
from gateway.web.organization_slots import ShareTaken, SlotsTaken
from gateway.web.signed_in import is_by_htmx
from oauth_ext.bearer_rows import client_row
from oauth_ext.models import Client
from oauth_ext.selectors import client_allowlists, restricted_vendors, service_client
from orgs.principal import Principal
from orgs.roles import Role
from proxy.control_plane.assumed_callers import principal_of_client_row
from proxy.control_plane.tool_rights import tools_of

SOON = timedelta(days=14)  # an expiry within it is marked
ERRORS_SHOWN = 5
# While an agent waits for its first call, the page asks so often, for so long.
RENEW_EVERY_S, WAIT_S = 3, 900


@dataclass(frozen=True, slots=True)
class AgentState:
    """`kind`: of the badge, `good`, `warn`, `bad` or `neutral`."""

    kind: str
    icon: str
    label: str


def state_of(client: Client) -> AgentState:
    if client.is_expired():
        return AgentState("bad", "circle-x", gettext("Expired"))
    if client.expires_at is not None and client.expires_at - clock.now() < SOON:
        return AgentState("warn", "alert-triangle", gettext("Expires soon"))
    if client.last_used_at is None:
        return AgentState("neutral", "circle-dashed", gettext("Not used yet"))
    return AgentState("good", "circle-check", gettext("Active"))


class ServiceClientThingPage(OrgPage):
    """A page below /orgs/:orgId/agents/:clientId."""

    title = gettext_lazy("Agent")
    nav_route = "oauth_pages:service-clients"
    tabs = AGENT_TABS

    @cached_property
    def client(self) -> Any:
        """With the annotations of its keys. Raises: NotFound."""
        return service_client(self.organization, self.kwargs["client_id"])

    def tab_ids(self) -> tuple[object, ...]:
        return (self.client.client_id,)

    def frame(self) -> dict[str, Any]:
        return {
            **super().frame(),
            "page_title": self.client.name,
            "client": self.client,
            "is_expired": self.client.is_expired(),
            "state": state_of(self.client),
        }

    @cached_property
    def catalog(self) -> Catalog:
        return registry.load()

    @cached_property
    def credentials(self) -> list[CredentialSummary]:
        """Of the whole organization."""
        return credential_summaries(self.organization)

    @cached_property
    def own_vendors(self) -> list[str]:
        """Vendors that it has credentials of its own for."""
        return sorted({row.vendor for row in self.credentials if row.service_client_id == self.client.id})

    @cached_property
    def shared_vendors(self) -> list[str]:
        """Vendors that the organization has credentials for."""
        return organization_vendors_among(self.credentials)

    @cached_property
    def listed(self) -> frozenset[str] | None:
        """The vendors on its list. None: every vendor of the organization."""
        return restricted_vendors(self.client.id)

    @cached_property
    def usable(self) -> list[str]:
        """Vendors that it may use and that have credentials for it, sorted by name. Spec: D34"""
        shared = [slug for slug in self.shared_vendors if self.listed is None or slug in self.listed]
        catalog = self.catalog
        return sorted({*shared, *self.own_vendors}, key=lambda slug: catalog.name_of(slug).casefold())


class ServiceClientPage(ServiceClientThingPage):
    """GET /orgs/:orgId/agents/:clientId"""

    gates = {"GET": Gate(Role.ADMIN)}
    tab_route = "oauth_pages:service-client"

    def get(self, request: HttpRequest, client_id: str) -> HttpResponse:
        context = {
            "vendors": self.catalog.names_of(self.usable),
            "is_restricted": self.listed is not None,
            "list_count": client_allowlists(self.client).count(),
            **self._activity(),
            **first_call(self.client, request),
        }
        return self.page("oauth_ext/service_client.html", context)

    def _activity(self) -> dict[str, Any]:
        """Calls of the last 7 and 30 days, under the gate of the log. Spec: D147"""
        if not entitlements.is_active(self.organization):
            return {"has_plan": False}
        org_id, subject, now = self.organization.id, self.client.subject, clock.now()
        try:
            with log_read(org_id):
                days = days_of_caller(org_id, subject, Period.parse({"range": "30d"}, now))
        except (ShareTaken, SlotsTaken):
            # The rest of the page does not wait for figures.
            return {"has_plan": True, "is_busy": True}
        begin = now.date() - timedelta(days=6)
        week = PeriodCalls.of(gettext("Last 7 days"), [each for each in days if each.day >= begin])
        return {
            "has_plan": True,
            "is_failing": week.errors * 2 >= week.calls > 0,
            "periods": [week, PeriodCalls.of(gettext("Last 30 days"), days)],
            "errors": [
                (row, self.catalog.name_of(row.vendor)) for row in recent_errors(org_id, ERRORS_SHOWN, user_id=subject)
            ],
        }


@dataclass(frozen=True, slots=True)
class PeriodCalls:
    label: str
    calls: int
    errors: int
    denied: int

    @classmethod
    def of(cls, label: str, days: Sequence[DayUsage]) -> PeriodCalls:
        totals = [each.total for each in days]
        denied = sum(each.denied + each.rate_limited for each in totals)
        return cls(label, sum(each.calls for each in totals), sum(each.errors for each in totals), denied)


def first_call(client: Any, request: HttpRequest) -> dict[str, Any]:
    """Context of `oauth_ext/_first_call.html`: whether the agent has called, and whether the page goes on asking."""
    received = last_calls(client.organization_id, [client.subject]).get(client.subject)
    asked = request.GET.get("asked", "")
    times = int(asked) + 1 if asked.isascii() and asked.isdecimal() and len(asked) < 5 else 0
    return {
        "last_call": received,
        "is_connected": client.last_used_at is not None,
        "asked": times,
        "is_over": times * RENEW_EVERY_S >= WAIT_S,
        "renew_every_s": RENEW_EVERY_S,
    }


class FirstCallPage(ServiceClientThingPage):
    """GET /orgs/:orgId/agents/:clientId/first-call[?asked=]: a part of a page for HTMX, and a page of its own."""

    gates = {"GET": Gate(Role.ADMIN)}
    tab_route = "oauth_pages:service-client"

    def get(self, request: HttpRequest, client_id: str) -> HttpResponse:
        context = first_call(self.client, request)
        if is_by_htmx(request):
            shown = {"organization": self.organization, "client": self.client, "is_answer": True, **context}
            return render(request, "oauth_ext/_first_call.html", shown)
        return self.page("oauth_ext/first_call.html", context)


class ServiceClientToolsPage(ServiceClientThingPage):
    """GET /orgs/:orgId/agents/:clientId/tools: each vendor with the number of tools that it may call. Spec: D165"""

    gates = {"GET": Gate(Role.ADMIN)}
    tab_route = "oauth_pages:service-client-tools"

    @cached_property
    def principal(self) -> Principal:
        """The rights of its calls."""
        return principal_of_client_row(client_row(self.client))

    @cached_property
    def listed(self) -> frozenset[str] | None:
        return self.principal.granted_vendors

    def get(self, request: HttpRequest, client_id: str) -> HttpResponse:
        catalog = self.catalog
        lists = {vendor: len(tools) for vendor, tools in (self.principal.own_allowlists or {}).items()}
        slugs = sorted({*self.usable, *lists}, key=lambda slug: catalog.name_of(slug).casefold())
        known = [vendor for vendor in map(catalog.get, slugs) if vendor is not None]
        reach = tools_of(self.principal, self.organization, known)
        tools = [{"vendor": vendor, "count": lists.get(vendor.slug), "can": reach[vendor.slug]} for vendor in known]
        return self.page("oauth_ext/service_client_tools.html", {"tools": tools})


def mcp_url() -> str:
    return f"{settings.BASE_URL}/v1/mcp"
