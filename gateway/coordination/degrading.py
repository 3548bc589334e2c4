"""What happens while the shared store is away: limits go to this process's share, epochs become unknown.

Never unlimited and never a total outage: D23. After a failure the store is left alone for a few seconds, so that a
dead Redis costs one timeout and not one per call. One late answer is a failure too, so it opens no new window: who had
less left than the share gets no more than that, and what was admitted here counts the next time the store is away.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import structlog

from gateway.coordination.memory_store import MemoryLimiter
from gateway.coordination.remainders import Remainder, Remainders
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission, CoordinationStore, CoordinationUnavailable

log = structlog.get_logger(__name__)
RETRY_AFTER_S = 5.0


class DegradingStore:
    """Implements CoordinationStore around another one. `bump_epochs` and `ping` still fail loudly."""

    def __init__(
        self, store: CoordinationStore, *, processes: int, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._processes = processes
        self._monotonic = monotonic
        self._away_until = 0.0
        self._unsent: dict[str, None] = {}
        self._local = MemoryLimiter(lambda: int(monotonic() * 1000))
        self._remainders = Remainders(processes, monotonic)

    async def admit(self, rule: Rule, key: str, epochs: Sequence[str]) -> Admission:
        """See CoordinationStore; `epochs` is None while the store is away."""
        if self._monotonic() >= self._away_until:
            try:
                self._resend()
                return self._remainders.note(await self._store.admit(rule, key, epochs), key)
            except CoordinationUnavailable as fault:
                self._note(fault)
        return self._locally(self._local.hit, rule, key)

    def hit(self, rule: Rule, key: str) -> Admission:
        """See CoordinationStore."""
        if self._monotonic() >= self._away_until:
            try:
                return self._remainders.note(self._store.hit(rule, key), key)
            except CoordinationUnavailable as fault:
                self._note(fault)
        return self._locally(self._local.hit, rule, key)

    def peek(self, rule: Rule, key: str) -> Admission:
        """See CoordinationStore."""
        if self._monotonic() >= self._away_until:
            try:
                return self._remainders.note(self._store.peek(rule, key), key)
            except CoordinationUnavailable as fault:
                self._note(fault)
        return self._locally(self._local.peek, rule, key)

    async def read_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """See CoordinationStore; None while the store is away."""
        if self._monotonic() >= self._away_until:
            try:
                return await self._store.read_epochs(names)
            except CoordinationUnavailable as fault:
                self._note(fault)
        return None

    def bump_epochs(self, names: Sequence[str]) -> None:
        """See CoordinationStore. A bump that finds the store away is sent again once it is back.

        Meanwhile nobody trusts an epoch, and no cache entry outlives its maximum age (proxy.snapshot), so a process
        that dies with unsent bumps delays a revocation by that age at most.
        """
        wanted = [*self._unsent, *names]
        try:
            self._store.bump_epochs(wanted)
            self._unsent.clear()
        except CoordinationUnavailable as fault:
            self._unsent.update(dict.fromkeys(names))
            self._note(fault)

    def put_health(self, vendor: str, state: bytes, ttl_s: int) -> None:
        """See CoordinationStore; dropped while the store is away: the next probe writes again."""
        try:
            self._store.put_health(vendor, state, ttl_s)
        except CoordinationUnavailable as fault:
            self._note(fault)

    def health(self, vendors: Sequence[str]) -> Mapping[str, bytes]:
        """See CoordinationStore; nothing is known while the store is away."""
        try:
            return self._store.health(vendors)
        except CoordinationUnavailable as fault:
            self._note(fault)
            return {}

    def ping(self) -> None:
        """See CoordinationStore."""
        self._store.ping()

    async def aclose(self) -> None:
        """See CoordinationStore."""
        await self._store.aclose()

    def _locally(self, ask: Callable[[Rule, str], Admission], rule: Rule, key: str) -> Admission:
        """The answer of this process's own window, which holds the share or what the store said was left, if less.

        The window counts what was admitted here since before the store said so, too: the store never knew of it.
        """
        share = rule.shared_among(self._processes)
        said = self._remainders.of(rule, key)
        if said is None:
            return ask(share, key)
        if said.left == 0:
            return Admission(share, False, 0, self._closed_for_s(said), None)
        return replace(ask(replace(share, limit=said.left), key), rule=share)

    def _closed_for_s(self, said: Remainder) -> int:
        """Whole seconds until the store may admit again: when it said so, but not before it is asked again."""
        return max(1, math.ceil(max(said.closed_until_s, self._away_until) - self._monotonic()))

    def _resend(self) -> None:
        if self._unsent:
            self.bump_epochs(())

    def _note(self, fault: CoordinationUnavailable) -> None:
        if self._monotonic() >= self._away_until:
            log.warning("coordination store unavailable", fault=str(fault), retry_after_s=RETRY_AFTER_S)
        self._away_until = self._monotonic() + RETRY_AFTER_S
