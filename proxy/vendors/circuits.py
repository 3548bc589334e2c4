"""The circuits of one process: each call passes or is refused by them, and each result is counted in them.

A failed connection to the catalog's address counts for all organizations. A request without any answer may be the fault
of its content and counts for its credential only, so one organization cannot block another. docs/decisions/0023
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import structlog

from gateway.coordination.store import CoordinationStore, CoordinationUnavailable
from gateway.lib import clock
from gateway.lib.background_tasks import BackgroundTasks
from gateway.lib.bounded import put_newest
from proxy.vendors import errors, shared_circuits
from proxy.vendors.circuit import CLOSED, LONGEST_OPEN_S, Circuit, CircuitState
from proxy.vendors.destination import Destination
from proxy.vendors.errors import Evidence
from proxy.vendors.shared_circuits import SharedCircuit

log = structlog.get_logger(__name__)
Trials = tuple[tuple[str, int], ...]


class Circuits:
    """One event loop. Only circuits with a failure are kept: calls to working vendors look nothing up."""

    def __init__(
        self,
        store: CoordinationStore | None = None,
        *,
        trial_s: float,
        max_circuits: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`trial_s`: the timeout of connecting; for so long one trial keeps other calls from connecting.

        Past `max_circuits` the one that failed longest ago is dropped.
        """
        # Processes share open circuits through it: each joins an open one at its own first failure.
        self._store = store
        self._trial_s = trial_s
        self._max_circuits = max_circuits
        self._monotonic = monotonic
        self._circuits: OrderedDict[str, Circuit] = OrderedDict()
        self._tasks = BackgroundTasks()
        self._order = asyncio.Lock()

    @property
    def has_trouble(self) -> bool:
        return bool(self._circuits)

    def open_vendors(self) -> set[str]:
        """The vendors some of whose calls are refused now."""
        now_s = self._monotonic()
        names = (name for name, circuit in self._circuits.items() if circuit.state(now_s) is CircuitState.OPEN)
        return {shared_circuits.vendor_of(name) for name in names}

    def check(self, destination: Destination) -> None:
        """Raises: VendorProblem if a call may not pass now."""
        for name in _names(destination):
            circuit = self._circuits.get(name, CLOSED)
            if not circuit.may_pass(self._monotonic()):
                wait_s = math.ceil(circuit.wait_s(self._monotonic()))
                raise errors.circuit_open(wait_s)

    def enter(self, destination: Destination) -> Trials:
        """Let a call pass; its trials must go to `exit`. Raises: VendorProblem, and then nothing may be sent."""
        if not self._circuits:
            return ()
        self.check(destination)
        trials = []
        now_s = self._monotonic()
        connect_name, response_name = _names(destination)
        for name in (connect_name, response_name):
            circuit = self._circuits.get(name, CLOSED)
            if circuit.state(now_s) is CircuitState.HALF_OPEN:
                # A call on an open connection shows nothing about new connections, and may run for minutes. The
                # vendor's circuit is shared, so after `trial_s` another organization's call may try.
                until_s = math.inf if name == response_name else now_s + self._trial_s
                circuit = self._circuits[name] = circuit.trying(until_s)
                trials.append((name, circuit.trial))
        return tuple(trials)

    def exit(self, trials: Trials) -> None:
        """End the trials of a call, counted by `record` or not."""
        for name, trial in trials:
            circuit = self._circuits.get(name)
            if circuit is not None:
                self._circuits[name] = circuit.given_up(trial)

    def connected(self, vendor: str) -> None:
        """A connection to the catalog's address closes that circuit: it counts only connections."""
        if self._circuits:
            self._succeeded(shared_circuits.vendor_wide(vendor))

    def record(self, destination: Destination, evidence: Evidence) -> None:
        if evidence in (Evidence.NONE, Evidence.SENT_LATE) or (evidence is Evidence.RESPONDED and not self._circuits):
            return
        connect_name, response_name = _names(destination)
        if evidence is Evidence.CONNECT_FAILED:
            self._failed(connect_name)
        elif evidence is Evidence.NO_RESPONSE:
            if connect_name != response_name:
                self._succeeded(connect_name)  # a connection was made
            self._failed(response_name)
        else:
            self._succeeded(connect_name)
            self._succeeded(response_name)

    async def settled(self) -> None:
        await self._tasks.settled()

    def _failed(self, name: str) -> None:
        now_s = self._monotonic()
        before = self._circuits.get(name, CLOSED)
        after = before.failed(now_s)
        put_newest(self._circuits, name, after, self._max_circuits)
        if after.until_s is None:
            self._run_in_background(self._join(name))
        elif after.until_s != before.until_s:
            log.warning("circuit opened", circuit=name, failures=after.failures)
            now = clock.now()
            seen = SharedCircuit(after.failures, now, now + timedelta(seconds=after.until_s - now_s))
            self._run_in_background(self._publish(name, seen))

    def _succeeded(self, name: str) -> None:
        before = self._circuits.pop(name, CLOSED)
        if before.until_s is not None:
            log.info("circuit closed", circuit=name, failures=before.failures)
            self._run_in_background(self._publish(name, None))

    # --- other processes --------------------------------------------------------------------------------------------

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        if self._store is None:
            # A task that the end of the loop overtakes would leave the work without an end.
            work.close()
            return
        # In the background: a slow or failed store delays no call.
        self._tasks.start(self._run_in_order(work))

    async def _run_in_order(self, work: Coroutine[Any, Any, None]) -> None:
        async with self._order:  # writes keep the order of the changes
            try:
                await work
            except CoordinationUnavailable as fault:
                log.info("circuit not shared", fault=str(fault))

    async def _publish(self, name: str, seen: SharedCircuit | None) -> None:
        if self._store is not None:
            await asyncio.to_thread(shared_circuits.publish, self._store, name, seen)

    async def _join(self, name: str) -> None:
        if self._store is None:
            return
        # Where another process has opened the circuit, this one saves its own four further failures.
        seen = (await asyncio.to_thread(shared_circuits.published, self._store, [name])).get(name)
        left_s = (seen.until - clock.now()).total_seconds() if seen else 0.0
        known = self._circuits.get(name)
        if seen is not None and known is not None and 0 < left_s <= LONGEST_OPEN_S:
            self._circuits[name] = known.joined(seen.failures, self._monotonic() + left_s)


def _names(destination: Destination) -> tuple[str, str]:
    """The circuit for connections and the one for answers; the same one if the credential names the address."""
    key = destination.key
    own = shared_circuits.of_credential(key.vendor, key.credential_id)
    return (shared_circuits.vendor_wide(key.vendor) if destination.fixed_address else own), own
