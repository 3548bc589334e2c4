"""The state of each part now and on each of the last days, as pages and the JSON document show them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from gateway.status.models import PartDay, PartStatus
from gateway.status.parts import Status
from gateway.status.samples import HOLDS, KEPT_DAYS, status_at


@dataclass(frozen=True, slots=True)
class Run:
    """Days in a row that were alike. A day with trouble is a run of its own."""

    first: date
    last: date
    status: Status
    degraded_s: int = 0
    down_s: int = 0

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def degraded_minutes(self) -> int:
        return -(-self.degraded_s // 60)

    @property
    def down_minutes(self) -> int:
        return -(-self.down_s // 60)


@dataclass(frozen=True, slots=True)
class PartHistory:
    """`since`: of the status; None while nothing is known. `uptime`: percent, None without a sample."""

    part: str
    status: Status
    since: datetime | None
    checked_at: datetime | None
    uptime: float | None
    runs: Sequence[Run]


def histories(parts: Collection[str], *, now: datetime) -> list[PartHistory]:
    """In the order of `parts`, over KEPT_DAYS days with today as the last; two statements."""
    states = {row.part: row for row in PartStatus.objects.filter(part__in=parts)}
    days: dict[str, dict[date, PartDay]] = {part: {} for part in parts}
    first = now.date() - timedelta(days=KEPT_DAYS - 1)
    for row in PartDay.objects.filter(part__in=parts, day__gte=first).order_by("part", "day"):
        days[row.part][row.day] = row
    return [_history(part, states.get(part), days[part], now) for part in parts]


def _history(part: str, state: PartStatus | None, days: Mapping[date, PartDay], now: datetime) -> PartHistory:
    status, since, checked_at = Status.UNKNOWN, None, None
    if state is not None:
        status, checked_at = status_at(state, now), state.checked_at
        since = state.since if now - checked_at <= HOLDS else checked_at
    return PartHistory(part, status, since, checked_at, _uptime(days.values()), tuple(_runs(days, now.date())))


def _uptime(days: Collection[PartDay]) -> float | None:
    """The share of the known time in which the part was not down, rounded down: 100 means never down."""
    down = sum(day.down_s for day in days)
    known = down + sum(day.operational_s + day.degraded_s for day in days)
    return (known - down) * 10_000 // known / 100 if known else None


def _runs(days: Mapping[date, PartDay], today: date) -> Iterator[Run]:
    run: Run | None = None
    for back in range(KEPT_DAYS - 1, -1, -1):
        day = today - timedelta(days=back)
        next_run = _run_of(day, days.get(day))
        is_alike = run is not None and run.status == next_run.status
        if run is not None and is_alike and not next_run.degraded_s and not next_run.down_s:
            run = Run(run.first, day, run.status)
            continue
        if run is not None:
            yield run
        run = next_run
    if run is not None:
        yield run


def _run_of(day: date, row: PartDay | None) -> Run:
    if row is None or not (row.operational_s or row.degraded_s or row.down_s):
        return Run(day, day, Status.UNKNOWN)
    status = Status.DOWN if row.down_s else Status.DEGRADED if row.degraded_s else Status.OPERATIONAL
    return Run(day, day, status, row.degraded_s, row.down_s)
