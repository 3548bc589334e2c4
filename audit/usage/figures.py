"""Figures of a period: the rows of a statement together with those of ready days that it left out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from audit.usage.day_figures import ReadyDay, VendorFigures, VendorsOfDay, decode_rows, decode_vendors, encode
from audit.usage.parts import Group
from audit.usage_keys import COUNTED

_Key = TypeVar("_Key")


@dataclass(slots=True)
class VendorSums:
    """`calls` and `duration_ms`: by outcome; `tools`: calls; `buckets`: timed calls; `called`: calls of `callers`.

    Durations are in ms, buckets are those of `audit.usage.durations`.
    """

    calls: dict[str, int] = field(default_factory=dict)
    duration_ms: dict[str, int] = field(default_factory=dict)
    tools: dict[str, int] = field(default_factory=dict)
    buckets: dict[int, int] = field(default_factory=dict)
    callers: set[str] = field(default_factory=set)
    called: int = 0

    def add(self, more: VendorFigures, names: list[str]) -> None:
        """`names`: of the day's callers."""
        _add(self.calls, more.calls)
        _add(self.duration_ms, more.duration_ms)
        _add(self.tools, more.tools)
        _add(self.buckets, more.buckets)
        if more.callers:
            self.callers.update(map(names.__getitem__, more.callers))
            self.called += sum(more.calls.get(outcome, 0) for outcome in COUNTED)

    def of_a_day(self, places: Mapping[str, int]) -> VendorFigures:
        """`places`: of callers in the day's list."""
        callers = sorted(map(places.__getitem__, self.callers))
        return VendorFigures(self.calls, self.duration_ms, self.tools, self.buckets, callers)


class Figures:
    """`users`: calls by caller. `vendors`: by slug; "" has the rows without one. `rows`: those of all other kinds."""

    def __init__(self, rows: Iterable[Group], days: Iterable[ReadyDay]) -> None:
        self.rows: defaultdict[str, list[Group]] = defaultdict(list)
        self.users: dict[str, int] = {}
        self.vendors: defaultdict[str, VendorSums] = defaultdict(VendorSums)
        self._add_rows(rows)
        # One after the other: the figures of a large organization's year would take 150 MB at once.
        for day in days:
            self._add_day(day)

    @property
    def called(self) -> list[tuple[str, VendorSums]]:
        """Vendors with a call, by name, the most called first."""
        found = [(vendor, sums) for vendor, sums in self.vendors.items() if sums.callers]
        return sorted(found, key=lambda each: (-each[1].called, each[0]))

    @property
    def buckets(self) -> Counter[int]:
        """Timed calls of all vendors."""
        found: Counter[int] = Counter()
        for sums in self.vendors.values():
            found.update(sums.buckets)
        return found

    def as_day(self) -> tuple[bytes, bytes]:
        """The columns of a ready day with these figures."""
        by_day = [row for kind in ("day", "source", "list") for row in self.rows[kind]]
        by_day += [Group("user", user, "", "", calls, 0) for user, calls in self.users.items()]
        callers = sorted({caller for sums in self.vendors.values() for caller in sums.callers})
        places = {caller: place for place, caller in enumerate(callers)}
        vendors = {vendor: sums.of_a_day(places) for vendor, sums in self.vendors.items()}
        return encode(by_day), encode(VendorsOfDay(callers, vendors))

    def _add_day(self, day: ReadyDay) -> None:
        if day.by_day is not None:
            self._add_rows(decode_rows(day.by_day))
        if day.by_vendor is not None:
            found = decode_vendors(day.by_vendor)
            for vendor, figures in found.vendors.items():
                self.vendors[vendor].add(figures, found.callers)

    def _add_rows(self, rows: Iterable[Group]) -> None:
        users, vendors, others = self.users, self.vendors, self.rows
        for row in rows:
            kind, first, second, _, calls, amount = row
            if kind == "user":
                users[first] = users.get(first, 0) + calls
            elif kind == "pair":
                vendors[first].callers.add(second)
                vendors[first].called += calls
            elif kind == "tool":
                tools = vendors[first].tools
                tools[second] = tools.get(second, 0) + calls
            elif kind == "bucket":
                buckets = vendors[first].buckets
                buckets[amount] = buckets.get(amount, 0) + calls
            elif kind == "vendor":
                _add(vendors[first].calls, {second: calls})
                _add(vendors[first].duration_ms, {second: amount})
            else:
                others[kind].append(row)


def _add(sums: dict[_Key, int], more: dict[_Key, int]) -> None:
    known = sums.get
    for key, calls in more.items():
        sums[key] = known(key, 0) + calls
