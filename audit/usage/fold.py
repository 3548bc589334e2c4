"""Pure: rows of the request log, folded into the counters that usage stores. Spec: §2 Usage aggregates · D150"""

from __future__ import annotations

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from audit.usage.durations import bucket_of
from audit.usage_keys import NOTHING, TIMED, WHOLE_DAY, CountKey, DurationKey, Sums, outcome_of
from gateway.lib import ids


class LoggedCall(Protocol):
    """A final row of the request log."""

    id: uuid.UUID
    org_id: uuid.UUID
    user_id: str
    user_label: str
    vendor: str
    tool: str
    source: str
    status: str
    error_code: str
    duration_ms: int
    vendor_ms: int
    request_bytes: int
    response_bytes: int
    count: int


COLUMNS = tuple(LoggedCall.__annotations__)


@dataclass(slots=True)
class Counters:
    """Sums by key; `labels`: the latest label of a subject in an organization, with the id of its row."""

    counts: dict[CountKey, Sums] = field(default_factory=lambda: defaultdict(lambda: NOTHING))
    durations: dict[DurationKey, int] = field(default_factory=lambda: defaultdict(int))
    labels: dict[tuple[uuid.UUID, str], tuple[uuid.UUID, str]] = field(default_factory=dict)

    def add_days(self, *others: Counters) -> None:
        """Adds the sums of whole days over these hours and those of `others`."""
        for hours in (self, *others):
            for count, sums in list(hours.counts.items()):
                day = count._replace(hour=WHOLE_DAY)
                self.counts[day] = self.counts[day].plus(sums)
            for duration, calls in list(hours.durations.items()):
                self.durations[duration._replace(hour=WHOLE_DAY)] += calls


def fold(rows: Iterable[LoggedCall]) -> Counters:
    """Counts by hour. A row belongs to the hour of its id."""
    counters = Counters()
    for row in rows:
        at, outcome = ids.time_of(row.id), outcome_of(row.status, row.error_code)
        day = at.date()
        key = CountKey(row.org_id, day, at.hour, row.vendor, row.tool, row.user_id, row.source, outcome.value)
        sums = Sums(row.count, row.duration_ms, row.vendor_ms, row.request_bytes, row.response_bytes)
        counters.counts[key] = counters.counts[key].plus(sums)
        if outcome in TIMED:
            bucket = bucket_of(row.duration_ms)
            counters.durations[DurationKey(row.org_id, day, at.hour, row.vendor, bucket)] += row.count
        subject = (row.org_id, row.user_id)
        counters.labels[subject] = max(counters.labels.get(subject, (ids.NO_ID, "")), (row.id, row.user_label))
    return counters


def row_id(key: CountKey | DurationKey) -> uuid.UUID:
    """The id of the key's row. Rows of one day are neighbours in the index of the ids."""
    # A unit separator is in no text of the log: audit.plain_text.
    digest = hashlib.sha256("\x1f".join(map(str, key)).encode()).digest()
    return uuid.UUID(bytes=key.day.toordinal().to_bytes(4, "big") + digest[:12])
