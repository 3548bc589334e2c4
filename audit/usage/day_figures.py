"""The figures of one day as they are stored, and those of many days and of a statement together.

Figures by vendor are most of a day's, so they are stored without names that would come again and again.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

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


@dataclass(frozen=True, slots=True)
class ReadyDay:
    """Without the figures that were not asked for."""

    day: date
    version: uuid.UUID
    groups: list[Group]
    vendors: VendorsOfDay


_encoder = msgspec.msgpack.Encoder()
_groups_decoder = msgspec.msgpack.Decoder(list[Group])
_vendors_decoder = msgspec.msgpack.Decoder(VendorsOfDay)


def encoded(rows: Iterable[Group]) -> tuple[bytes, bytes]:
    """The two columns of a day. `rows`: of the branches OF_A_DAY."""
    found = by_kind((row.kind, row) for row in rows)
    by_day = [row for kind in _KINDS_BY_DAY for row in found[kind]]
    return _encoder.encode(by_day), _encoder.encode(_vendors_of(found))


def decoded(day: date, version: uuid.UUID, by_day: bytes | None, by_vendor: bytes | None) -> ReadyDay:
    """None: not asked for."""
    groups = [] if by_day is None else _groups_decoder.decode(by_day)
    vendors = VendorsOfDay([], {}) if by_vendor is None else _vendors_decoder.decode(by_vendor)
    return ReadyDay(day, version, groups, vendors)


def by_kind(rows: Iterable[tuple[str, Group]]) -> Grouped:
    return defaultdict(list, grouped(rows))


def together(rows: Iterable[Group], days: Sequence[ReadyDay]) -> Grouped:
    """Rows of a statement with those of days that it left out. `called`: callers and calls of each vendor."""
    found = by_kind((row.kind, row) for row in rows)
    for each in days:
        for row in each.groups:
            found[row.kind].append(row)
    for kind, more in _of_vendors(days):
        found[kind] += more
    found["called"] = list(_called(found, days))
    for kind in _ADDED:
        found[kind] = list(_added(found[kind]))
    return found


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


def _of_vendors(days: Sequence[ReadyDay]) -> Iterator[tuple[str, list[Group]]]:
    """Rows of the kinds `vendor`, `tool` and `bucket`, by kind."""
    tools: defaultdict[str, dict[str, int]] = defaultdict(dict)
    buckets: defaultdict[str, dict[int, int]] = defaultdict(dict)
    calls_with: defaultdict[str, dict[str, int]] = defaultdict(dict)
    duration_of: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for day in days:
        for vendor, figures in day.vendors.vendors.items():
            _add(tools[vendor], figures.tools)
            _add(buckets[vendor], figures.buckets)
            _add(calls_with[vendor], figures.calls)
            _add(duration_of[vendor], figures.duration_ms)
    yield (
        "vendor",
        [
            Group("vendor", vendor, outcome, "", calls, duration_of[vendor][outcome])
            for vendor, outcomes in calls_with.items()
            for outcome, calls in outcomes.items()
        ],
    )
    yield "tool", [Group("tool", vendor, *each, 0) for vendor, sums in tools.items() for each in _texts(sums)]
    yield (
        "bucket",
        [
            Group("bucket", vendor, "", "", calls, bucket)
            for vendor, sums in buckets.items()
            for bucket, calls in sums.items()
        ],
    )


def _texts(sums: dict[str, int]) -> Iterator[tuple[str, str, int]]:
    return ((text, "", calls) for text, calls in sums.items())


def _add(sums: dict[_Key, int], more: dict[_Key, int]) -> None:
    if not sums:
        sums.update(more)
        return
    known = sums.get
    for key, calls in more.items():
        sums[key] = known(key, 0) + calls


def _called(found: Grouped, days: Sequence[ReadyDay]) -> Iterator[Group]:
    """A vendor's callers on several days are fewer than all of these days have."""
    callers: defaultdict[str, set[str]] = defaultdict(set)
    calls: Counter[str] = Counter()
    for row in found["pair"]:
        callers[row.first].add(row.second)
        calls[row.first] += row.calls
    for day in days:
        name_at = day.vendors.callers.__getitem__
        for vendor, figures in day.vendors.vendors.items():
            if figures.callers:
                callers[vendor].update(map(name_at, figures.callers))
                calls[vendor] += sum(figures.calls.get(outcome, 0) for outcome in COUNTED)
    for vendor, names in callers.items():
        yield Group("called", vendor, "", "", calls[vendor], len(names))


def _added(rows: Iterable[Group]) -> Iterator[Group]:
    sums: dict[tuple[str, str, str, str], tuple[int, int]] = {}
    for kind, first, second, third, calls, amount in rows:
        key = (kind, first, second, third)
        known = sums.get(key, (0, 0))
        sums[key] = (known[0] + calls, known[1] + amount)
    for key, known in sums.items():
        yield Group(*key, *known)
