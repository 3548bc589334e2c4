"""Both audit logs over the API, as JSON pages and as CSV exports. Spec: §4.10"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer

from audit import log_query
from audit.api.entries import AdminLogOut, OwnCallsOut, RequestLogOut, csv_row
from audit.call_status import CallKind, CallSource, CallStatus
from audit.csv_columns import ADMIN_CSV, REQUEST_CSV, CsvColumns, column_of
from audit.filters import ADMIN_FILTERS, REQUEST_FILTERS, Filters, Parsers
from audit.log_pages import export_of, page_of, total_of
from audit.log_query import LogQuery
from audit.matching import matching_entries
from audit.models import AdminAuditEntry, LogModel, RequestAuditEntry
from gateway.web.chosen_org import ChosenOrgView
from gateway.web.csv_export import CsvTable, csv_export
from gateway.web.gate import Gate, PlanFunction
from gateway.web.log_reads import log_read
from gateway.web.operation import Operation, QueryParameter
from orgs.roles import Role, TokenScope
from orgs.selectors import team, team_subjects

_PERIOD_AND_PART = (
    QueryParameter("start", "A date, or an RFC 3339 time; a time without a zone is UTC. Inclusive."),
    QueryParameter("end", "As `start`, but inclusive: a date covers the whole day in UTC."),
    QueryParameter(
        "limit",
        f"More than {log_query.MAX_LIMIT} means {log_query.MAX_LIMIT}. A CSV export has all entries unless this is"
        f" given, and at most {log_query.MAX_EXPORTED}.",
        {"type": "integer", "minimum": 1, "default": log_query.DEFAULT_LIMIT},
    ),
    QueryParameter(
        "offset",
        "The number of newest entries to skip.",
        {"type": "integer", "minimum": 0, "maximum": log_query.MAX_OFFSET, "default": 0},
    ),
    QueryParameter("cursor", "Only older entries: the `nextCursor` of an earlier response."),
    QueryParameter("format", "`json`, or `csv` for a download.", {"type": "string", "enum": list(log_query.FORMATS)}),
)


def _operations(summary: str, answer: type[BaseSerializer[Any]], *filters: QueryParameter) -> dict[str, Operation]:
    query = (*filters, *_PERIOD_AND_PART)
    return {"GET": Operation(summary, answer=answer, download="text/csv", query=query)}


class LogView(ChosenOrgView):
    gates = {"GET": Gate(Role.ADMIN, plan=PlanFunction.LOGS, token=TokenScope.READ)}
    log: ClassVar[LogModel]
    parsers: ClassVar[Parsers]
    columns: ClassVar[CsvColumns]

    def get(self, request: Request) -> HttpResponseBase:
        """Raises: Invalid; ShareTaken, SlotsTaken."""
        filters, query = self.filters(request.query_params), LogQuery.parse(request.query_params)
        org_id = self.organization.id
        if query.is_csv:
            http = request._request
            return csv_export(http, org_id, lambda: self._table(matching_entries(self.log, org_id, filters), query))
        with log_read(org_id):
            rows = matching_entries(self.log, org_id, filters)
            page, total = page_of(rows, query), total_of(rows)
        shown: dict[str, Any] = {"entries": page.entries, "total": total.rows}
        shown |= {"limit": query.page_limit, "offset": query.offset}
        if total.is_estimate:
            shown["totalIsEstimate"] = True
        if page.next_cursor is not None:
            shown["nextCursor"] = page.next_cursor
        return self.answer(shown)

    def filters(self, query: Mapping[str, str]) -> Filters:
        """Raises: Invalid."""
        return Filters.parse(self.parsers, query)

    def _table(self, rows: QuerySet[Any], query: LogQuery) -> CsvTable:
        found = export_of(rows, query, [column_of(heading) for heading in self.columns])
        return CsvTable("audit", [*self.columns], found.total, ([csv_row(row) for row in page] for page in found.pages))


_OF_A_CALL = (
    QueryParameter("vendor", "The slug of a vendor."),
    QueryParameter("tool", "A tool's name."),
    QueryParameter("kind", "The thing asked for.", {"type": "string", "enum": list(CallKind)}),
    QueryParameter("item", "The address of a resource or the name of a prompt, as in `item`."),
    QueryParameter("source", "The route.", {"type": "string", "enum": list(CallSource)}),
    QueryParameter("status", "The outcome.", {"type": "string", "enum": list(CallStatus)}),
    QueryParameter("request_id", "The `X-Request-Id` of a response."),
)


class RequestLog(LogView):
    """GET /api/audit. Spec: §4.10 · D79, D80, D83-D85, D149"""

    log, parsers, columns = RequestAuditEntry, REQUEST_FILTERS, REQUEST_CSV
    operations = _operations(
        "The request log, newest first",
        RequestLogOut,
        QueryParameter("user_id", "The id of a person or service client, as in `userId`."),
        *_OF_A_CALL,
        QueryParameter("team_id", "Only calls of the current members of this team."),
    )

    def filters(self, query: Mapping[str, str]) -> Filters:
        """Raises: Invalid; NotFound for another organization's team."""
        found = super().filters(query)
        if not query.get("team_id"):
            return found
        return replace(found, callers=team_subjects(team(self.organization, query["team_id"])))


class OwnCalls(LogView):
    """GET /api/audit/mine: the caller's own rows, for every member; another `user_id` is not read. Spec: §4.10"""

    gates = {"GET": Gate(Role.MEMBER, plan=PlanFunction.LOGS, token=TokenScope.READ)}
    log, parsers, columns = RequestAuditEntry, REQUEST_FILTERS, REQUEST_CSV
    operations = _operations("Your own calls, newest first", OwnCallsOut, *_OF_A_CALL)

    def filters(self, query: Mapping[str, str]) -> Filters:
        """Raises: Invalid."""
        # As a plain dict: a QueryDict that is taken apart has lists.
        return super().filters({**dict(query.items()), "user_id": str(self.actor.id)})


class AdminLog(LogView):
    """GET /api/audit/admin. Spec: §4.10 · D79, D81-D85, D149"""

    log, parsers, columns = AdminAuditEntry, ADMIN_FILTERS, ADMIN_CSV
    operations = _operations(
        "The admin log, newest first",
        AdminLogOut,
        QueryParameter("event_type", "Such as `member.removed`. An unknown value matches nothing."),
        QueryParameter("actor_id", "The id of a person or service client; `system` for background jobs."),
        QueryParameter("target_id", "The id of what was changed."),
    )
