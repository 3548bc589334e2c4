"""Pure: the filters of both logs and the place of a page, parsed from a query string. Spec: §4.10 · D82, D83"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from audit.call_record import KINDS, SOURCES, STATUSES
from audit.query_values import all_faults, choice, place, read, read_period, text

Parsers = Mapping[str, Callable[[str], str]]  # by column
REQUEST_FILTERS: Parsers = {
    **dict.fromkeys(("user_id", "vendor", "tool", "item", "request_id"), text),
    "kind": choice(KINDS),
    "source": choice(SOURCES),
    "status": choice(STATUSES),
}
# No choice of event types: an unknown one matches nothing.
ADMIN_FILTERS: Parsers = dict.fromkeys(("event_type", "actor_id", "target_id"), text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Each column has the value of `equal`. `start_at` is inclusive, `end_before` exclusive; both are in UTC.

    `callers`: only rows of these subjects; None for all.
    """

    equal: Mapping[str, str] = field(default_factory=dict)
    start_at: datetime | None = None
    end_before: datetime | None = None
    callers: Sequence[str] | None = None

    @classmethod
    def parse(cls, parsers: Parsers, query: Mapping[str, str]) -> Filters:
        """Ignores empty and unknown names. Raises: Invalid with every wrong field. Spec: D3, D83"""
        with all_faults() as faults:
            values = {name: read(faults, query, name, parse) for name, parse in parsers.items()}
            start_at, end_before = read_period(faults, query)
        equal = {name: value for name, value in values.items() if value}
        return cls(equal=equal, start_at=start_at, end_before=end_before)


def parse_before(query: Mapping[str, str]) -> uuid.UUID | None:
    """The last entry of a page, below which the next one begins. Raises: Invalid."""
    with all_faults() as faults:
        return read(faults, query, "before", place)
