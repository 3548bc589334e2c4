"""A bounded cache shared by owners: past a maximum, the owner that holds most loses what it used longest ago."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappush, heapreplace
from itertools import count
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(slots=True, eq=False)
class _Share(Generic[Key]):
    """Keys of one owner, oldest use first. No reference to entries, which refer to it: no cycle."""

    keys: OrderedDict[Key, None] = field(default_factory=OrderedDict)
    size_bytes: int = 0


@dataclass(slots=True, eq=False)
class _Entry(Generic[Key, Value]):
    value: Value
    size_bytes: int
    owner: Hashable
    share: _Share[Key]


class _LargestShare(Generic[Key]):
    """Max-heap of shares by what they hold, corrected lazily: (negative number, tie-breaker, share).

    A share that shrank keeps an old, larger number. So the top is corrected until its number is right; then it is the
    largest.
    """

    __slots__ = ("_heap", "_held", "_order")

    def __init__(self, held: Callable[[_Share[Key]], int]) -> None:
        self._held = held
        self._heap: list[tuple[int, int, _Share[Key]]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, share: _Share[Key], shares: dict[Hashable, _Share[Key]]) -> None:
        """Call it after `share` has grown. `shares`: all shares, to rebuild the heap from."""
        heappush(self._heap, (-self._held(share), next(self._order), share))
        if len(self._heap) > 2 * len(shares) + 64:  # mostly outdated numbers
            self._heap = [(-self._held(each), next(self._order), each) for each in shares.values()]
            heapify(self._heap)

    def find(self) -> _Share[Key]:
        while True:
            number, _, share = self._heap[0]
            if -number == self._held(share):
                return share
            heapreplace(self._heap, (-self._held(share), next(self._order), share))


class FairShareCache(Generic[Key, Value]):
    """One event loop. `on_drop` gets each value that leaves, also one that `put` replaces.

    `weigh` is the present size of a value whose size changes while it is kept. `evict` asks it.
    """

    def __init__(
        self,
        *,
        max_bytes: float = math.inf,
        max_entries: float = math.inf,
        on_drop: Callable[[Value], None] | None = None,
        weigh: Callable[[Value], int] | None = None,
    ) -> None:
        self._max_bytes, self._max_entries = max_bytes, max_entries
        self._on_drop, self._weigh = on_drop, weigh
        self._entries: dict[Key, _Entry[Key, Value]] = {}
        self._shares: dict[Hashable, _Share[Key]] = {}
        self._most_bytes: _LargestShare[Key] = _LargestShare(lambda share: share.size_bytes)
        self._most_entries: _LargestShare[Key] = _LargestShare(lambda share: len(share.keys))
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._entries)

    def get(self, key: Key) -> Value | None:
        """Counts as a use."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        entry.share.keys.move_to_end(key)
        return entry.value

    def peek(self, key: Key) -> Value | None:
        """Does not count as a use."""
        entry = self._entries.get(key)
        return None if entry is None else entry.value

    def put(self, key: Key, value: Value, *, owner: Hashable, size_bytes: int) -> None:
        """Store a value. It may be evicted at once, if its owner now holds most."""
        self.pop(key)
        share = self._shares.setdefault(owner, _Share())
        self._entries[key] = _Entry(value, size_bytes, owner, share)
        share.keys[key] = None
        share.size_bytes += size_bytes
        self.size_bytes += size_bytes
        self._most_bytes.push(share, self._shares)
        if self._max_entries < math.inf:
            self._most_entries.push(share, self._shares)
        while len(self._entries) > self._max_entries:
            self._evict(self._most_entries)
        while self.size_bytes > self._max_bytes:
            self._evict(self._most_bytes)

    def replace(self, key: Key, value: Value) -> None:
        """Another value of the same size; not a use."""
        self._entries[key].value = value

    def pop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        share = entry.share
        del share.keys[key]
        share.size_bytes -= entry.size_bytes
        self.size_bytes -= entry.size_bytes
        if not share.keys:
            del self._shares[entry.owner]
        if self._on_drop is not None:
            self._on_drop(entry.value)

    def evict(self) -> None:
        """Drop the oldest value of the owner that holds most bytes. Raises: IndexError without any value."""
        while self._weigh is not None and self._reweigh(self._most_bytes.find(), self._weigh):
            pass
        self._evict(self._most_bytes)

    def _reweigh(self, share: _Share[Key], weigh: Callable[[Value], int]) -> bool:
        """Correct the sizes of one owner; whether one was wrong."""
        growth = 0
        is_wrong = False
        for entry in map(self._entries.__getitem__, share.keys):
            size_bytes = weigh(entry.value)
            is_wrong = is_wrong or size_bytes != entry.size_bytes
            growth += size_bytes - entry.size_bytes
            entry.size_bytes = size_bytes
        share.size_bytes += growth
        self.size_bytes += growth
        if growth > 0:
            self._most_bytes.push(share, self._shares)
        return is_wrong

    def _evict(self, largest: _LargestShare[Key]) -> None:
        self.pop(next(iter(largest.find().keys)))
