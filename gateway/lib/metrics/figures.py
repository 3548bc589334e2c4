"""Counters, gauges and histograms of one process: plain numbers by label values, safe in threads and after a fork."""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

Labels = tuple[str, ...]  # the values, in the order of the figure's label names
_lock = threading.Lock()


class Merge(StrEnum):
    """The one value of a gauge that several processes have."""

    SUM = "sum"
    MAX = "max"


class Figure:
    """One metric. `closed`: label names with all values that they may have; other labels hold slugs of the catalog."""

    kind = ""

    def __init__(
        self, name: str, meaning: str, labels: Labels = (), closed: Mapping[str, Collection[str]] | None = None
    ) -> None:
        self.name, self.meaning, self.labels = name, meaning, labels
        self.closed = dict(closed or {})
        self.values: dict[Labels, float] = {}
        _own.append(self)

    def reset(self) -> None:
        self.values = {}


class Counter(Figure):
    kind = "counter"

    def add(self, *labels: str, amount: float = 1) -> None:
        with _lock:
            self.values[labels] = self.values.get(labels, 0) + amount


class Gauge(Figure):
    """`is_live`: the value ends with its process."""

    kind = "gauge"

    def __init__(
        self,
        name: str,
        meaning: str,
        labels: Labels = (),
        closed: Mapping[str, Collection[str]] | None = None,
        *,
        merge: Merge = Merge.MAX,
        is_live: bool = True,
    ) -> None:
        super().__init__(name, meaning, labels, closed)
        self.merge, self.is_live = merge, is_live

    def set(self, value: float, *labels: str) -> None:
        with _lock:
            self.values[labels] = float(value)  # a bool is none to a reader of the file

    def replace(self, values: Mapping[Labels, float]) -> None:
        """All values; those of other labels end."""
        with _lock:
            self.values = dict(values)


class Histogram(Figure):
    """Seconds in buckets. `buckets` holds, by label values, the counts of each bound and of all above the last one."""

    kind = "histogram"

    def __init__(
        self,
        name: str,
        meaning: str,
        bounds: tuple[float, ...],
        labels: Labels = (),
        closed: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        super().__init__(name, meaning, labels, closed)
        self.bounds = bounds
        self.buckets: dict[Labels, list[float]] = {}

    def observe(self, seconds: float, *labels: str) -> None:
        with _lock:
            counts = self.buckets.get(labels)
            if counts is None:
                counts = self.buckets[labels] = [0] * (len(self.bounds) + 1)
                self.values[labels] = 0
            counts[bisect_left(self.bounds, seconds)] += 1
            self.values[labels] += seconds  # the sum

    def add_counts(self, counts: Sequence[float], total_s: float, *labels: str) -> None:
        """Samples that were counted elsewhere by the same bounds."""
        with _lock:
            own = self.buckets.get(labels) or [0] * (len(self.bounds) + 1)
            self.buckets[labels] = [one + other for one, other in zip(own, counts, strict=True)]
            self.values[labels] = self.values.get(labels, 0) + total_s

    def reset(self) -> None:
        super().reset()
        self.buckets = {}


_own: list[Figure] = []


def all_figures() -> tuple[Figure, ...]:
    return tuple(_own)


def reset_all() -> None:
    for figure in _own:
        figure.reset()


def _reset_after_fork() -> None:
    # The parent has counted these already, and another of its threads may have held the lock.
    global _lock
    _lock = threading.Lock()
    reset_all()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
