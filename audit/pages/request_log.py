"""The request log page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_lazy, ngettext_lazy

from audit.call_status import CallSource, CallStatus
from audit.csv_columns import REQUEST_CSV
from audit.distinct_values import distinct_values
from audit.filters import REQUEST_FILTERS
from audit.models import RequestAuditEntry
from audit.pages.log_page import LogPage
from audit.pages.remedies import Remedy, remedy_of
from audit.usage.response_times import response_times
from gateway.catalog import registry
from gateway.catalog.catalog import Catalog
from gateway.lib.sentences import sentence
from gateway.web.navigation import AGENT_TABS, PERSON_TABS, TEAM_TABS, VENDOR_TABS
from gateway.web.rate import RateLimited
from oauth_ext.selectors import service_client
from orgs.selectors import member, team, team_subjects

AN_HOUR = timedelta(hours=1)
# Error codes of rows whose tool was not found.
NO_TOOL = frozenset({"unknown_tool", "unknown_vendor"})
# The words of CallStatus, for the catalogs.
STATUS_WORDS = (sentence("success"), sentence("error"), sentence("denied"), sentence("unknown"))


class RequestLogPage(LogPage):
    """GET /orgs/:orgId/audit. Spec: §4.10 · D147"""

    title = gettext_lazy("Calls")
    nav_route = "audit_pages:request-log"
    template = "audit/request_log.html"
    drawer = "audit/_call_drawer.html"
    api_route = "audit_api:request-log"
    filters = {
        "user_id": gettext_lazy("Who"),
        "vendor": gettext_lazy("Vendor"),
        "tool": gettext_lazy("Tool"),
        "source": gettext_lazy("Source"),
        "status": gettext_lazy("Result"),
        "request_id": gettext_lazy("Request ID"),
    }
    subject = "user_id"
    rows_found = ngettext_lazy("%(count)s call", "%(count)s calls", "number")
    more_rows = gettext_lazy("more than %(count)s calls")
    no_rows = gettext_lazy("No calls match these filters")
    log, parsers, columns = RequestAuditEntry, REQUEST_FILTERS, REQUEST_CSV

    @cached_property
    def catalog(self) -> Catalog:
        return registry.load()

    def row(self, entry: RequestAuditEntry) -> dict[str, Any]:
        return {
            "tool_url": self._tool_url(entry),
            "has_vendor_page": self.catalog.get(entry.vendor) is not None,
            "vendor_name": self.catalog.name_of(entry.vendor),
        }

    def details(self, entry: RequestAuditEntry) -> dict[str, Any]:
        return {
            "same": self.url_with(request_id=entry.request_id),
            "remedy": self._used_up(entry) or remedy_of(entry, self.organization.id, self.catalog),
        }

    def text_of(self, name: str, value: str) -> str:
        return self.catalog.name_of(value) if name == "vendor" else value

    def _tool_url(self, entry: RequestAuditEntry) -> str:
        """The page of the row's tool; "" where the row names no tool of a vendor."""
        vendor = self.catalog.get(entry.vendor)
        if vendor is None or not entry.tool or entry.error_code in NO_TOOL:
            return ""
        return f"{reverse('proxy_pages:tool', args=[self.organization.id, vendor.slug, entry.tool])}"

    def _used_up(self, entry: RequestAuditEntry) -> Remedy | None:
        """For a rate-limited row, the calls that used the quota up. Spec: §8 · D146"""
        if entry.error_code != RateLimited.code:
            return None
        text = gettext(
            "The caller reached its limit of calls per hour. It can call again once older calls are more than an hour"
            " old."
        )
        url = self.between(entry.user_id, entry.timestamp - AN_HOUR, entry.timestamp)
        return Remedy(text, gettext("Calls in the hour before"), url)

    def choices(self) -> dict[str, Any]:
        logged = distinct_values(self.log, self.organization.id, "vendor")
        return {
            "vendors": [(slug, self.catalog.name_of(slug)) for slug in logged],
            # An address may name a vendor that has no row yet.
            "is_other_vendor": self.request.GET.get("vendor", "").strip() not in ("", *logged),
            "sources": list(CallSource),
            "statuses": list(CallStatus),
        }


class PersonActivityPage(RequestLogPage):
    """GET /orgs/:orgId/people/:userId/activity: the request log of one member."""

    title = gettext_lazy("Person")
    nav_route = "orgs:members"
    tabs = PERSON_TABS
    tab_route = "audit_pages:person-activity"
    filters = {name: label for name, label in RequestLogPage.filters.items() if name != "user_id"}

    def frame(self) -> dict[str, Any]:
        target = member(self.organization, str(self.kwargs["user_id"]))
        return {**super().frame(), "page_title": target.user.name, "person": target.user}

    def fixed(self) -> dict[str, str]:
        return {"user_id": str(self.kwargs["user_id"])}


class TeamActivityPage(RequestLogPage):
    """GET /orgs/:orgId/teams/:teamId/activity: the request log of a team's members."""

    title = gettext_lazy("Team")
    nav_route = "orgs:teams"
    tabs = TEAM_TABS
    tab_route = "audit_pages:team-activity"

    @cached_property
    def team(self) -> Any:
        return team(self.organization, str(self.kwargs["team_id"]))

    def frame(self) -> dict[str, Any]:
        return {**super().frame(), "page_title": self.team.name, "team": self.team}

    def fixed(self) -> dict[str, str]:
        return {"team_id": str(self.team.id)}

    def callers(self) -> Sequence[str]:
        return team_subjects(self.team)


class ServiceClientActivityPage(RequestLogPage):
    """GET /orgs/:orgId/agents/:clientId/activity: the request log of one service client."""

    title = gettext_lazy("Agent")
    nav_route = "oauth_pages:service-clients"
    tabs = AGENT_TABS
    tab_route = "audit_pages:service-client-activity"
    filters = {name: label for name, label in RequestLogPage.filters.items() if name != "user_id"}

    @cached_property
    def client(self) -> Any:
        return service_client(self.organization, self.kwargs["client_id"])

    def frame(self) -> dict[str, Any]:
        return {**super().frame(), "page_title": self.client.name, "agent": self.client}

    def fixed(self) -> dict[str, str]:
        return {"user_id": self.client.subject}


class VendorActivityPage(RequestLogPage):
    """GET /orgs/:orgId/vendors/:vendor/activity: the request log of one vendor."""

    title = gettext_lazy("Vendor")
    nav_route = "proxy_pages:vendors"
    tabs = VENDOR_TABS
    tab_route = "audit_pages:vendor-activity"
    filters = {name: label for name, label in RequestLogPage.filters.items() if name != "vendor"}

    def frame(self) -> dict[str, Any]:
        vendor = registry.known_vendor(self.kwargs["vendor"])
        return {**super().frame(), "page_title": vendor.name, "vendor": vendor}

    def fixed(self) -> dict[str, str]:
        return {"vendor": self.kwargs["vendor"]}

    def choices(self) -> dict[str, Any]:
        return {**super().choices(), "times": response_times(self.organization.id, self.kwargs["vendor"])}
