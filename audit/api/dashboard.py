"""The usage dashboards over the API. Spec: §4.11"""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from audit.api.dashboard_entries import SavingsOut, UsageOut, VendorsUsageOut
from audit.usage import selectors
from audit.usage.period import ALL, DEFAULT_RANGE, RANGES, Period
from gateway.lib import clock
from gateway.web.chosen_org import ChosenOrgView
from gateway.web.gate import Gate, PlanFunction
from gateway.web.log_reads import log_read
from gateway.web.operation import Operation, QueryParameter
from orgs.roles import Role, TokenScope
from orgs.selectors import mean_tool_list_bytes

_QUERY = (
    QueryParameter(
        "range",
        "A number of days in UTC, ending today; `all` starts with the first call.",
        {"type": "string", "enum": [*RANGES, ALL], "default": DEFAULT_RANGE},
    ),
    QueryParameter(
        "start", "Overrides `range`, as `end` does. A date, or an RFC 3339 time; a time without a zone is UTC."
    ),
    QueryParameter("end", "As `start`, but inclusive: a date covers the whole day in UTC."),
)


class _Dashboard(ChosenOrgView):
    gates = {"GET": Gate(Role.ADMIN, plan=PlanFunction.USAGE, token=TokenScope.READ)}

    def figures(self, period: Period) -> object:
        raise NotImplementedError

    def get(self, request: Request) -> Response:
        """Raises: Invalid; ShareTaken, SlotsTaken."""
        period = Period.parse(request.query_params, clock.now())
        with log_read(self.organization.id):
            return self.answer(self.figures(period))


class UsageDashboard(_Dashboard):
    """GET /api/dashboard/usage. Spec: §4.11 · D88, D149, D150, D151"""

    operations = {"GET": Operation("Get usage by vendor, user, day and source", answer=UsageOut, query=_QUERY)}

    def figures(self, period: Period) -> object:
        return selectors.usage(self.organization.id, period)


class SavingsDashboard(_Dashboard):
    """GET /api/dashboard/savings. Spec: §4.11 · D138, D149, D151"""

    operations = {"GET": Operation("Estimated savings of command-line calls", answer=SavingsOut, query=_QUERY)}

    def figures(self, period: Period) -> object:
        return selectors.savings(self.organization.id, period, mean_tool_list_bytes(self.organization))


class VendorsDashboard(_Dashboard):
    """GET /api/dashboard/vendors. Spec: §4.11 · D89, D149, D151"""

    operations = {"GET": Operation("Get vendors by calls, with their top tools", answer=VendorsUsageOut, query=_QUERY)}

    def figures(self, period: Period) -> object:
        return {"vendors": selectors.vendors(self.organization.id, period)}
