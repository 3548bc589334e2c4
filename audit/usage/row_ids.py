"""Pure: ids of the rows of counters. An id is the place of its row and serves as the only index of its table.

An id is made of 3 bytes of the organization, 4 bytes of the time and 9 bytes of a digest of the key. So the rows of an
organization's period are one range of ids, and new rows of an organization come behind its older ones. Two
organizations may share their 3 bytes: who reads a range names the organization too.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from audit.usage_keys import WHOLE_DAY

_DAY_LEVEL = 1 << 30  # days come behind all hours
_HOURS_OF_A_DAY = 32  # room for them; a power of two
_TIMES = 1 << 31
_DIGEST_BYTES = 9
_SEPARATOR = "\x1f"  # in no text of the log: audit.plain_text


class Range(NamedTuple):
    """Of ids, both inclusive."""

    low: uuid.UUID
    high: uuid.UUID


def row_id(org_id: uuid.UUID, day: date, hour: int, texts: Sequence[str]) -> uuid.UUID:
    """`texts`: the rest of the key."""
    digest = hashlib.sha256(org_id.bytes + _SEPARATOR.join(texts).encode()).digest()[:_DIGEST_BYTES]
    return uuid.UUID(bytes=org_id.bytes[-3:] + _time(day, hour).to_bytes(4, "big") + digest)


def day_id(org_id: uuid.UUID, day: date) -> uuid.UUID:
    """Of the row for a whole day, which has no further key."""
    return row_id(org_id, day, WHOLE_DAY, [""])


def row_id_sql(columns: Sequence[str]) -> str:
    """The same id in PostgreSQL, of `org_id`, `day`, `hour` and the rest of the key in `columns`."""
    level = f"CASE WHEN hour = {WHOLE_DAY} THEN {_DAY_LEVEL} ELSE 0 END"
    time = f"{level} + (day - DATE '0001-01-01' + 1) * {_HOURS_OF_A_DAY} + hour"
    texts = f"convert_to(concat_ws(chr({ord(_SEPARATOR)}), {', '.join(columns)}), 'UTF8')"
    digest = f"substr(sha256(uuid_send(org_id) || {texts}), 1, {_DIGEST_BYTES})"
    return f"CAST(encode(substr(uuid_send(org_id), 14) || int4send({time}) || {digest}, 'hex') AS uuid)"


def of_hours(org_id: uuid.UUID, day: date, first: int, last: int) -> Range:
    """Hours of one day; `last` exclusive, and above `first`."""
    return _range(org_id, _time(day, first), _time(day, last - 1) + 1)


def of_days(org_id: uuid.UUID, first: date, last: date) -> Range:
    """Whole days; `last` exclusive."""
    return _range(org_id, _time(first, WHOLE_DAY), _time(last, WHOLE_DAY))


def of_all_days(org_id: uuid.UUID) -> Range:
    return _range(org_id, _DAY_LEVEL, _TIMES)


def of_organization(org_id: uuid.UUID) -> Range:
    return _range(org_id, 0, _TIMES)


def _time(day: date, hour: int) -> int:
    return (_DAY_LEVEL if hour == WHOLE_DAY else 0) + day.toordinal() * _HOURS_OF_A_DAY + hour


def _range(org_id: uuid.UUID, begin: int, end: int) -> Range:
    organization = int.from_bytes(org_id.bytes[-3:], "big") << 32
    bits = 8 * _DIGEST_BYTES
    return Range(uuid.UUID(int=(organization + begin) << bits), uuid.UUID(int=((organization + end) << bits) - 1))
