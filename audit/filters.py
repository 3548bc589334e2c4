"""Pure: the request log's filters and cursor, parsed from a query string. Spec: §4.10 · D83"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from audit.call_record import SOURCES, STATUSES
from audit.plain_text import has_harmful_characters
from gateway.lib.errors import Invalid

MAX_TEXT_CHARACTERS = 255  # longer than any filtered column
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?\Z", re.ASCII)
_TEXTS = ("user_id", "vendor", "tool", "request_id")
_CURSOR = re.compile(r"(\d{1,16})-([0-9a-f]{32})\Z", re.ASCII)  # 16 digits end in the year 2286
_WRONG_TIME = "Use a date such as 2026-01-31, or a time such as 2026-01-31T08:00:00Z."
_WRONG_CURSOR = "This is not a place in the log."
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
T = TypeVar("T")


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
        faults: dict[str, list[str]] = {}
        texts = {name: _read(faults, query, name, _text) or "" for name in _TEXTS}
        source = _read(faults, query, "source", _choice(SOURCES)) or ""
        status = _read(faults, query, "status", _choice(STATUSES)) or ""
        # Dates or RFC 3339 times; a time without a zone is UTC.
        start_at = _read(faults, query, "start", _moment)
        end_before = _read(faults, query, "end", _end_before)
        if start_at and end_before and start_at >= end_before:
            faults["start"] = ["The start must not be after the end."]
        if faults:
            raise Invalid(fields=faults)
        return cls(**texts, source=source, status=status, start_at=start_at, end_before=end_before)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last entry of a page; the next page starts below it."""

    timestamp: datetime
    id: uuid.UUID

    def encode(self) -> str:
        return f"{(self.timestamp - _EPOCH) // timedelta(microseconds=1)}-{self.id.hex}"

    @classmethod
    def parse(cls, word: str) -> Cursor:
        """Raises: Invalid."""
        if not (match := _CURSOR.match(word)):
            raise Invalid(fields={"before": [_WRONG_CURSOR]})
        return cls(_EPOCH + timedelta(microseconds=int(match[1])), uuid.UUID(hex=match[2]))


def _read(faults: dict[str, list[str]], query: Mapping[str, str], name: str, parse: Callable[[str], T]) -> T | None:
    raw = query.get(name, "").strip()
    if not raw:
        return None
    try:
        return parse(raw)
    except ValueError as fault:
        faults[name] = [str(fault)]
        return None


def _text(raw: str) -> str:
    if len(raw) > MAX_TEXT_CHARACTERS or has_harmful_characters(raw):
        raise ValueError(f"Use at most {MAX_TEXT_CHARACTERS} characters, and no control characters.")
    return raw


def _choice(values: Sequence[str]) -> Callable[[str], str]:
    def parse(raw: str) -> str:
        if raw not in values:
            raise ValueError(f"Use one of: {', '.join(values)}.")
        return raw

    return parse


def _end_before(raw: str) -> datetime:
    moment = _moment(raw)
    try:
        # The end is inclusive: a date with its whole day, a time with its millisecond, the shown precision.
        if _DATE.match(raw):
            return moment + timedelta(days=1)
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000) + timedelta(milliseconds=1)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _moment(raw: str) -> datetime:
    if not _DATE.match(raw) and not _MOMENT.match(raw):
        raise ValueError(_WRONG_TIME)
    try:
        moment = datetime.fromisoformat(raw)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as fault:  # 30 February; year 1 in a zone east of us
        raise ValueError(_WRONG_TIME) from fault
