"""The usage page: calls, errors, response times, vendors, people, tools and savings of a period."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from audit.pages.usage_rows import number_cells, person_rows, vendor_rows
from audit.usage import selectors
from audit.usage.period import ALL, DEFAULT_RANGE, RANGES, Period
from audit.usage.selectors import DailyUsage, Dashboard, DayUsage, Usage
from gateway.lib import clock, csv_text
from gateway.lib.errors import Invalid
from gateway.lib.numbers import percents
from gateway.lib.sentences import sentence
from gateway.lib.translated import translated
from gateway.web.gate import Gate, PlanFunction
from gateway.web.log_reads import log_read
from gateway.web.org_page import OrgPage
from orgs.roles import Role
from orgs.selectors import mean_tool_list_bytes

RANGE_NAMES = {"7d": sentence("7 days"), "30d": sentence("30 days"), "1y": sentence("1 year"), ALL: sentence("All")}
SHOWN_ROWS = 50  # of people
MAX_DAYS_DRAWN = 1_100
CSV_HEADINGS = "date calls mcp cli errors denied rate_limited average_ms".split()


@dataclass(frozen=True, slots=True)
class RangeLink:
    label: str
    url: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class ShownDay:
    """`usage` is None for a day without a call. `is_today`: more calls may come."""

    day: date
    usage: DayUsage | None
    is_today: bool

    @property
    def calls(self) -> int:
        return self.usage.total.calls if self.usage else 0

    @property
    def figures(self) -> tuple[int, ...]:
        """Those of CSV_HEADINGS behind the date."""
        if self.usage is None:
            return (0,) * (len(CSV_HEADINGS) - 1)
        total = self.usage.total
        counted = (total.calls, self.usage.mcp, self.usage.cli, total.errors, total.denied, total.rate_limited)
        return (*counted, total.average_ms)

    @property
    def number_cells(self) -> SafeString:
        """Of `figures` without the average."""
        return number_cells(self.figures[:-1])

    @property
    def average_ms(self) -> int:
        return self.figures[-1]


class UsagePage(OrgPage):
    """GET /orgs/:orgId/usage. Spec: §4.11 · D147, D150, D151"""

    gates = {"GET": Gate(Role.ADMIN, plan=PlanFunction.USAGE)}
    title = gettext_lazy("Usage")
    nav_route = "audit_pages:usage"

    def get(self, request: HttpRequest) -> HttpResponse:
        """Raises: ShareTaken, SlotsTaken."""
        with log_read(self.organization.id):
            return self._answer(request)

    def _answer(self, request: HttpRequest) -> HttpResponse:
        now, errors = clock.now(), {}
        try:
            period = Period.parse(request.GET, now)
        except Invalid as refusal:
            period = Period.parse({}, now)
            errors = {name: [translated(text) for text in texts] for name, texts in refusal.fields.items()}
        org_id = self.organization.id
        if request.GET.get("format") == "csv" and not errors:
            return _download(shown_days(selectors.daily_usage(org_id, period), now.date()))
        figures = selectors.dashboard(org_id, period, mean_tool_list_bytes(self.organization))
        days = shown_days(figures.usage, now.date())
        context = _figures(org_id, figures) | {
            "days": days[::-1],
            "chart": _chart(days),
            "ranges": _range_links(request.GET, has_errors=bool(errors)),
            "asked": request.GET,
            "errors": errors,
            "csv_url": f"?{urlencode({**request.GET.dict(), 'format': 'csv'})}",
        }
        return self.page("audit/usage.html", context, status=400 if errors else 200)


def shown_days(usage: Usage | DailyUsage, today: date) -> list[ShownDay]:
    """Returns every day of the period up to today, oldest first, at most MAX_DAYS_DRAWN."""
    by_day = {each.day: each for each in usage.days}
    last = min(usage.end.date(), today)
    earliest = date.fromordinal(max(1, last.toordinal() - MAX_DAYS_DRAWN + 1))
    first = max(usage.start.date(), earliest)
    return [
        ShownDay(day, by_day.get(day), day == today)
        for day in (first + timedelta(days=number) for number in range((last - first).days + 1))
    ]


def _figures(org_id: uuid.UUID, figures: Dashboard) -> dict[str, Any]:
    usage, vendors, savings = figures.usage, figures.vendors, figures.savings
    total = usage.total
    return {
        "usage": usage,
        "error_share": percents(total.calls, decimals=1)(total.errors),
        "cli_share": percents(total.calls)(usage.cli),
        "vendors": vendor_rows(org_id, vendors, total.calls),
        "people": person_rows(org_id, usage.users[:SHOWN_ROWS], total.calls),
        "people_left": max(0, usage.user_count - SHOWN_ROWS),
        "savings": savings,
        "saved_percent": round(100 * savings.saved_share),
        "bytes_per_token": settings.SAVINGS_BYTES_PER_TOKEN,
        "usd_per_mtok": settings.SAVINGS_USD_PER_MTOK,
    }


def _chart(days: Sequence[ShownDay]) -> dict[str, Any]:
    return {"days": [each.day.isoformat() for each in days], "calls": [each.calls for each in days]}


def _range_links(query: Mapping[str, str], *, has_errors: bool) -> list[RangeLink]:
    names_no_range = has_errors or query.get("start") or query.get("end")
    current = "" if names_no_range else query.get("range", "").strip() or DEFAULT_RANGE
    return [RangeLink(translated(RANGE_NAMES[name]), f"?range={name}", name == current) for name in (*RANGES, ALL)]


def _download(days: Sequence[ShownDay]) -> HttpResponse:
    rows = [CSV_HEADINGS, *(_csv_row(each) for each in days)]
    headers = {"Content-Disposition": f'attachment; filename="usage-{days[-1].day if days else "empty"}.csv"'}
    return HttpResponse(csv_text.encode_rows(rows), content_type=csv_text.MEDIA_TYPE, headers=headers)


def _csv_row(each: ShownDay) -> list[str]:
    return [each.day.isoformat(), *map(str, each.figures)]
