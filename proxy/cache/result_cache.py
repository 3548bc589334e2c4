"""Results in memory: bounded, dead when their time or epoch is over, one vendor call for all that ask at once.

An entry remembers the epoch that was read before its call was sent. A write gives the scope a new epoch after its
outcome and before its answer, so whoever has seen the answer finds nothing older, in any process.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeGuard

import structlog

from proxy.cache.keys import CacheKey
from proxy.outcomes import CacheStatus, Delivered, Failed, VendorError
from proxy.protocol import replies
from proxy.single_flight import SingleFlight

log = structlog.get_logger(__name__)
CAPACITY_BYTES = 64 * 1024 * 1024
IN_LOOP_BYTES = 64 * 1024
RESULT_BYTES = 1024 * 1024
ENTRY_BYTES = 1024  # what a key and its places in the tables take, about

Answer = Delivered | VendorError | Failed


@dataclass(frozen=True, slots=True)
class _Entry:
    key: CacheKey
    epoch: str
    result: Delivered
    expires_s: float

    @property
    def size(self) -> int:
        return len(self.result.raw_result) + ENTRY_BYTES


class ResultCache:
    """One event loop. What was not used for longest makes room first."""

    def __init__(
        self, *, capacity_bytes: int = CAPACITY_BYTES, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._capacity_bytes = capacity_bytes
        self._monotonic = monotonic
        self._entries: OrderedDict[CacheKey, _Entry] = OrderedDict()
        self._flights: SingleFlight[tuple[CacheKey, str], tuple[CacheKey, Answer]] = SingleFlight(
            outlives_callers=False
        )
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
            if _is_success(answer) and await _fits(answer.raw_result):
                self._keep(_Entry(key, epoch, answer, self._monotonic() + ttl_s))
            return key, answer

        answered, answer = await (self._flights.run((key, epoch), ask) if shares else ask())
        if answered != key:
            raise RuntimeError("an answer to another call was about to be delivered")
        return answer, CacheStatus.HIT if _is_success(answer) and not is_first else CacheStatus.MISS

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
        self._entries.move_to_end(key)
        return entry.result

    def _keep(self, entry: _Entry) -> None:
        self._drop(entry.key)
        self._entries[entry.key] = entry
        self.size_bytes += entry.size
        while self.size_bytes > self._capacity_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: CacheKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size_bytes -= entry.size


async def _fits(raw_result: bytes) -> bool:
    """Whether it is small enough, and such that the CLI can word it too: a broken result must not last."""
    if len(raw_result) > RESULT_BYTES:
        return False
    return _is_sound(raw_result) if len(raw_result) <= IN_LOOP_BYTES else await asyncio.to_thread(_is_sound, raw_result)


def _is_sound(raw_result: bytes) -> bool:
    try:
        replies.cli_content(raw_result)
    except replies.BadVendorReply:
        return False
    return True


def _is_success(answer: Answer) -> TypeGuard[Delivered]:
    return isinstance(answer, Delivered) and not answer.is_error
