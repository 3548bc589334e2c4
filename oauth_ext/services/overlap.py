"""The time in which an agent key or a client secret counts beside its successor. Spec: D171"""

from __future__ import annotations

from datetime import datetime, timedelta

from gateway.lib.errors import Invalid
from gateway.lib.sentences import sentence

OVERLAP_HOURS = (0, 1, 24)


def overlap_end(hours: int, now: datetime) -> datetime | None:
    """None: the old value ends at once. Raises: Invalid."""
    # bool is an int, and True would be one hour.
    if isinstance(hours, bool) or hours not in OVERLAP_HOURS:
        raise Invalid(
            fields={
                "overlap_hours": [
                    sentence(
                        "Must be %(str)s or %(overlap_hours)s.",
                        str=", ".join(map(str, OVERLAP_HOURS[:-1])),
                        overlap_hours=OVERLAP_HOURS[-1],
                    )
                ]
            }
        )
    return now + timedelta(hours=hours) if hours else None
