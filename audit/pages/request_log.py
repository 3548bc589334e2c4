"""The request log page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from audit.call_status import CallSource, CallStatus
from audit.csv_columns import REQUEST_CSV
from audit.distinct_values import distinct_values
from audit.filters import REQUEST_FILTERS
from audit.models import RequestAuditEntry
from audit.pages.log_page import LogPage
from audit.pages.remedies import Remedy, remedy_of
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
    log, parsers, columns = RequestAuditEntry, REQUEST_FILTERS, REQUEST_CSV

    def row(self, entry: RequestAuditEntry) -> dict[str, Any]:
        return {
            "same": self.url_with(request_id=entry.request_id),
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
            "vendors": distinct_values(self.log, self.organization.id, "vendor"),
            "sources": list(CallSource),
            "statuses": list(CallStatus),
        }
