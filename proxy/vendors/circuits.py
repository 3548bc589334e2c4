"""The circuits of one process: which calls are let through to a vendor, and what is learned from each.

A way to a vendor that nobody could reach is the same for all organizations if the address is the catalog's own; a call
that was sent and not answered may be the fault of what it carried, and so counts for its credential only. Nothing that
one organization stores or sends holds back the calls of another.   docs/decisions/0008
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import structlog

from gateway.coordination.store import CoordinationStore, CoordinationUnavailable
from gateway.lib import clock
from proxy.vendors import circuit_board, errors
from proxy.vendors.circuit import CLOSED, LONGEST_OPEN_S, Circuit, CircuitState
from proxy.vendors.circuit_board import PostedCircuit
from proxy.vendors.errors import Sign

if TYPE_CHECKING:
    from proxy.vendors.pool import Destination

log = structlog.get_logger(__name__)
MAX_CIRCUITS = 5_000
Trials = tuple[tuple[str, int], ...]


class Circuits:
    """Bounded. Only circuits with a failure are kept, so that in good times there is nothing to look up.

    With a `store`, what opens here is shown to other processes, and a process that meets a failure looks whether
    another one has found more. One event loop.
    """

    def __init__(
        self,
        store: CoordinationStore | None = None,
        *,
        trial_s: float = 5.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`trial_s`: how long connecting may take, and so for how long one call keeps others from trying to connect."""
        self._store = store
        self._trial_s = trial_s
        self._monotonic = monotonic
        self._circuits: OrderedDict[str, Circuit] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()

    @property
    def has_trouble(self) -> bool:
        """Whether any circuit is not as new."""
        return bool(self._circuits)

    def check(self, destination: Destination) -> None:
        """Raises: VendorProblem if a call would not be let through now."""
        for name in _names(destination):
            circuit = self._circuits.get(name, CLOSED)
            if not circuit.may_pass(self._monotonic()):
                wait_s = math.ceil(circuit.wait_s(self._monotonic()))
                raise errors.held_back(wait_s)

    def enter(self, destination: Destination) -> Trials:
        """Let a call through; what it is the trial of has to be given back to `leave`.

        Raises: VendorProblem, and then nothing is to be sent.
        """
        if not self._circuits:
            return ()
        self.check(destination)
        trials = []
        now_s = self._monotonic()
        reached, answered = _names(destination)
        for name in (reached, answered):
            circuit = self._circuits.get(name, CLOSED)
            if circuit.state(now_s) is CircuitState.HALF_OPEN:
                # A call may last for minutes, and on an old connection it says nothing of new ones until it ends: one
                # organization's must not keep all others away for so long.
                until_s = math.inf if name == answered else now_s + self._trial_s
                circuit = self._circuits[name] = circuit.trying(until_s)
                trials.append((name, circuit.trial))
        return tuple(trials)

    def leave(self, trials: Trials) -> None:
        """The call is over, whatever `note` was told of it."""
        for name, trial in trials:
            circuit = self._circuits.get(name)
            if circuit is not None:
                self._circuits[name] = circuit.given_up(trial)

    def connected(self, vendor: str) -> None:
        """A connection was made to the catalog's own address of this vendor: that is all that its circuit is about."""
        if self._circuits:
            self._answered(circuit_board.vendor_wide(vendor))

    def note(self, destination: Destination, sign: Sign) -> None:
        """What one attempt says about the way to the vendor."""
        if sign in (Sign.NOTHING, Sign.SENT_LATE) or (sign is Sign.ANSWERED and not self._circuits):
            return
        reached, answered = _names(destination)
        if sign is Sign.UNREACHED:
            self._failed(reached)
        elif sign is Sign.UNANSWERED:
            if reached != answered:
                self._answered(reached)  # a connection was made
            self._failed(answered)
        else:
            self._answered(reached)
            self._answered(answered)

    async def settled(self) -> None:
        """Everything so far is written and read."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def aclose(self) -> None:
        """Finish what has begun."""
        await self.settled()

    def _failed(self, name: str) -> None:
        now_s = self._monotonic()
        before = self._circuits.get(name, CLOSED)
        after = self._circuits[name] = before.failed(now_s)
        self._circuits.move_to_end(name)
        if len(self._circuits) > MAX_CIRCUITS:
            self._circuits.popitem(last=False)
        if after.until_s is None:
            self._soon(self._join(name))
        elif after.until_s != before.until_s:
            log.warning("circuit opened", circuit=name, failures=after.failures)
            now = clock.now()
            seen = PostedCircuit(after.failures, now, now + timedelta(seconds=after.until_s - now_s))
            self._soon(self._post(name, seen))

    def _answered(self, name: str) -> None:
        before = self._circuits.pop(name, CLOSED)
        if before.until_s is not None:
            log.info("circuit closed", circuit=name, failures=before.failures)
            self._soon(self._post(name, None))

    # --- other processes --------------------------------------------------------------------------------------------

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Behind the call's back: a store that is slow, or away, holds nobody up."""
        task = asyncio.ensure_future(self._in_turn(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _in_turn(self, work: Coroutine[Any, Any, None]) -> None:
        async with self._turn:  # what opened last must be written last
            try:
                await work
            except CoordinationUnavailable as fault:
                log.info("circuit not shared", fault=str(fault))

    async def _post(self, name: str, seen: PostedCircuit | None) -> None:
        if self._store is not None:
            await asyncio.to_thread(circuit_board.post, self._store, name, seen)

    async def _join(self, name: str) -> None:
        """Another process may have found out already: then this one does not send four more calls to see for itself."""
        if self._store is None:
            return
        seen = (await asyncio.to_thread(circuit_board.posted, self._store, [name])).get(name)
        left_s = (seen.until - clock.now()).total_seconds() if seen else 0.0
        known = self._circuits.get(name)
        if seen is not None and known is not None and 0 < left_s <= LONGEST_OPEN_S:
            self._circuits[name] = known.joined(seen.failures, self._monotonic() + left_s)


def _names(destination: Destination) -> tuple[str, str]:
    """The circuit of connections, and the one of answers; one and the same at an address of the credential's own."""
    key = destination.key
    own = circuit_board.of_credential(key.vendor, key.credential_id)
    return (circuit_board.vendor_wide(key.vendor) if destination.fixed_address else own), own
