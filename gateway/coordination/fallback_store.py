"""The coordination store with fallbacks while Redis is unavailable. Spec: D23 · docs/decisions/0012

available --failure--> away --ping succeeds--> catching up --missed bumps sent--> available
                        ^                          |
                        +---------failure----------+
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Protocol

import msgspec
import structlog
from django.db import Error as DatabaseFault

from gateway.coordination.last_known_quota import KnownQuota, LastKnownQuota
from gateway.coordination.memory_store import MemoryLimiter
from gateway.coordination.retry_thread import RetryThread
from gateway.coordination.returns import Returns
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission, CoordinationStore, CoordinationUnavailable

log = structlog.get_logger(__name__)
LOG_EVERY_S = 5.0  # between log lines about a store that stays away; it is tried every 0.5 s


class Outbox(Protocol):
    """Epoch bumps that Redis has not taken yet, of all processes. Methods raise django.db.Error."""

    def put(self, names: Sequence[str]) -> None: ...

    def relay(self, store: CoordinationStore) -> int:
        """Sends all bumps and returns their number. Raises: CoordinationUnavailable."""
        ...


# While away, rate limits use this process's share of each limit, and epochs are None: callers judge entries by age.
class FallbackStore:
    """Wraps a CoordinationStore."""

    def __init__(
        self,
        store: CoordinationStore,
        *,
        processes: int,
        outbox: Outbox | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._outbox = outbox
        self._monotonic = monotonic
        self._processes = processes
        self._local = MemoryLimiter(lambda: int(monotonic() * 1000))
        self._last_known_quota = LastKnownQuota(processes, monotonic)
        self._lock = threading.Lock()
        self._is_down = False
        self._is_catching_up = False  # bumps go to the store; it is not read yet
        self._down_since_s = self._logged_at_s = 0.0
        self._missed: dict[str, int] = {}  # renewals not in the outbox yet, by name; a later one has a higher number
        self._numbers = itertools.count()
        self._retry_thread = RetryThread(self.recover, "coordination-recovery")

    @property
    def returns(self) -> Returns:
        return self._store.returns

    # --- the store ----------------------------------------------------------------------------------------------------

    async def admit(self, rule: Rule, key: str, epochs: Sequence[str]) -> Admission:
        if not self._is_down or not self.is_away():  # hot path: saves a method call
            try:
                return self._last_known_quota.record(await self._store.admit(rule, key, epochs), key)
            except CoordinationUnavailable as fault:
                self._record_fault(fault)
        return self._locally(self._local.hit, rule, key)

    async def charge(self, rule: Rule, key: str, units: int) -> Admission:
        if not self.is_away():
            with self._faults_recorded():
                return self._last_known_quota.record(await self._store.charge(rule, key, units), key)
        return self._locally(partial(self._local.hit, units=units), rule, key, units)

    def hit(self, rule: Rule, key: str) -> Admission:
        if not self.is_away():
            with self._faults_recorded():
                return self._last_known_quota.record(self._store.hit(rule, key), key)
        return self._locally(self._local.hit, rule, key)

    def peek(self, rule: Rule, key: str) -> Admission:
        if not self.is_away():
            with self._faults_recorded():
                return self._last_known_quota.record(self._store.peek(rule, key), key)
        return self._locally(self._local.peek, rule, key)

    async def read_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        if not self.is_away():
            with self._faults_recorded():
                return await self._store.read_epochs(names)
        return None

    async def begin_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        if not self.is_away():
            with self._faults_recorded():
                return await self._store.begin_epochs(names)
        return None

    async def renew_epoch(self, name: str) -> None:
        """A renewal that the store did not take is sent before its epochs are used again."""
        if not self.is_away() or self._is_catching_up:
            try:
                await self._store.renew_epoch(name)
            except CoordinationUnavailable as fault:
                self._record_fault(fault, missed=name)
        else:
            with self._lock:
                self._missed[name] = next(self._numbers)
                self._is_down = True  # the store may have come back since `is_away` was asked
            self._retry_thread.start()

    def bump_epochs(self, names: Sequence[str]) -> None:
        """Raises: CoordinationUnavailable, at once while the store is away; the outbox keeps the names."""
        if not self._is_catching_up:
            self.require_available()
        try:
            self._store.bump_epochs(names)
        except CoordinationUnavailable as fault:
            self._record_fault(fault)
            raise

    def put_health(self, vendor: str, state: bytes, ttl_s: int) -> None:
        if not self.is_away():
            with self._faults_recorded():
                self._store.put_health(vendor, state, ttl_s)

    def health(self, vendors: Sequence[str]) -> Mapping[str, bytes]:
        if not self.is_away():
            with self._faults_recorded():
                return self._store.health(vendors)
        return {}

    def ping(self) -> None:
        self.require_available()
        try:
            self._store.ping()
        except CoordinationUnavailable as fault:
            self._record_fault(fault)
            raise

    async def aclose(self) -> None:
        await self._store.aclose()

    # --- away and back ------------------------------------------------------------------------------------------------

    def require_available(self) -> None:
        """Raises: CoordinationUnavailable while the store is away."""
        if self.is_away():
            raise CoordinationUnavailable("away")

    def recover(self) -> bool:
        """Ping the store and send missed bumps; True when it is available again. Blocks the thread."""
        if not self._is_down:
            return True
        try:
            self._store.ping()
            with self._lock:
                # From here on bumps go to the store itself, so that the list of missed ones gets shorter.
                self._is_catching_up = True
                missed = dict(self._missed)
            if missed:
                self._store.bump_epochs(list(missed))
                self._discard_missed(missed)
            if self._outbox is not None:
                self._outbox.relay(self._store)
        except (CoordinationUnavailable, DatabaseFault) as fault:
            self._on_still_down(fault)
            return False
        with self._lock:
            if self._missed:  # a renewal failed meanwhile: its epoch is not to be used yet
                return False
            self._is_down = self._is_catching_up = False
        log.info("coordination store is back", away_s=round(self._monotonic() - self._down_since_s, 1))
        return True

    def stop(self) -> None:
        self._retry_thread.stop()

    def is_away(self) -> bool:
        """Whether the store failed and has not recovered yet. Asks it nothing."""
        # While away only the recovery thread asks Redis: a dead Redis costs one timeout, not one for each call.
        if self._is_down:
            self._retry_thread.start()
        return self._is_down

    @contextmanager
    def _faults_recorded(self) -> Iterator[None]:
        """Suppresses CoordinationUnavailable: the statement after the block is the fallback."""
        try:
            yield
        except CoordinationUnavailable as fault:
            self._record_fault(fault)

    def _record_fault(self, fault: CoordinationUnavailable, missed: str | None = None) -> None:
        with self._lock:
            if missed is not None:
                self._missed[missed] = next(self._numbers)
            is_first, self._is_down = not self._is_down, True
            self._is_catching_up = False
            if is_first:
                self._down_since_s = self._logged_at_s = self._monotonic()
        if is_first:
            log.warning("coordination store unavailable", fault=str(fault))
        self._retry_thread.start()

    def _on_still_down(self, fault: Exception) -> None:
        now_s = self._monotonic()
        if now_s - self._logged_at_s >= LOG_EVERY_S:
            self._logged_at_s = now_s
            reason = str(fault) if isinstance(fault, CoordinationUnavailable) else type(fault).__name__
            log.warning("coordination store still unavailable", fault=reason)
        with self._lock:
            self._is_catching_up = False
            missed = dict(self._missed)
        if missed and self._outbox is not None:  # in the outbox they survive this process
            try:
                self._outbox.put(list(missed))
            except DatabaseFault as lost:
                log.warning("missed epochs not stored", names=len(missed), fault=type(lost).__name__)
            else:
                self._discard_missed(missed)

    def _discard_missed(self, missed: Mapping[str, int]) -> None:
        with self._lock:
            for name, number in missed.items():
                if self._missed.get(name) == number:  # a later renewal of the name is still to be sent
                    del self._missed[name]

    # --- limits of this process ---------------------------------------------------------------------------------------

    def _locally(self, count: Callable[[Rule, str], Admission], rule: Rule, key: str, units: int = 1) -> Admission:
        """Ask this process's own window. Its limit is the share, or the last known quota if that is less."""
        # Local windows also count what was admitted here before the last answer of Redis, which never counted it.
        share = rule.shared_among(self._processes)
        known = self._last_known_quota.of(rule, key)
        if known is None:
            return count(share, key)
        if known.left < min(units, share.limit):
            return Admission(share, False, known.left, self._closed_for_s(known), None)
        return msgspec.structs.replace(count(replace(share, limit=known.left), key), rule=share)

    def _closed_for_s(self, known: KnownQuota) -> int:
        return max(1, math.ceil(known.closed_until_s - self._monotonic()))
