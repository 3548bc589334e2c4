"""Both audit logs over the API, as JSON pages and as CSV exports. Spec: §4.10"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from audit import log_query
from audit.admin_filters import AdminFilters
from audit.admin_selectors import matching_admin_entries
from audit.api.entries import ADMIN_CSV, REQUEST_CSV, AdminLogOut, CsvColumns, RequestLogOut, csv_row
from audit.call_status import CallSource, CallStatus
from audit.filters import RequestFilters
from audit.log_pages import export_of, page_of, total_of
from audit.log_query import LogQuery
from audit.selectors import matching_entries
from gateway.web.chosen_org import ChosenOrgView
from gateway.web.csv_export import CsvTable, csv_export
from gateway.web.gate import Gate, PlanFunction
from gateway.web.log_reads import log_read
from gateway.web.operation import Operation, QueryParameter
from orgs.roles import Role

_PERIOD = (
    QueryParameter("start", "A date, or an RFC 3339 time; a time without a zone is UTC. Inclusive."),
    QueryParameter("end", "As `start`, and inclusive: a date means its whole day in UTC."),
)
_PART = (
    QueryParameter(
        "limit",
        f"More than {log_query.MAX_LIMIT} means {log_query.MAX_LIMIT}. A CSV export has all entries unless it is"
        f" given, and at most {log_query.MAX_EXPORTED}.",
        {"type": "integer", "minimum": 1, "default": log_query.DEFAULT_LIMIT},
    ),
    QueryParameter(
        "offset",
        "So many of the newest entries are left out.",
        {"type": "integer", "minimum": 0, "maximum": log_query.MAX_OFFSET, "default": 0},
    ),
    QueryParameter("cursor", "Only older entries, as the `nextCursor` of an answer names them."),
    QueryParameter("format", "`json`, or `csv` for a download.", {"type": "string", "enum": list(log_query.FORMATS)}),
)


class LogView(ChosenOrgView):
    gates = {"GET": Gate(Role.ADMIN, plan=PlanFunction.LOGS)}

    def answer_log(self, find: Callable[[], QuerySet[Any]], csv: CsvColumns) -> HttpResponseBase:
        """`find` returns the matching rows. Raises: Invalid; ShareTaken, SlotsTaken."""
        query = LogQuery.parse(self.request.query_params)
        if query.is_csv:
            http = self.request._request
            return csv_export(http, self.organization.id, lambda: _table(find(), query, csv))
        with log_read(self.organization.id):
            rows = find()
            page, total = page_of(rows, query), total_of(rows)
        shown: dict[str, Any] = {"entries": page.entries, "total": total.rows}
        shown |= {"limit": query.page_limit, "offset": query.offset}
        if total.is_estimate:
            shown["totalIsEstimate"] = True
        if page.next_cursor is not None:
            shown["nextCursor"] = page.next_cursor
        return self.answer(shown)


class RequestLog(LogView):
    """GET /api/audit. Spec: §4.10 · D79, D80, D83-D85, D149"""

    operations = {
        "GET": Operation(
            "The request log, newest first",
            answer=RequestLogOut,
            download="text/csv",
            query=(
                QueryParameter("user_id", "The id of a person or service account, as `userId` has it."),
                QueryParameter("vendor", "The slug of a vendor."),
                QueryParameter("tool", "A tool's name."),
                QueryParameter("source", "The route.", {"type": "string", "enum": list(CallSource)}),
                QueryParameter("status", "The outcome.", {"type": "string", "enum": list(CallStatus)}),
                QueryParameter("request_id", "The `X-Request-Id` of an answer."),
                *_PERIOD,
                *_PART,
            ),
        )
    }

    def get(self, request: Request) -> HttpResponseBase:
        filters = RequestFilters.parse(request.query_params)
        return self.answer_log(lambda: matching_entries(self.organization.id, filters=filters), REQUEST_CSV)


class AdminLog(LogView):
    """GET /api/audit/admin. Spec: §4.10 · D79, D81-D85, D149"""

    operations = {
        "GET": Operation(
            "The admin log, newest first",
            answer=AdminLogOut,
            download="text/csv",
            query=(
                QueryParameter("event_type", "Such as `member.removed`. An unknown one matches nothing."),
                QueryParameter("actor_id", "The id of a person or service account; `system` for background jobs."),
                QueryParameter("target_id", "The id of the row that was changed."),
                *_PERIOD,
                *_PART,
            ),
        )
    }

    def get(self, request: Request) -> HttpResponseBase:
        filters = AdminFilters.parse(request.query_params)
        return self.answer_log(lambda: matching_admin_entries(self.organization.id, filters=filters), ADMIN_CSV)


def _table(rows: QuerySet[Any], query: LogQuery, csv: CsvColumns) -> CsvTable:
    found = export_of(rows, query, csv.columns)
    pages = ([csv_row(row) for row in page] for page in found.pages)
    return CsvTable("audit", csv.headings, found.total, pages)
