"""Pure: the part of a log that a query string asks for, and in which format. Spec: D79, D84"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from audit.query_values import all_faults, choice, place, read, whole_number
from gateway.lib.errors import Invalid

DEFAULT_LIMIT = 50
MAX_LIMIT = 500
MAX_OFFSET = 100_000
MAX_EXPORTED = 1_000_000
FORMATS = ("json", "csv")


class NarrowTheRange(Invalid):
    """The rows above the offset would all be read for nothing. Spec: D79"""

    code = "narrow_the_range"
    message = f"The offset may be {MAX_OFFSET} at most. Narrow the range by start and end, or follow the cursor."


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """`limit` None: the format's own. The entries begin below `cursor`; `offset` skips entries from there."""

    limit: int | None = None
    offset: int = 0
    cursor: uuid.UUID | None = None
    is_csv: bool = False

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> LogQuery:
        """Ignores empty and unknown names. Raises: Invalid with every wrong field; NarrowTheRange."""
        with all_faults() as faults:
            limit = read(faults, query, "limit", _limit)
            offset = read(faults, query, "offset", whole_number) or 0
            cursor = read(faults, query, "cursor", place)
            asked_format = read(faults, query, "format", choice(FORMATS))
        if offset > MAX_OFFSET:
            raise NarrowTheRange
        return cls(limit=limit, offset=offset, cursor=cursor, is_csv=asked_format == "csv")

    @property
    def page_limit(self) -> int:
        return min(self.limit or DEFAULT_LIMIT, MAX_LIMIT)

    @property
    def export_limit(self) -> int:
        return min(self.limit or MAX_EXPORTED, MAX_EXPORTED)


def _limit(raw: str) -> int:
    limit = whole_number(raw)
    if limit < 1:
        raise ValueError("Use a whole number, 1 or more.")
    return limit
