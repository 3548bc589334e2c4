"""The figures of one day as they are stored, and those of many days and of a statement together.

Figures by vendor are most of a day's, so they are stored without names that would come again and again.
"""

from __future__ import annotations

import itertools
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from typing import NamedTuple, TypeVar

import msgspec

from audit.usage.parts import Group
from audit.usage_keys import COUNTED
from gateway.lib.rows import grouped

Grouped = defaultdict[str, list[Group]]
_Key = TypeVar("_Key")
BY_DAY, BY_VENDOR = "by_day", "by_vendor"
_KINDS_BY_DAY = ("day", "source", "list", "user")
# Kinds of which several rows with one key are one figure. Of the others, their reader adds the rows.
_ADDED = ("source", "user", "tool")


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
_groups_decoder = msgspec.msgpack.Decoder(list[Group])
_vendors_decoder = msgspec.msgpack.Decoder(VendorsOfDay)


def encoded(rows: Iterable[Group]) -> tuple[bytes, bytes]:
    """The two columns of a day. `rows`: of the branches OF_A_DAY."""
    found = by_kind((row.kind, row) for row in rows)
    by_day = [row for kind in _KINDS_BY_DAY for row in found[kind]]
    return _encoder.encode(by_day), _encoder.encode(_vendors_of(found))


def by_kind(rows: Iterable[tuple[str, Group]]) -> Grouped:
    return defaultdict(list, grouped(rows))


def together(rows: Iterable[Group], days: Iterable[ReadyDay]) -> Grouped:
    """Rows of a statement with those of days that it left out. `called`: callers and calls of each vendor."""
    found: Grouped = defaultdict(list)
    vendors = _Vendors()
    sums: dict[tuple[str, str, str, str], tuple[int, int]] = {}
    for row in itertools.chain(rows, _unpacked(days, vendors)):
        if row.kind in _ADDED:
            known = sums.get(row[:4], (0, 0))
            sums[row[:4]] = (known[0] + row.calls, known[1] + row.amount)
        else:
            found[row.kind].append(row)
    for key, numbers in sums.items():
        found[key[0]].append(Group(*key, *numbers))
    found["called"] = list(vendors.called(found["pair"]))
    return found


def _unpacked(days: Iterable[ReadyDay], vendors: _Vendors) -> Iterator[Group]:
    """One day after the other: the figures of a large organization's year would take 150 MB at once."""
    for day in days:
        if day.by_day is not None:
            yield from _groups_decoder.decode(day.by_day)
        if day.by_vendor is not None:
            vendors.add(_vendors_decoder.decode(day.by_vendor))
    yield from vendors.rows()


def _vendors_of(found: Grouped) -> VendorsOfDay:
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


class _Vendors:
    """Sums of days, by vendor."""

    def __init__(self) -> None:
        self._calls: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._duration_ms: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._tools: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._buckets: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._callers: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, day: VendorsOfDay) -> None:
        name_at = day.callers.__getitem__
        for vendor, figures in day.vendors.items():
            _add(self._calls[vendor], figures.calls)
            _add(self._duration_ms[vendor], figures.duration_ms)
            _add(self._tools[vendor], figures.tools)
            _add(self._buckets[vendor], figures.buckets)
            self._callers[vendor].update(map(name_at, figures.callers))

    def rows(self) -> Iterator[Group]:
        """Of the kinds `vendor`, `tool` and `bucket`."""
        for vendor, outcomes in self._calls.items():
            for outcome, calls in outcomes.items():
                yield Group("vendor", vendor, outcome, "", calls, self._duration_ms[vendor][outcome])
        for vendor, tools in self._tools.items():
            for tool, calls in tools.items():
                yield Group("tool", vendor, tool, "", calls, 0)
        for vendor, buckets in self._buckets.items():
            for bucket, calls in buckets.items():
                yield Group("bucket", vendor, "", "", calls, bucket)

    def called(self, pairs: Iterable[Group]) -> Iterator[Group]:
        """With the rows of the kind `pair`. A vendor's callers on several days are fewer than all these days have."""
        calls = Counter({vendor: _counted(self._calls[vendor]) for vendor in self._callers})
        for row in pairs:
            self._callers[row.first].add(row.second)
            calls[row.first] += row.calls
        for vendor, callers in self._callers.items():
            if callers:
                yield Group("called", vendor, "", "", calls[vendor], len(callers))


def _counted(calls: dict[str, int]) -> int:
    """`calls`: by outcome."""
    return sum(calls.get(outcome, 0) for outcome in COUNTED)


def _add(sums: dict[_Key, int], more: dict[_Key, int]) -> None:
    known = sums.get
    for key, calls in more.items():
        sums[key] = known(key, 0) + calls
