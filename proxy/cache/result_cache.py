"""Results in memory, bounded; valid for their time and epoch. Equal calls at the same time share one vendor call.

An entry has the epoch read before its call was sent. A write renews the epoch before its answer leaves, so a caller who
saw that answer never reads an older result, in any process.
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
from proxy.vendors import fair_scheduler

log = structlog.get_logger(__name__)
CAPACITY_BYTES = 64 * 1024 * 1024
RESULT_BYTES = 1024 * 1024  # larger results are not kept
MAX_CONCURRENT_CHECKS = 16  # long results being checked; further ones are not kept
ENTRY_BYTES = 1024  # estimate of a key and its table entries

VendorOutcome = Delivered | VendorError | Failed


@dataclass(slots=True)
class _Share:
    """Results of one organization, oldest use first. No reference to entries, which refer to it: no cycle."""

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
    """One event loop. Past the capacity, the organization that holds most loses its oldest results."""

    def __init__(
        self, *, capacity_bytes: int = CAPACITY_BYTES, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._capacity_bytes = capacity_bytes
        self._monotonic = monotonic
        self._entries: dict[CacheKey, _Entry] = {}
        self._shares: dict[UUID, _Share] = {}
        # Max-heap of organizations by bytes held, corrected lazily: (negative bytes, tie-breaker, share). Numbers are
        # never too small, so the first one that is exact is the largest.
        self._largest: list[tuple[int, int, _Share]] = []
        self._numbers = count()
        self._flights: SingleFlight[tuple[CacheKey, str], tuple[CacheKey, VendorOutcome]] = SingleFlight(
            outlives_callers=False
        )
        self._checking: set[asyncio.Task[None]] = set()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    async def read(
        self,
        key: CacheKey,
        epoch: str,
        ttl_s: int,
        send: Callable[[], Awaitable[VendorOutcome]],
        *,
        is_shareable: bool = True,
    ) -> tuple[VendorOutcome, CacheStatus]:
        """The kept result, or that of `send`, which equal calls share if `is_shareable`. Errors are not kept. Spec:
        D103"""
        cached = self._get(key, epoch)
        if cached is not None:
            return cached, CacheStatus.HIT
        is_first = False

        async def ask() -> tuple[CacheKey, VendorOutcome]:
            nonlocal is_first
            is_first = True
            answer = await send()
            if _is_success(answer):
                self._put_if_valid(key, epoch, answer, self._monotonic() + ttl_s)
            return key, answer

        # A flight outlives its first caller. A newer epoch has a flight of its own.
        answered_key, answer = await (self._flights.run((key, epoch), ask) if is_shareable else ask())
        if answered_key != key:
            raise RuntimeError("an answer to another call was about to be delivered")
        return answer, CacheStatus.HIT if _is_success(answer) and not is_first else CacheStatus.MISS

    async def settled(self) -> None:
        while self._checking:
            await asyncio.wait(set(self._checking))

    def _put_if_valid(self, key: CacheKey, epoch: str, result: Delivered, expires_s: float) -> None:
        size = len(result.raw_result)
        if size <= fair_scheduler.INLINE_BYTES:
            # A broken result, which the CLI cannot render, must not be kept.
            if _is_valid(result.raw_result):
                self._put(key, epoch, result, expires_s)
        elif size <= RESULT_BYTES and len(self._checking) < MAX_CONCURRENT_CHECKS:
            # In the background: the caller does not wait for the check of a long result.
            task = asyncio.ensure_future(self._put_later(key, epoch, result, expires_s))
            self._checking.add(task)
            task.add_done_callback(self._checking.discard)

    async def _put_later(self, key: CacheKey, epoch: str, result: Delivered, expires_s: float) -> None:
        if await fair_scheduler.run_in_thread(key.owner, partial(_is_valid, result.raw_result)):
            self._put(key, epoch, result, expires_s)

    def _get(self, key: CacheKey, epoch: str) -> Delivered | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.key != key:  # defence in depth: a result of another call must never be delivered
            log.error("result cache holds a result under another key")
            self._drop(key)
            return None
        if entry.epoch != epoch or self._monotonic() >= entry.expires_s:
            self._drop(key)
            return None
        entry.share.keys.move_to_end(key)
        return entry.result

    def _put(self, key: CacheKey, epoch: str, result: Delivered, expires_s: float) -> None:
        self._drop(key)
        share = self._shares.setdefault(key.owner, _Share())
        entry = _Entry(key, epoch, result, expires_s, share)
        self._entries[key] = entry
        share.keys[key] = None
        share.size_bytes += entry.size
        self.size_bytes += entry.size
        self._push_share(share)
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

    def _push_share(self, share: _Share) -> None:
        heappush(self._largest, (-share.size_bytes, next(self._numbers), share))
        if len(self._largest) > 2 * len(self._shares) + 64:  # mostly outdated numbers
            self._largest = [(-each.size_bytes, next(self._numbers), each) for each in self._shares.values()]
            heapify(self._largest)

    def _largest_share(self) -> _Share:
        while True:
            size_bytes, _, share = self._largest[0]
            if -size_bytes == share.size_bytes:
                return share
            heapreplace(self._largest, (-share.size_bytes, next(self._numbers), share))


def _is_valid(raw_result: bytes) -> bool:
    try:
        replies.cli_content(raw_result)
    except replies.BadVendorReply:
        return False
    return True


def _is_success(answer: VendorOutcome) -> TypeGuard[Delivered]:
    return isinstance(answer, Delivered) and not answer.is_error
