"""How long one vendor took for its newest calls: for which tools, for whom, and since when."""

from __future__ import annotations

import math
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from audit.models import RequestAuditEntry
from audit.newest_first import NewestFirst
from audit.usage_keys import TIMED
from gateway.lib import clock
from gateway.lib.ids import first_log_id_at

# Bounds the query and the work of the page.
MAX_CALLS = 1_000
NO_OLDER_THAN = timedelta(days=30)
# Calls within this time are shown by hour, others by day.
BY_HOUR_WITHIN = timedelta(days=1)
SHOWN = 10


@dataclass(frozen=True, slots=True)
class Times:
    """`key`: a tool or a subject; `label`: its name."""

    key: str
    label: str
    calls: int
    p50_ms: int
    p95_ms: int


@dataclass(frozen=True, slots=True)
class PeriodTimes:
    """The calls of one hour or day, from `start` on."""

    start: datetime
    times: Times


@dataclass(frozen=True, slots=True)
class ResponseTimes:
    """The vendor's own time in its newest calls, without cached answers. Tools and callers: the slowest first."""

    total: Times
    since: datetime
    is_by_hour: bool
    # Newest first.
    periods: list[PeriodTimes]
    tools: list[Times]
    callers: list[Times]


@dataclass(frozen=True, slots=True)
class _Call:
    tool: str
    user_id: str
    user_label: str
    timestamp: datetime
    vendor_ms: int


def response_times(org_id: uuid.UUID, vendor: str) -> ResponseTimes | None:
    """None without a call that the vendor answered or failed to answer."""
    rows = RequestAuditEntry.objects.filter(
        org_id=org_id, vendor=vendor, id__gte=first_log_id_at(clock.now() - NO_OLDER_THAN)
    )
    columns = ("tool", "user_id", "user_label", "timestamp", "vendor_ms", "status", "cached")
    newest = rows.order_by(NewestFirst()).values_list(*columns)[:MAX_CALLS]
    calls = [_Call(*facts) for *facts, status, cached in newest if status in TIMED and not cached]
    return _summed(calls) if calls else None


def _summed(calls: Sequence[_Call]) -> ResponseTimes:
    """`calls`: newest first."""
    is_by_hour = calls[0].timestamp - calls[-1].timestamp <= BY_HOUR_WITHIN
    tools, callers = defaultdict(list), defaultdict(list)
    periods = defaultdict(list)
    labels: dict[str, str] = {}
    for call in calls:
        if call.tool:  # else it was no call of a tool
            tools[call.tool].append(call.vendor_ms)
        callers[call.user_id].append(call.vendor_ms)
        # The newest label.
        labels.setdefault(call.user_id, call.user_label)
        start = call.timestamp.replace(minute=0, second=0, microsecond=0)
        periods[start if is_by_hour else start.replace(hour=0)].append(call.vendor_ms)
    return ResponseTimes(
        total=_times("", "", [call.vendor_ms for call in calls]),
        since=calls[-1].timestamp,
        is_by_hour=is_by_hour,
        periods=[PeriodTimes(start, _times("", "", took)) for start, took in list(periods.items())[:SHOWN]],
        tools=_slowest(_times(tool, tool, took) for tool, took in tools.items()),
        callers=_slowest(_times(user_id, labels[user_id], took) for user_id, took in callers.items()),
    )


def _slowest(times: Iterable[Times]) -> list[Times]:
    return sorted(times, key=lambda each: (-each.p95_ms, -each.calls, each.key))[:SHOWN]


def _times(key: str, label: str, took_ms: Sequence[int]) -> Times:
    ordered = sorted(took_ms)
    return Times(key, label, len(ordered), _ranked(ordered, 0.5), _ranked(ordered, 0.95))


def _ranked(ordered: Sequence[int], share: float) -> int:
    return ordered[math.ceil(share * len(ordered)) - 1]
