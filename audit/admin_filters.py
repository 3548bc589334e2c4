"""Pure: the admin log's filters, parsed from a query string. Spec: §4.10 · D82, D83"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from audit.query_values import all_faults, read, read_period, text

TEXTS = ("event_type", "actor_id", "target_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminFilters:
    """Every set filter must match. `start_at` is inclusive, `end_before` exclusive; both are in UTC."""

    # No choice: an unknown event type matches nothing.
    event_type: str = ""
    actor_id: str = ""
    target_id: str = ""
    start_at: datetime | None = None
    end_before: datetime | None = None

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> AdminFilters:
        """Ignores empty and unknown names. Raises: Invalid with every wrong field. Spec: D3, D83"""
        with all_faults() as faults:
            texts = {name: read(faults, query, name, text) or "" for name in TEXTS}
            start_at, end_before = read_period(faults, query)
        return cls(**texts, start_at=start_at, end_before=end_before)
