"""Pure: the request log's filters and cursor, parsed from a query string. Spec: §4.10 · D83"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from audit.call_record import SOURCES, STATUSES
from audit.query_values import all_faults, choice, place, read, read_period, text

_TEXTS = ("user_id", "vendor", "tool", "request_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFilters:
    """Every set filter must match. `start_at` is inclusive, `end_before` exclusive; both are in UTC."""

    user_id: str = ""
    vendor: str = ""
    tool: str = ""
    source: str = ""
    status: str = ""
    request_id: str = ""
    start_at: datetime | None = None
    end_before: datetime | None = None

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> RequestFilters:
        """Ignores empty and unknown names. Raises: Invalid with every wrong field. Spec: D3, D83"""
        with all_faults() as faults:
            texts = {name: read(faults, query, name, text) or "" for name in _TEXTS}
            source = read(faults, query, "source", choice(SOURCES)) or ""
            status = read(faults, query, "status", choice(STATUSES)) or ""
            start_at, end_before = read_period(faults, query)
        return cls(**texts, source=source, status=status, start_at=start_at, end_before=end_before)


def parse_before(query: Mapping[str, str]) -> uuid.UUID | None:
    """The last entry of a page, below which the next one begins. Raises: Invalid."""
    with all_faults() as faults:
        return read(faults, query, "before", place)
