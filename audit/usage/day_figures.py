"""The figures of one day as they are stored.

Figures by vendor are most of a day's, so they are stored without names that would come again and again.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from typing import NamedTuple

import msgspec

from audit.usage.parts import Group
from gateway.lib.rows import grouped

BY_DAY, BY_VENDOR = "by_day", "by_vendor"
_KINDS_BY_DAY = ("day", "source", "list", "user")


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


_encoder = msgspec.msgpack.Encoder()
# Rows of the branches of BY_DAY, and the figures of BY_VENDOR.
decode_rows = msgspec.msgpack.Decoder(list[Group]).decode
decode_vendors = msgspec.msgpack.Decoder(VendorsOfDay).decode


def encoded(rows: Iterable[Group]) -> tuple[bytes, bytes]:
    """The two columns of a day. `rows`: of the branches OF_A_DAY."""
    found = defaultdict(list, grouped((row.kind, row) for row in rows))
    by_day = [row for kind in _KINDS_BY_DAY for row in found[kind]]
    return _encoder.encode(by_day), _encoder.encode(_vendors_of(found))


def _vendors_of(found: dict[str, list[Group]]) -> VendorsOfDay:
    callers = sorted({row.second for row in found["pair"]})
    places = {caller: place for place, caller in enumerate(callers)}
    vendors: defaultdict[str, VendorFigures] = defaultdict(lambda: VendorFigures({}, {}, {}, {}, []))
    for row in found["vendor"]:
        vendors[row.first].calls[row.second] = row.calls
        vendors[row.first].duration_ms[row.second] = row.amount
    for row in found["tool"]:
        vendors[row.first].tools[row.second] = row.calls
    for row in found["bucket"]:
        vendors[row.first].buckets[row.amount] = row.calls
    for row in found["pair"]:
        vendors[row.first].callers.append(places[row.second])
    return VendorsOfDay(callers, dict(vendors))
