"""Rows of the request log as usage sees them, in SQL that roll-ups, rebuilds and dashboards share. Spec: D150"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from audit.models import RequestAuditEntry
from audit.sql_values import uuid_value
from audit.stream import Place, Stretch
from audit.usage.durations import LOWEST
from audit.usage_keys import RATE_LIMITED, Outcome

TABLE = RequestAuditEntry._meta.db_table
# A row belongs to the hour of its timestamp, which is the hour of its id.
DAY = {"postgresql": "CAST(timestamp AT TIME ZONE 'UTC' AS date)", "sqlite": "substr(timestamp, 1, 10)"}
HOUR = {
    "postgresql": "CAST(extract(hour FROM timestamp AT TIME ZONE 'UTC') AS smallint)",
    "sqlite": "CAST(substr(timestamp, 12, 2) AS smallint)",
}
# SQLite has no such function: `audit.usage.counters.add_functions` adds it.
BUCKET_FUNCTION = "usage_bucket"
BUCKET = {
    "postgresql": f"CAST(width_bucket(duration_ms, ARRAY[{', '.join(map(str, LOWEST))}]) - 1 AS smallint)",
    "sqlite": f"{BUCKET_FUNCTION}(duration_ms)",
}
OUTCOME = (
    f"CASE WHEN status = '{Outcome.DENIED}' AND error_code = '{RATE_LIMITED}'"
    f" THEN '{Outcome.RATE_LIMITED}' ELSE status END"
)


def is_in(outcomes: Sequence[Outcome]) -> str:
    return f"outcome IN ({', '.join(repr(outcome.value) for outcome in outcomes)})"


@dataclass(frozen=True, slots=True)
class LogRows:
    """Final rows of the log: a condition with its values."""

    condition: str
    values: tuple[Any, ...]

    @classmethod
    def of_stretch(cls, stretch: Stretch) -> LogRows:
        after, through = stretch.after, stretch.through
        # The bounds of the positions alone tell the planner how few rows these are.
        return cls(
            "position >= %s AND position <= %s AND (position, id) > (%s, %s) AND (position, id) <= (%s, %s)",
            (after.position, through.position, *_place(after), *_place(through)),
        )

    @classmethod
    def between_ids(cls, org_id: uuid.UUID, low: uuid.UUID, high: uuid.UUID, through: Place) -> LogRows:
        """Of one organization, `high` exclusive, as far as the stream was read through."""
        return cls(
            "org_id = %s AND id >= %s AND id < %s AND (position, id) <= (%s, %s)",
            (*map(uuid_value, (org_id, low, high)), *_place(through)),
        )


def _place(place: Place) -> tuple[Any, ...]:
    return place.position, uuid_value(place.id)
