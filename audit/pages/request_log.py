"""The request log page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_lazy, ngettext_lazy

from audit.call_status import CallKind, CallSource, CallStatus
from audit.csv_columns import REQUEST_CSV
from audit.distinct_values import distinct_values
from audit.filters import REQUEST_FILTERS, Filters
from audit.matching import matching_entries
from audit.models import RequestAuditEntry
from audit.newest_first import NewestFirst
from audit.pages.log_page import LogPage
from audit.pages.people import People
from audit.pages.remedies import Remedy, remedy_of
from audit.usage.response_times import response_times
from gateway.catalog import registry
from gateway.catalog.catalog import Catalog
from gateway.lib.sentences import sentence
from gateway.web.gate import Gate, PlanFunction
from gateway.web.navigation import AGENT_TABS, PERSON_TABS, TEAM_TABS, VENDOR_TABS
from gateway.web.rate import RateLimited
from oauth_ext.selectors import service_client
from orgs.roles import Role
from orgs.selectors import member, team, team_subjects

AN_HOUR = timedelta(hours=1)
# The newest rows of a page, whose tools its filter suggests, and the most suggestions.
ROWS_READ, TOOLS_SUGGESTED = 500, 200
# Error codes of rows whose tool was not found.
NO_TOOL = frozenset({"unknown_tool", "unknown_vendor"})
# The words of CallKind and CallStatus, for the catalogs.
KIND_WORDS = (sentence("tool"), sentence("resource"), sentence("prompt"), sentence("completion"))
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
        "kind": gettext_lazy("Kind"),
        "item": gettext_lazy("Resource or prompt"),
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
        vendor = self.catalog.get(entry.vendor)
        return {
            "tool_url": self._tool_url(entry),
            "vendor_url": vendor and reverse("proxy_pages:vendor", args=[self.organization.id, vendor.slug]),
            "vendor_name": self.catalog.name_of(entry.vendor),
        }

    def details(self, entry: RequestAuditEntry) -> dict[str, Any]:
        return {
            "same": self.url_with(request_id=entry.request_id),
            "same_item": self.url_with(item=entry.item),
            "remedy": self._used_up(entry) or remedy_of(entry, self.organization.id, self.catalog),
        }

    def text_of(self, name: str, value: str) -> str:
        return self.catalog.name_of(value) if name == "vendor" else value

    def meant(self, name: str, value: str) -> str:
        vendor = self.catalog.meant(value) if name == "vendor" else None
        return value if vendor is None else vendor.slug

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
        return Remedy(text, gettext("Calls in the hour before"), url, is_for_members=True)

    def choices(self) -> dict[str, Any]:
        asked = self.meant("vendor", self.request.GET.get("vendor", "").strip())
        return {
            "vendor_asked": self.catalog.name_of(asked),
            "sources": list(CallSource),
            "statuses": list(CallStatus),
            "kinds": list(CallKind),
        }

    def suggestions(self, people: People) -> dict[str, list[str]]:
        return {
            **super().suggestions(people),
            "vendors": sorted(map(self.catalog.name_of, self.logged_vendors()), key=str.casefold),
            "tools": sorted({tool for _, tool in self._newest if tool})[:TOOLS_SUGGESTED],
        }

    def logged_vendors(self) -> list[str]:
        """Slugs of the vendors that the filter suggests."""
        return distinct_values(self.log, self.organization.id, "vendor")

    @cached_property
    def _newest(self) -> list[tuple[str, str]]:
        """(vendor, tool) of the newest rows that the page lists without filters."""
        filters = replace(Filters.parse(self.parsers, self.fixed()), callers=self.callers())
        rows = matching_entries(self.log, self.organization.id, filters).order_by(NewestFirst())
        return list(rows.values_list("vendor", "tool")[:ROWS_READ])


class OwnCallsPage(RequestLogPage):
    """GET /orgs/:orgId/activity/mine: the reader's own rows of the request log, for every member."""

    gates = {"GET": Gate(Role.MEMBER, plan=PlanFunction.LOGS)}
    title = gettext_lazy("My calls")
    nav_route = "audit_pages:own-calls"
    api_route = "audit_api:own-calls"
    # A person in the query string is not read.
    filters = {name: label for name, label in RequestLogPage.filters.items() if name != "user_id"}

    def frame(self) -> dict[str, Any]:
        return {**super().frame(), "is_own": True}

    def fixed(self) -> dict[str, str]:
        return {"user_id": str(self.actor.id)}

    def labels(self) -> Mapping[str, str]:
        return {}

    def logged_vendors(self) -> list[str]:
        # Only of the reader's calls: the other vendors of the organization are not theirs to know.
        return list({vendor for vendor, _ in self._newest if vendor})

    def details(self, entry: RequestAuditEntry) -> dict[str, Any]:
        found = {**super().details(entry), "hides_credential": True}
        remedy = found["remedy"]
        # Most pages that change a reason are for admins.
        if remedy is not None and not (remedy.is_for_members or self.membership.has_role(Role.ADMIN)):
            found["remedy"] = replace(remedy, url="")
        return found


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
