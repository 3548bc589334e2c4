"""Usage of one organization in a period, exact to the last committed call. Spec: §4.11 · D88, D89, D150

Each function runs one statement over the period, without the days that are ready: see `audit.usage.parts` and
`audit.usage.ready_days`.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from django.conf import settings

from audit.call_status import CallSource
from audit.usage import ready_days
from audit.usage.branches import DAY_BRANCH, OF_DAYS, OF_SAVINGS, OF_USAGE, OF_VENDORS
from audit.usage.day_figures import BY_DAY, BY_VENDOR
from audit.usage.durations import percentile
from audit.usage.figures import Figures, VendorSums
from audit.usage.parts import CALLERS, DAYS, PEOPLE, TOOLS, Group, Level, groups
from audit.usage.period import Parts, Period
from audit.usage_keys import COUNTED, TIMED, Outcome
from gateway.catalog import registry
from gateway.catalog.catalog import Catalog
from gateway.lib.rows import grouped

TOP_TOOLS = 5


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls, and beside them what is not counted as a call. Milliseconds are 0 without a timed call."""

    calls: int
    errors: int
    denied: int
    rate_limited: int
    average_ms: int


@dataclass(frozen=True, slots=True)
class Percentiles:
    p50_ms: int
    p95_ms: int


@dataclass(frozen=True, slots=True)
class DayUsage:
    day: date
    total: Calls
    mcp: int
    cli: int


@dataclass(frozen=True, slots=True)
class UserCalls:
    user_id: str
    user_label: str
    calls: int


@dataclass(frozen=True, slots=True)
class DailyUsage:
    """`user_count`: callers with a call. Days without any row are left out."""

    start: datetime
    end: datetime
    total: Calls
    user_count: int
    days: list[DayUsage]


class VendorCalls(NamedTuple):
    vendor: str
    calls: int


class ToolCalls(NamedTuple):
    tool: str
    calls: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Lists begin with the most calls. Days without any row are left out, and calls without a vendor of `vendors`."""

    start: datetime
    end: datetime
    total: Calls
    percentiles: Percentiles
    mcp: int
    cli: int
    vendors: list[VendorCalls]
    users: list[UserCalls]
    days: list[DayUsage]

    @property
    def user_count(self) -> int:
        return len(self.users)


@dataclass(frozen=True, slots=True)
class VendorUsage:
    vendor: str
    display_name: str
    total: Calls
    percentiles: Percentiles
    user_count: int
    # The most called first.
    tools: list[ToolCalls]


@dataclass(frozen=True, slots=True)
class Savings:
    """`tool_list_bytes`: of the lists that command-line callers did not load. `saved_share`: of all that they would
    have read with them, 0 to 1. Spec: D138
    """

    mcp_calls: int
    cli_calls: int
    tool_list_bytes: int
    tokens: int
    usd: float
    mcp_response_bytes: int
    cli_response_bytes: int
    saved_share: float


@dataclass(frozen=True, slots=True)
class Dashboard:
    usage: Usage
    vendors: list[VendorUsage]
    savings: Savings


def dashboard(
    org_id: uuid.UUID, period: Period, tool_list_bytes: Mapping[str, float], catalog: Catalog | None = None
) -> Dashboard:
    """All three in one statement. The parameters are those of the functions below."""
    found = _read(org_id, period, (DAYS, TOOLS, CALLERS), OF_USAGE | OF_VENDORS | OF_SAVINGS, (BY_DAY, BY_VENDOR))
    return Dashboard(_usage(found, period), _vendors(found, catalog), _savings(found, tool_list_bytes))


def usage(org_id: uuid.UUID, period: Period) -> Usage:
    return _usage(_read(org_id, period, (DAYS, CALLERS), OF_USAGE, (BY_DAY, BY_VENDOR)), period)


def daily_usage(org_id: uuid.UUID, period: Period) -> DailyUsage:
    """The same figures as `usage`, without those of single vendors and callers."""
    found = _read(org_id, period, (DAYS, PEOPLE), OF_DAYS, (BY_DAY,))
    days = _days(found)
    return DailyUsage(
        start=_first(period, days),
        end=period.end,
        total=_total(found),
        user_count=len(found.users),
        days=days,
    )


def days_of_caller(org_id: uuid.UUID, user_id: str, period: Period) -> list[DayUsage]:
    """The days on which one person or service client had a row, oldest first."""
    return _days(_read(org_id, period, (DAYS,), {"day": DAY_BRANCH}, only={"user_id": user_id}))


def vendors(org_id: uuid.UUID, period: Period, catalog: Catalog | None = None, *, slug: str = "") -> list[VendorUsage]:
    """Vendors with a call, the most called first. `catalog`: if it is loaded already; `slug`: of one only. Spec: D89"""
    # One vendor's rows are few: reading them is cheaper than the ready days of all vendors.
    only, columns = ({"vendor": slug}, ()) if slug else ({}, (BY_VENDOR,))
    return _vendors(_read(org_id, period, (TOOLS, CALLERS), OF_VENDORS, columns, only=only), catalog)


def savings(org_id: uuid.UUID, period: Period, tool_list_bytes: Mapping[str, float]) -> Savings:
    """`tool_list_bytes`: the mean size of each vendor's tool lists; a vendor without one saves nothing. Spec: D138"""
    return _savings(_read(org_id, period, (DAYS, CALLERS), OF_SAVINGS, (BY_DAY,)), tool_list_bytes)


def _read(
    org_id: uuid.UUID,
    period: Period,
    levels: Sequence[Level],
    branches: Mapping[str, str],
    columns: Sequence[str] = (),
    *,
    only: Mapping[str, str] | None = None,
) -> Figures:
    """`columns`: of the ready days that have the figures of `branches`."""
    parts = Parts.of(period)
    days = ready_days.find(org_id, parts, columns) if columns else []
    if days:
        rest = parts.without(each.day for each in days)
        rows = groups(org_id, rest, levels, branches.values(), only=only, ready=ready_days.ids_of(org_id, days))
        # A day that changed between the two statements is read with all others, in one.
        if {each.version for each in days} <= {uuid.UUID(row.first) for row in rows if row.kind == "ready"}:
            return Figures(rows, days)
    return Figures(groups(org_id, parts, levels, branches.values(), only=only), [])


def _usage(found: Figures, period: Period) -> Usage:
    days, called = _days(found), found.called
    labels = {row.first: row.second for row in sorted(found.rows["label"], key=lambda row: row.third)}
    by_source = _sources(found.rows["day"])
    return Usage(
        start=_first(period, days),
        end=period.end,
        total=_total(found),
        percentiles=_percentiles(found.buckets),
        mcp=by_source[CallSource.MCP],
        cli=by_source[CallSource.CLI],
        vendors=[VendorCalls(vendor, sums.called) for vendor, sums in called],
        users=[UserCalls(user_id, labels[user_id], calls) for user_id, calls in _most_called(found.users)],
        days=days,
    )


def _vendors(found: Figures, catalog: Catalog | None) -> list[VendorUsage]:
    catalog = registry.load() if catalog is None else catalog
    return [
        VendorUsage(
            vendor=vendor,
            display_name=catalog.name_of(vendor),
            total=_calls(sums.calls, sums.duration_ms),
            percentiles=_percentiles(sums.buckets),
            user_count=len(sums.callers),
            tools=_top_tools(sums),
        )
        for vendor, sums in found.called
    ]


def _top_tools(sums: VendorSums) -> list[ToolCalls]:
    named = {tool: calls for tool, calls in sums.tools.items() if tool}
    return [ToolCalls(tool, calls) for tool, calls in _most_called(named)[:TOP_TOOLS]]


def _savings(found: Figures, tool_list_bytes: Mapping[str, float]) -> Savings:
    calls, response_bytes = Counter[str](), Counter[str]()
    for row in found.rows["source"]:
        calls[row.first] += row.calls
        response_bytes[row.first] += row.amount
    size = round(sum(row.calls * tool_list_bytes.get(row.first, 0) for row in found.rows["list"]))
    tokens = size // settings.SAVINGS_BYTES_PER_TOKEN
    return Savings(
        mcp_calls=calls[CallSource.MCP],
        cli_calls=calls[CallSource.CLI],
        tool_list_bytes=size,
        tokens=tokens,
        usd=round(tokens * settings.SAVINGS_USD_PER_MTOK / 1_000_000, 6),
        mcp_response_bytes=response_bytes[CallSource.MCP],
        cli_response_bytes=response_bytes[CallSource.CLI],
        saved_share=round(size / (size + response_bytes[CallSource.CLI]), 4) if size else 0.0,
    )


def _first(period: Period, days: Sequence[DayUsage]) -> datetime:
    return period.shown_start(days[0].day if days else None)


def _days(found: Figures) -> list[DayUsage]:
    return [_day(name, rows) for name, rows in sorted(grouped((row.first, row) for row in found.rows["day"]).items())]


def _day(name: str, rows: list[Group]) -> DayUsage:
    """`rows`: of the branch `day`."""
    by_source = _sources(rows)
    return DayUsage(date.fromisoformat(name), _calls_of(rows), by_source[CallSource.MCP], by_source[CallSource.CLI])


def _total(found: Figures) -> Calls:
    return _calls_of(found.rows["day"])


def _sources(rows: Iterable[Group]) -> Counter[str]:
    """`rows`: of the branch `day`."""
    found: Counter[str] = Counter()
    for row in rows:
        if row.second in COUNTED:
            found[row.third] += row.calls
    return found


def _calls_of(rows: Iterable[Group]) -> Calls:
    """`rows`: of the branch `day`."""
    calls, duration_ms = Counter[str](), Counter[str]()
    for row in rows:
        calls[row.second] += row.calls
        duration_ms[row.second] += row.amount
    return _calls(calls, duration_ms)


def _calls(calls: Mapping[str, int], duration_ms: Mapping[str, int]) -> Calls:
    """Both by outcome."""
    timed = sum(calls.get(outcome, 0) for outcome in TIMED)
    return Calls(
        calls=sum(calls.get(outcome, 0) for outcome in COUNTED),
        errors=calls.get(Outcome.ERROR, 0),
        denied=calls.get(Outcome.DENIED, 0),
        rate_limited=calls.get(Outcome.RATE_LIMITED, 0),
        average_ms=round(sum(duration_ms.get(outcome, 0) for outcome in TIMED) / timed) if timed else 0,
    )


def _percentiles(buckets: Mapping[int, int]) -> Percentiles:
    return Percentiles(percentile(buckets, 0.5), percentile(buckets, 0.95))


def _most_called(calls: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(calls.items(), key=lambda each: (-each[1], each[0]))
