"""Results in memory, bounded; valid for their time and epoch. Equal calls at the same time share one vendor call.

An entry has the epoch read before its call was sent. A write renews the epoch before its answer leaves, so a caller who
saw that answer never reads an older result, in any process.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeGuard

import structlog

from gateway.lib.background_tasks import BackgroundTasks
from gateway.lib.fair_share_cache import FairShareCache
from proxy.cache.keys import CacheKey
from proxy.outcomes import Asked, CacheStatus, Delivered, Denied, Failed, VendorError
from proxy.protocol import replies
from proxy.single_flight import SingleFlight
from proxy.vendors import fair_scheduler

log = structlog.get_logger(__name__)
RESULT_BYTES = 1024 * 1024  # larger results are not kept
MAX_CONCURRENT_CHECKS = 16  # long results being checked; further ones are not kept
ENTRY_BYTES = 1024  # estimate of a key and its table entries

# Denied: the vendor has ended the connection.
VendorOutcome = Delivered | Asked | VendorError | Failed | Denied


@dataclass(frozen=True, slots=True)
class _Kept:
    key: CacheKey
    epoch: str
    result: Delivered
    expires_s: float


class ResultCache:
    """One event loop. Past the capacity, the organization that holds most loses its oldest results."""

    def __init__(self, *, capacity_bytes: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._kept: FairShareCache[CacheKey, _Kept] = FairShareCache(max_bytes=capacity_bytes)
        self._flights: SingleFlight[tuple[CacheKey, str], tuple[CacheKey, VendorOutcome]] = SingleFlight(
            outlives_callers=False
        )
        self._checking = BackgroundTasks()

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
            if _may_be_kept(answer):
                self._put_if_valid(key, epoch, answer, self._monotonic() + ttl_s)
            return key, answer

        # A flight outlives its first caller. A newer epoch has a flight of its own.
        answered_key, answer = await (self._flights.run((key, epoch), ask) if is_shareable else ask())
        if answered_key != key:
            raise RuntimeError("an answer to another call was about to be delivered")
        return answer, CacheStatus.HIT if _is_success(answer) and not is_first else CacheStatus.MISS

    async def settled(self) -> None:
        await self._checking.settled()

    def _put_if_valid(self, key: CacheKey, epoch: str, result: Delivered, expires_s: float) -> None:
        size = len(result.raw_result)
        if size <= fair_scheduler.INLINE_BYTES:
            # A broken result, which the CLI cannot render, must not be kept.
            if _is_valid(result.raw_result):
                self._put(key, epoch, result, expires_s)
        elif size <= RESULT_BYTES and len(self._checking) < MAX_CONCURRENT_CHECKS:
            # In the background: the caller does not wait for the check of a long result.
            self._checking.start(self._put_later(key, epoch, result, expires_s))

    async def _put_later(self, key: CacheKey, epoch: str, result: Delivered, expires_s: float) -> None:
        if await fair_scheduler.run_in_thread(key.owner, partial(_is_valid, result.raw_result)):
            self._put(key, epoch, result, expires_s)

    def _get(self, key: CacheKey, epoch: str) -> Delivered | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        if kept.key != key:  # defence in depth: a result of another call must never be delivered
            log.error("result cache holds a result under another key")
        elif kept.epoch == epoch and self._monotonic() < kept.expires_s:
            return kept.result
        self._kept.pop(key)
        return None

    def _put(self, key: CacheKey, epoch: str, result: Delivered, expires_s: float) -> None:
        size_bytes = len(result.raw_result) + ENTRY_BYTES
        self._kept.put(key, _Kept(key, epoch, result, expires_s), owner=key.owner, size_bytes=size_bytes)


def _is_valid(raw_result: bytes) -> bool:
    try:
        replies.cli_content(raw_result)
    except replies.BadVendorReply:
        return False
    return True


def _is_success(answer: VendorOutcome) -> TypeGuard[Delivered]:
    return isinstance(answer, Delivered) and not answer.is_error


def _may_be_kept(answer: VendorOutcome) -> TypeGuard[Delivered]:
    return isinstance(answer, Delivered) and not answer.is_error and not answer.is_personal
