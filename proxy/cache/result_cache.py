"""Results in memory: bounded, dead when their time or epoch is over, one vendor call for all that ask at once.

An entry remembers the epoch that was read before its call was sent. A write gives the scope a new epoch after its
outcome and before its answer, so whoever has seen the answer finds nothing older, in any process.

Where memory runs short, the organization that holds most makes room: no organization, with however many or large
results, takes away those of one that holds less.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from heapq import heapify, heappush, heapreplace
from itertools import count
from typing import TypeGuard
from uuid import UUID

import structlog

from proxy.cache.keys import CacheKey
from proxy.outcomes import CacheStatus, Delivered, Failed, VendorError
from proxy.protocol import replies
from proxy.single_flight import SingleFlight
from proxy.vendors import turns

log = structlog.get_logger(__name__)
CAPACITY_BYTES = 64 * 1024 * 1024
RESULT_BYTES = 1024 * 1024
MOST_CHECKED = 16  # long results that are looked into; more of them at once are not kept
ENTRY_BYTES = 1024  # what a key and its places in the tables take, about

Answer = Delivered | VendorError | Failed


@dataclass(slots=True)
class _Share:
    """What one organization holds, the one used longest ago first. Entries know their share: it must not hold them."""

    keys: OrderedDict[CacheKey, None] = field(default_factory=OrderedDict)
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Entry:
    key: CacheKey
    epoch: str
    result: Delivered
    expires_s: float
    share: _Share = field(repr=False, compare=False)

    @property
    def size(self) -> int:
        return len(self.result.raw_result) + ENTRY_BYTES


class ResultCache:
    """One event loop. Of whoever holds most, what was not used for longest makes room first."""

    def __init__(
        self, *, capacity_bytes: int = CAPACITY_BYTES, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._capacity_bytes = capacity_bytes
        self._monotonic = monotonic
        self._entries: dict[CacheKey, _Entry] = {}
        self._shares: dict[UUID, _Share] = {}
        # (bytes below zero, a number to tell equals apart, share): each share is in it with no less than it holds, so
        # the first one whose number is right holds most.
        self._largest: list[tuple[int, int, _Share]] = []
        self._numbers = count()
        self._flights: SingleFlight[tuple[CacheKey, str], tuple[CacheKey, Answer]] = SingleFlight(
            outlives_callers=False
        )
        self._checking: set[asyncio.Task[None]] = set()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    async def read(
        self, key: CacheKey, epoch: str, ttl_s: int, send: Callable[[], Awaitable[Answer]], *, shares: bool = True
    ) -> tuple[Answer, CacheStatus]:
        """The kept result, or what `send` brings: once for all that ask while it is under way, unless not `shares`.

        Whoever asks first may leave without taking the answer away from the others. Errors are not kept. Callers that
        saw a newer epoch never join a call that began before it.   Spec: D103
        """
        kept = self._kept(key, epoch)
        if kept is not None:
            return kept, CacheStatus.HIT
        is_first = False

        async def ask() -> tuple[CacheKey, Answer]:
            nonlocal is_first
            is_first = True
            answer = await send()
            if _is_success(answer):
                self._keep_if_sound(key, epoch, answer, self._monotonic() + ttl_s)
            return key, answer

        answered, answer = await (self._flights.run((key, epoch), ask) if shares else ask())
        if answered != key:
            raise RuntimeError("an answer to another call was about to be delivered")
        return answer, CacheStatus.HIT if _is_success(answer) and not is_first else CacheStatus.MISS

    async def settled(self) -> None:
        """Every result so far is kept, or is not going to be."""
        while self._checking:
            await asyncio.wait(set(self._checking))

    def _keep_if_sound(self, key: CacheKey, epoch: str, result: Delivered, expires_s: float) -> None:
        """Keep a result that is small enough and that the CLI can render too: a broken result must not last.

        Looking into a long one takes a while, and its caller need not wait for that.
        """
        size = len(result.raw_result)
        if size <= turns.IN_LOOP_BYTES:
            if _is_sound(result.raw_result):
                self._keep(key, epoch, result, expires_s)
        elif size <= RESULT_BYTES and len(self._checking) < MOST_CHECKED:
            task = asyncio.ensure_future(self._keep_later(key, epoch, result, expires_s))
            self._checking.add(task)
            task.add_done_callback(self._checking.discard)

    async def _keep_later(self, key: CacheKey, epoch: str, result: Delivered, expires_s: float) -> None:
        if await turns.in_thread(key.owner, partial(_is_sound, result.raw_result)):
            self._keep(key, epoch, result, expires_s)

    def _kept(self, key: CacheKey, epoch: str) -> Delivered | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.key != key:  # never seen, and never to be seen by a customer
            log.error("result cache holds a result under another key")
            self._drop(key)
            return None
        if entry.epoch != epoch or self._monotonic() >= entry.expires_s:
            self._drop(key)
            return None
        entry.share.keys.move_to_end(key)
        return entry.result

    def _keep(self, key: CacheKey, epoch: str, result: Delivered, expires_s: float) -> None:
        self._drop(key)
        share = self._shares.setdefault(key.owner, _Share())
        entry = _Entry(key, epoch, result, expires_s, share)
        self._entries[key] = entry
        share.keys[key] = None
        share.size_bytes += entry.size
        self.size_bytes += entry.size
        self._note_growth(share)
        while self.size_bytes > self._capacity_bytes:
            self._drop(next(iter(self._largest_share().keys)))

    def _drop(self, key: CacheKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        share = entry.share
        del share.keys[entry.key]
        share.size_bytes -= entry.size
        self.size_bytes -= entry.size
        if not share.keys:
            del self._shares[entry.key.owner]

    def _note_growth(self, share: _Share) -> None:
        heappush(self._largest, (-share.size_bytes, next(self._numbers), share))
        if len(self._largest) > 2 * len(self._shares) + 64:  # mostly numbers of the past
            self._largest = [(-each.size_bytes, next(self._numbers), each) for each in self._shares.values()]
            heapify(self._largest)

    def _largest_share(self) -> _Share:
        while True:
            size_bytes, _, share = self._largest[0]
            if -size_bytes == share.size_bytes:
                return share
            heapreplace(self._largest, (-share.size_bytes, next(self._numbers), share))


def _is_sound(raw_result: bytes) -> bool:
    try:
        replies.cli_content(raw_result)
    except replies.BadVendorReply:
        return False
    return True


def _is_success(answer: Answer) -> TypeGuard[Delivered]:
    return isinstance(answer, Delivered) and not answer.is_error
