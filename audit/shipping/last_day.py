"""The last 24 hours of destinations, hour by hour."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from audit.models import DeliveryHour, LogDestination
from gateway.lib import clock
from gateway.lib.rows import grouped

HOURS = 24


@dataclass(frozen=True, slots=True)
class Hour:
    """`start` in UTC. `failures` are attempts, the others records."""

    start: datetime
    delivered: int = 0
    refused: int = 0
    skipped: int = 0
    failures: int = 0

    @property
    def has_trouble(self) -> bool:
        return bool(self.refused or self.skipped or self.failures)


def last_day(destinations: Iterable[LogDestination]) -> dict[UUID, list[Hour]]:
    """HOURS hours of each destination by its id, the oldest first; the last one is under way."""
    this_hour = clock.now().replace(minute=0, second=0, microsecond=0)
    starts = [this_hour - timedelta(hours=ago) for ago in reversed(range(HOURS))]
    wanted = [destination.pk for destination in destinations]
    rows = DeliveryHour.objects.filter(destination__in=wanted, hour__gte=starts[0])
    found = grouped((row.destination_id, row) for row in rows)
    return {pk: _filled(starts, found.get(pk, [])) for pk in wanted}


def _filled(starts: list[datetime], rows: list[DeliveryHour]) -> list[Hour]:
    by_start = {row.hour: Hour(row.hour, row.delivered, row.refused, row.skipped, row.failures) for row in rows}
    return [by_start.get(start, Hour(start)) for start in starts]
