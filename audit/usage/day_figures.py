"""The figures of one day as they are stored.

Figures by vendor are most of a day's, so they are stored without names that would come again and again.
"""

from __future__ import annotations

import uuid
from datetime import date
from typing import NamedTuple

import msgspec

from audit.usage.parts import Group

BY_DAY, BY_VENDOR = "by_day", "by_vendor"


class VendorFigures(msgspec.Struct, array_like=True):
    """`calls` and `duration_ms`: by outcome; `tools`: calls; `buckets`: timed calls; `callers`: places in the list.

    Durations are in ms, buckets are those of `audit.usage.durations`.
    """

    calls: dict[str, int]
    duration_ms: dict[str, int]
    tools: dict[str, int]
    buckets: dict[int, int]
    callers: list[int]


class VendorsOfDay(msgspec.Struct, array_like=True):
    callers: list[str]
    vendors: dict[str, VendorFigures]


class ReadyDay(NamedTuple):
    """The columns are packed. None: not asked for."""

    day: date
    version: uuid.UUID
    by_day: bytes | None
    by_vendor: bytes | None


# Of both columns.
encode = msgspec.msgpack.Encoder().encode
# Rows of the branches of BY_DAY, and the figures of BY_VENDOR.
decode_rows = msgspec.msgpack.Decoder(list[Group]).decode
decode_vendors = msgspec.msgpack.Decoder(VendorsOfDay).decode
