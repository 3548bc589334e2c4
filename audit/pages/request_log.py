"""The request log page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet

from audit.call_status import CallSource, CallStatus
from audit.filters import RequestFilters
from audit.models import RequestAuditEntry
from audit.pages.log_page import LogPage
from audit.pages.remedies import Remedy, remedy_of
from audit.selectors import KnownUser, known_users, known_vendors, matching_entries
from gateway.web.rate import RateLimited

AN_HOUR = timedelta(hours=1)


class RequestLogPage(LogPage):
    """GET /orgs/:orgId/audit. Spec: §4.10 · D147"""

    title = "Request log"
    nav_route = "audit_pages:request-log"
    template = "audit/request_log.html"
    api_route = "audit_api:request-log"
    filters = {
        "user_id": "Who",
        "vendor": "Vendor",
        "tool": "Tool",
        "source": "Source",
        "status": "Result",
        "request_id": "Request ID",
    }
    subject = "user_id"
    nouns = ("call", "calls")
    columns = {
        "user": "the caller's name at the time of the call",
        "user_id": "the caller's id",
        "timestamp": "the time of the call in UTC",
        "vendor": "the vendor's slug",
        "tool": "the tool's name at the vendor",
        "source": "mcp or cli",
        "status": "success, error, denied or unknown",
        "duration_ms": "milliseconds from the request to its answer",
        "client_id": "the app or service account that sent it",
        "request_id": "the X-Request-Id of the answer",
        "count": "calls in this row: more than 1 for rate-limited calls of one minute",
    }

    def known_subjects(self) -> Sequence[KnownUser]:
        return known_users(self.organization.id)

    def matching(self, query: Mapping[str, str]) -> QuerySet[RequestAuditEntry]:
        return matching_entries(self.organization.id, filters=RequestFilters.parse(query))

    def row(self, entry: RequestAuditEntry) -> dict[str, Any]:
        return {
            "same_request": self.url_with(request_id=entry.request_id),
            "around": self.around(entry.user_id, entry.timestamp),
            "remedy": self._used_up(entry) or remedy_of(entry, self.organization.id),
        }

    def _used_up(self, entry: RequestAuditEntry) -> Remedy | None:
        """For a rate-limited row, the calls that used the quota up. Spec: §8 · D146"""
        if entry.error_code != RateLimited.code:
            return None
        text = (
            "The caller was above its limit of calls in an hour. It can call again as its older calls leave the hour."
        )
        url = self.between(entry.user_id, entry.timestamp - AN_HOUR, entry.timestamp)
        return Remedy(text, "Its calls of the hour before", url)

    def choices(self) -> dict[str, Any]:
        return {
            "vendors": known_vendors(self.organization.id),
            "sources": list(CallSource),
            "statuses": list(CallStatus),
        }
