"""What happens while the shared store is away: limits go to this process's share, epochs become unknown.

Never unlimited and never a total outage: D23. One failure is enough: from then on nothing asks the store but one thread
(`recovery`), so that a dead Redis costs one timeout and not one per call. When it answers again, epoch bumps that were
missed meanwhile, here or in other processes, are sent before any of its epochs is believed. What is written while they
are sent goes to the store itself: however much is written, catching up has an end.

One late answer is a failure too, so it opens no new window: who had less left than the share gets no more than that,
and what was admitted here counts the next time the store is away.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import structlog
from django.db import Error as DatabaseFault

from gateway.coordination.memory_store import MemoryLimiter
from gateway.coordination.recovery import Recovery
from gateway.coordination.remainders import Remainder, Remainders
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission, CoordinationStore, CoordinationUnavailable

log = structlog.get_logger(__name__)
LOG_EVERY_S = 5.0


class Outbox(Protocol):
    """The interface to the epoch bumps that the store has not taken, of all processes."""

    def put(self, names: Sequence[str]) -> None:
        """Keep the names. Raises: django.db.Error."""
        ...

    def relay(self, store: CoordinationStore) -> int:
        """Send all that is kept; how many. Raises: CoordinationUnavailable; django.db.Error."""
        ...


class DegradingStore:
    """Implements CoordinationStore around another one. `bump_epochs` and `ping` fail at once while it is away."""

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
        self._remainders = Remainders(processes, monotonic)
        self._lock = threading.Lock()
        self._is_away = False
        self._is_catching_up = False  # the store answers again: it is written to, and not believed yet
        self._away_since_s = self._logged_at_s = 0.0
        self._missed: dict[str, int] = {}  # renewals that are not in the outbox yet, and when each was missed last
        self._numbers = itertools.count()
        self._recovery = Recovery(self.recover, "coordination-recovery")

    # --- the store ----------------------------------------------------------------------------------------------------

    async def admit(self, rule: Rule, key: str, epochs: Sequence[str]) -> Admission:
        """See CoordinationStore; `epochs` is None while the store is away."""
        if not self._is_away or not self._away():  # every call comes by: the usual case asks no method
            try:
                return self._remainders.note(await self._store.admit(rule, key, epochs), key)
            except CoordinationUnavailable as fault:
                self._note(fault)
        return self._locally(self._local.hit, rule, key)

    async def charge(self, rule: Rule, key: str, units: int) -> Admission:
        """See CoordinationStore; `epochs` is None while the store is away."""
        if not self._away():
            try:
                return self._remainders.note(await self._store.charge(rule, key, units), key)
            except CoordinationUnavailable as fault:
                self._note(fault)
        return self._locally(partial(self._local.hit, units=units), rule, key, units)

    def hit(self, rule: Rule, key: str) -> Admission:
        """See CoordinationStore."""
        if not self._away():
            try:
                return self._remainders.note(self._store.hit(rule, key), key)
            except CoordinationUnavailable as fault:
                self._note(fault)
        return self._locally(self._local.hit, rule, key)

    def peek(self, rule: Rule, key: str) -> Admission:
        """See CoordinationStore."""
        if not self._away():
            try:
                return self._remainders.note(self._store.peek(rule, key), key)
            except CoordinationUnavailable as fault:
                self._note(fault)
        return self._locally(self._local.peek, rule, key)

    async def read_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """See CoordinationStore; None while the store is away."""
        if not self._away():
            try:
                return await self._store.read_epochs(names)
            except CoordinationUnavailable as fault:
                self._note(fault)
        return None

    async def begin_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """See CoordinationStore; None while the store is away."""
        if not self._away():
            try:
                return await self._store.begin_epochs(names)
            except CoordinationUnavailable as fault:
                self._note(fault)
        return None

    async def renew_epoch(self, name: str) -> None:
        """See CoordinationStore. One that the store did not take is made up for before its epochs are believed."""
        if not self._away() or self._is_catching_up:
            try:
                await self._store.renew_epoch(name)
            except CoordinationUnavailable as fault:
                self._note(fault, missed=name)
        else:
            with self._lock:
                self._missed[name] = next(self._numbers)
                self._is_away = True  # it may have come back since it was asked for
            self._recovery.begin()

    def bump_epochs(self, names: Sequence[str]) -> None:
        """See CoordinationStore. Raises: CoordinationUnavailable, at once while the store is away: see `outbox`."""
        if not self._is_catching_up:
            self.require()
        try:
            self._store.bump_epochs(names)
        except CoordinationUnavailable as fault:
            self._note(fault)
            raise

    def put_health(self, vendor: str, state: bytes, ttl_s: int) -> None:
        """See CoordinationStore; dropped while the store is away: the next probe writes again."""
        if not self._away():
            try:
                self._store.put_health(vendor, state, ttl_s)
            except CoordinationUnavailable as fault:
                self._note(fault)

    def health(self, vendors: Sequence[str]) -> Mapping[str, bytes]:
        """See CoordinationStore; nothing is known while the store is away."""
        if not self._away():
            try:
                return self._store.health(vendors)
            except CoordinationUnavailable as fault:
                self._note(fault)
        return {}

    def ping(self) -> None:
        """See CoordinationStore. Answers at once while the store is away."""
        self.require()
        try:
            self._store.ping()
        except CoordinationUnavailable as fault:
            self._note(fault)
            raise

    async def aclose(self) -> None:
        """See CoordinationStore."""
        await self._store.aclose()

    # --- away and back ------------------------------------------------------------------------------------------------

    def require(self) -> None:
        """Raises: CoordinationUnavailable while the store is away."""
        if self._away():
            raise CoordinationUnavailable("away")

    def recover(self) -> bool:
        """Test the store once and send the missed bumps. True: it is believed again. Blocks: for its own thread."""
        if not self._is_away:
            return True
        try:
            self._store.ping()
            with self._lock:
                self._is_catching_up = True
                missed = dict(self._missed)
            if missed:
                self._store.bump_epochs(list(missed))
                self._forget(missed)
            if self._outbox is not None:
                self._outbox.relay(self._store)
        except (CoordinationUnavailable, DatabaseFault) as fault:
            self._still_away(fault)
            return False
        with self._lock:
            if self._missed:  # a write has ended since
                return False
            self._is_away = self._is_catching_up = False
        log.info("coordination store is back", away_s=round(self._monotonic() - self._away_since_s, 1))
        return True

    def stop(self) -> None:
        """End the thread that tests the store."""
        self._recovery.stop()

    def _away(self) -> bool:
        if self._is_away:
            self._recovery.begin()
        return self._is_away

    def _note(self, fault: CoordinationUnavailable, missed: str | None = None) -> None:
        with self._lock:
            if missed is not None:
                self._missed[missed] = next(self._numbers)
            is_news, self._is_away = not self._is_away, True
            self._is_catching_up = False
            if is_news:
                self._away_since_s = self._logged_at_s = self._monotonic()
        if is_news:
            log.warning("coordination store unavailable", fault=str(fault))
        self._recovery.begin()

    def _still_away(self, fault: Exception) -> None:
        """Missed renewals go where they outlive this process; the log hears of it every few seconds."""
        now_s = self._monotonic()
        if now_s - self._logged_at_s >= LOG_EVERY_S:
            self._logged_at_s = now_s
            reason = str(fault) if isinstance(fault, CoordinationUnavailable) else type(fault).__name__
            log.warning("coordination store still unavailable", fault=reason)
        with self._lock:
            self._is_catching_up = False
            missed = dict(self._missed)
        if missed and self._outbox is not None:
            try:
                self._outbox.put(list(missed))
            except DatabaseFault as lost:
                log.warning("missed epochs not stored", names=len(missed), fault=type(lost).__name__)
            else:
                self._forget(missed)

    def _forget(self, missed: Mapping[str, int]) -> None:
        """Forget exactly these: later bumps, also under the same name, are still to be sent."""
        with self._lock:
            for name, number in missed.items():
                if self._missed.get(name) == number:
                    del self._missed[name]

    # --- limits of this process ---------------------------------------------------------------------------------------

    def _locally(self, ask: Callable[[Rule, str], Admission], rule: Rule, key: str, units: int = 1) -> Admission:
        """The answer of this process's own window, which holds the share or what the store said was left, if less.

        The window counts what was admitted here since before the store said so, too: the store never knew of it.
        """
        share = rule.shared_among(self._processes)
        said = self._remainders.of(rule, key)
        if said is None:
            return ask(share, key)
        if said.left < min(units, share.limit):
            return Admission(share, False, said.left, self._closed_for_s(said), None)
        return replace(ask(replace(share, limit=said.left), key), rule=share)

    def _closed_for_s(self, said: Remainder) -> int:
        """Whole seconds until the store may admit again."""
        return max(1, math.ceil(said.closed_until_s - self._monotonic()))
