"""Slots of one process that owners share: a few in all, and fewer for one owner."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable
from enum import Enum, auto
from typing import Generic, TypeVar

Owner = TypeVar("Owner", bound=Hashable)


class SlotResult(Enum):
    TAKEN = auto()
    OWNER_HAS_ALL_OF_ITS = auto()
    NONE_FREE = auto()


class SharedSlots(Generic[Owner]):
    """`size` slots, at most `of_owner` of one owner. Thread-safe; `take` never waits."""

    def __init__(self, *, size: int, of_owner: int) -> None:
        self._size, self._of_owner = size, of_owner
        self.taken: Counter[Owner] = Counter()
        self._lock = threading.Lock()

    def take(self, owner: Owner) -> SlotResult:
        """The caller must call `give_back` after TAKEN, and only then."""
        with self._lock:
            if self.taken.get(owner, 0) >= self._of_owner:
                return SlotResult.OWNER_HAS_ALL_OF_ITS
            if self.taken.total() >= self._size:
                return SlotResult.NONE_FREE
            self.taken[owner] += 1
            return SlotResult.TAKEN

    def give_back(self, owner: Owner) -> None:
        with self._lock:
            self.taken[owner] -= 1
            self.taken += Counter()  # drops owners without a slot
