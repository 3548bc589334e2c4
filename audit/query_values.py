"""Pure: values of the logs' query strings. A parser raises ValueError with a sentence for the user. Spec: D83"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from audit.plain_text import has_harmful_characters
from gateway.lib import clock, ids
from gateway.lib.errors import Invalid
from gateway.lib.sentences import sentence

MAX_TEXT_CHARACTERS = 255  # longer than any filtered column
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?\Z", re.ASCII)
_WHOLE_NUMBER = re.compile(r"(\d+)([eE]\d{1,2})?\Z", re.ASCII)
_WRONG_TIME = sentence("Use a date such as 2026-01-31, or a time such as 2026-01-31T08:00:00Z.")
_WRONG_PLACE = sentence("This is not a valid position in the log. Use the nextCursor of a response.")
_DIGITS_READ = 20  # more make no difference: every limit is lower
T = TypeVar("T")
Faults = dict[str, list[str]]


@contextmanager
def all_faults() -> Iterator[Faults]:
    """Raises at its end: Invalid with every fault that was noted."""
    faults: Faults = {}
    yield faults
    if faults:
        raise Invalid(fields=faults)


def read(faults: Faults, query: Mapping[str, str], name: str, parse: Callable[[str], T]) -> T | None:
    """The parsed value; None where the name is missing or empty, and with a fault under its name."""
    raw = query.get(name, "").strip()
    if not raw:
        return None
    try:
        return parse(raw)
    except ValueError as fault:
        faults[name] = [str(fault)]
        return None


def read_period(faults: Faults, query: Mapping[str, str]) -> tuple[datetime | None, datetime | None]:
    """`start`, inclusive, and the first moment after `end`; both in UTC. A time without a zone is UTC."""
    start_at, end_before = read(faults, query, "start", moment_of), read(faults, query, "end", _end_before)
    if start_at and end_before and start_at >= end_before:
        faults["start"] = [sentence("The start must not be after the end.")]
    return start_at, end_before


def text(raw: str) -> str:
    if len(raw) > MAX_TEXT_CHARACTERS or has_harmful_characters(raw):
        raise ValueError(f"Use at most {MAX_TEXT_CHARACTERS} characters, and no control characters.")
    return raw


def choice(values: Sequence[str]) -> Callable[[str], str]:
    def parse(raw: str) -> str:
        if raw not in values:
            raise ValueError(f"Use one of: {', '.join(values)}.")
        return raw

    return parse


def whole_number(raw: str) -> int:
    """0 or more, also written as 1e9."""
    if not (match := _WHOLE_NUMBER.match(raw)):
        raise ValueError("Use a whole number, 0 or more.")
    digits, exponent = match[1].lstrip("0") or "0", (match[2] or "e0")[1:]
    return int(f"{digits[:_DIGITS_READ]}{'0' * int(exponent)}")


def place(raw: str) -> uuid.UUID:
    """The id of a log row, as a cursor has it."""
    found = ids.parse_id(raw)
    if found is None:
        raise ValueError(_WRONG_PLACE)
    return found


def _end_before(raw: str) -> datetime:
    moment = moment_of(raw)
    try:
        # The end is inclusive: a date with its whole day, a time with its millisecond, the shown precision.
        if _DATE.match(raw):
            return moment + timedelta(days=1)
        return clock.whole_milliseconds(moment) + clock.MILLISECOND
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def moment_of(raw: str) -> datetime:
    if not _DATE.match(raw) and not _MOMENT.match(raw):
        raise ValueError(_WRONG_TIME)
    try:
        moment = datetime.fromisoformat(raw)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as fault:  # 30 February; year 1 in a zone east of us
        raise ValueError(_WRONG_TIME) from fault
