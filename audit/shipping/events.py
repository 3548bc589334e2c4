"""Pure: a row of a log as the event that is shipped. Every platform's field names are made from it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

REQUEST, ADMIN = "tool_call", "admin_change"  # types of events


@dataclass(frozen=True, slots=True)
class Event:
    """`fields` are those of the row over /api/audit, without nulls and empty texts; `id` is the row's."""

    id: str
    type: str
    time: datetime
    fields: Mapping[str, Any]

    @property
    def is_tool_call(self) -> bool:
        return self.type == REQUEST


class Row(Protocol):
    """A row of either log."""

    id: uuid.UUID
    timestamp: datetime


def event_of_call(row: Row) -> Event:
    """The outcome of one call; a count above 1 stands for the rate-limited calls of a subject in one minute."""
    return _event(row, REQUEST, _CALL_FIELDS)


def event_of_change(row: Row) -> Event:
    """One administrative change."""
    return _event(row, ADMIN, _CHANGE_FIELDS)


def _event(row: Row, kind: str, columns: Mapping[str, str]) -> Event:
    found = {name: getattr(row, column) for name, column in columns.items()}
    fields = {name: value for name, value in found.items() if value not in (None, "", {})}
    return Event(str(row.id), kind, row.timestamp, {**fields, "orgId": str(found["orgId"])})


def _fields(columns: str) -> dict[str, str]:
    """Columns by the names that they have over /api/audit."""
    return {_camel_case(*column.split("_")): column for column in columns.split()}


def _camel_case(first: str, *rest: str) -> str:
    return first + "".join(map(str.capitalize, rest))


_CALL_FIELDS = _fields(
    "org_id user_id user_label vendor tool source status error_code duration_ms vendor_ms credential_scope"
    " credential_name cached client_id client_name ip_address request_id request_bytes response_bytes count kind item"
)
_CHANGE_FIELDS = _fields("org_id event_type actor_id actor_label target_id target_label metadata ip_address request_id")
