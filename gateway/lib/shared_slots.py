"""Slots of one process that owners share: a few in all, and fewer for one owner."""

from __future__ import annotations

import threading
from collections import Counter, deque
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
        self._taken: Counter[Owner] = Counter()
        self._given_back: deque[Owner] = deque()
        self._lock = threading.Lock()

    @property
    def taken(self) -> Counter[Owner]:
        """Returns the number of slots of each owner that has one."""
        with self._lock:
            self._settle()
            return Counter(self._taken)

    def take(self, owner: Owner) -> SlotResult:
        """The caller must call `give_back` after TAKEN, and only then."""
        with self._lock:
            self._settle()
            if self._taken.get(owner, 0) >= self._of_owner:
                return SlotResult.OWNER_HAS_ALL_OF_ITS
            if self._taken.total() >= self._size:
                return SlotResult.NONE_FREE
            self._taken[owner] += 1
            return SlotResult.TAKEN

    def give_back(self, owner: Owner) -> None:
        """Never waits: the garbage collector may call it in a thread that is inside `take`."""
        self._given_back.append(owner)

    def _settle(self) -> None:
        while self._given_back:
            owner = self._given_back.popleft()
            self._taken[owner] -= 1
            if not self._taken[owner]:
                del self._taken[owner]
