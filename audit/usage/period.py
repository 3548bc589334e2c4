"""Pure: the period that a dashboard shows, from a query string, and the stores that its parts are read from.

Spec: §4.11 · D83, D88, D151
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from audit.filters import Filters
from gateway.lib.clock import EPOCH, MILLISECOND, midnight
from gateway.lib.errors import Invalid
from gateway.lib.sentences import sentence

ALL = "all"
# Days, the last of which is today.
RANGES = {"7d": 7, "30d": 30, "1y": 365}
DEFAULT_RANGE = "30d"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# No call is outside.
_FIRST, _LAST = EPOCH, datetime(9000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Period:
    """`start` inclusive, None for the first call; `end_before` exclusive; `end` as it is shown."""

    start: datetime | None
    end_before: datetime
    end: datetime

    @classmethod
    def parse(cls, query: Mapping[str, str], now: datetime) -> Period:
        """`range` is checked also where a bound overrides it. Raises: Invalid."""
        name = query.get("range", "").strip() or DEFAULT_RANGE
        if name not in RANGES and name != ALL:
            raise Invalid(fields={"range": [sentence("Use one of: %(value)s.", value=", ".join([*RANGES, ALL]))]})
        bounds = Filters.parse({}, query)
        # The whole day: the clock of another host may be ahead of this one.
        tomorrow = midnight(now.date()) + DAY
        if bounds.start_at is None and bounds.end_before is None:
            start = None if name == ALL else tomorrow - RANGES[name] * DAY
            return cls(start, tomorrow, now)
        if bounds.end_before is not None:
            return cls(bounds.start_at, bounds.end_before, bounds.end_before - MILLISECOND)
        if bounds.start_at is not None and bounds.start_at > now:
            raise Invalid(fields={"start": [sentence("The start must not be after the end.")]})
        return cls(bounds.start_at, tomorrow, now)

    def shown_start(self, first_day: date | None) -> datetime:
        """`first_day`: of the calls that were found, which is the start of a period that names none."""
        return self.start or min(midnight(first_day or self.end.date()), self.end)


@dataclass(frozen=True, slots=True)
class HoursOfDay:
    """Whole hours of one day: `first` inclusive, `last` exclusive."""

    day: date
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Parts:
    """A period in parts that do not overlap. Bounds are half-open.

    `days` and `hours` are in the roll-ups, except for their newest rows. `edges` are parts of hours, in the log alone.
    """

    days: tuple[tuple[date, date], ...]
    hours: tuple[HoursOfDay, ...]
    edges: tuple[tuple[datetime, datetime], ...]
    # All days and hours together.
    rolled: tuple[datetime, datetime] | None

    @classmethod
    def of(cls, period: Period) -> Parts:
        start, end = max(period.start or _FIRST, _FIRST), min(period.end_before, _LAST)
        if start >= end:
            return cls((), (), (), None)
        first, last = -(-(start - _FIRST) // HOUR), (end - _FIRST) // HOUR
        if first > last:  # both ends are in one hour
            return cls((), (), ((start, end),), None)
        begin, finish = _FIRST + first * HOUR, _FIRST + last * HOUR
        edges = tuple((low, high) for low, high in ((start, begin), (finish, end)) if low < high)
        days, hours = _days_and_hours(begin, finish)
        return cls(days, hours, edges, (begin, finish) if begin < finish else None)

    def without(self, days: Iterable[date]) -> Parts:
        """The days that are left when `days`, each of which is in a range of days, are known otherwise."""
        ranges = list(self.days)
        for day in sorted(days):
            first, last = ranges.pop()
            ranges += [each for each in ((first, day), (day + DAY, last)) if each[0] < each[1]]
        return replace(self, days=tuple(ranges))


def _days_and_hours(begin: datetime, finish: datetime) -> tuple[tuple[tuple[date, date], ...], tuple[HoursOfDay, ...]]:
    """Of whole hours."""
    first_day = begin.date() if begin.hour == 0 else begin.date() + DAY
    if first_day > finish.date():  # a part of one day
        found = [HoursOfDay(begin.date(), begin.hour, finish.hour or 24)]
        return (), tuple(each for each in found if each.first < each.last and begin < finish)
    hours = [HoursOfDay(begin.date(), begin.hour, 24)] if begin.hour else []
    if finish.hour:
        hours.append(HoursOfDay(finish.date(), 0, finish.hour))
    return ((first_day, finish.date()),) if first_day < finish.date() else (), tuple(hours)
