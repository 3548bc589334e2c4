"""The request log page. Its filters are the query string."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse

from audit.call_status import CallSource, CallStatus
from audit.filters import Cursor, RequestFilters
from audit.selectors import known_users, known_vendors, request_entries
from gateway.lib.errors import Invalid
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from orgs.roles import Role

PAGE_SIZE = 50
FILTERS = ("user_id", "vendor", "tool", "source", "status", "start", "end", "request_id")


class RequestLogPage(OrgPage):
    """GET /orgs/:orgId/audit. Spec: §4.10 · D147"""

    # Like /api/audit, it is withheld without an active plan.
    gates = {"GET": Gate(Role.ADMIN, active_plan=True)}
    title = "Request log"
    nav_route = "audit_pages:request-log"

    def get(self, request: HttpRequest) -> HttpResponse:
        asked = {name: request.GET[name] for name in FILTERS if request.GET.get(name)}
        before, errors = None, {}
        try:
            filters = RequestFilters.parse(asked)
            before = Cursor.parse(request.GET["before"]) if request.GET.get("before") else None
        except Invalid as refusal:
            filters, errors = RequestFilters(), refusal.fields
        org_id = self.organization.id
        found = request_entries(org_id, filters=filters, before=before, limit=PAGE_SIZE)
        context = {
            "entries": found.entries,
            "older_url": f"?{urlencode({**asked, 'before': found.older.encode()})}" if found.older else "",
            "newest_url": f"?{urlencode(asked)}" if request.GET.get("before") else "",
            "asked": asked,
            "pills": [(name, value, _without(asked, name)) for name, value in asked.items()],
            "errors": errors,
            "vendors": known_vendors(org_id),
            "users": known_users(org_id),
            "sources": list(CallSource),
            "statuses": list(CallStatus),
        }
        return self.page("audit/request_log.html", context, status=400 if errors else 200)


def _without(asked: dict[str, str], name: str) -> str:
    return f"?{urlencode({key: value for key, value in asked.items() if key != name})}"
