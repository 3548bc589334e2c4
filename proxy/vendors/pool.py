"""Vendor sessions, shared by all calls with the same credentials and by no others."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from django.conf import settings

from gateway.coordination.store import CoordinationStore
from gateway.lib.background_tasks import BackgroundTasks
from gateway.lib.fair_share_cache import FairShareCache
from proxy.protocol.item_kinds import Capability
from proxy.single_flight import SingleFlight
from proxy.vendors import errors
from proxy.vendors.bulkhead import Bulkhead
from proxy.vendors.circuits import Circuits
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.era_verdicts import EraVerdicts
from proxy.vendors.errors import Evidence, VendorProblem
from proxy.vendors.opening import Opener
from proxy.vendors.session import CLOSE_DEADLINE_S, VendorSession
from proxy.vendors.transport import VendorTransport

# A session without an id costs the vendor nothing. It ends all the same: a vendor that was replaced by a newer release
# may refuse the version that was negotiated.
STATELESS_IDLE_S = 3_600.0
CLOSED_AT_ONCE = 32  # sessions; closing must not take the connections from calls
_PARK_ATTEMPTS = 8  # sessions that cannot be parked yet and are passed over at one lease


class SessionPool:
    """One event loop. Calls for one key share one handshake; idle sessions are closed. Listeners may not block.

    Sessions that were not used for long are parked: they keep their id and what was negotiated, so that the next
    request needs no handshake. docs/decisions/0051
    """

    def __init__(
        self,
        transport: VendorTransport,
        *,
        idle_s: float,
        max_sessions: int,
        max_awake: int,
        bulkhead: Bulkhead,
        circuits: Circuits,
        verdicts: EraVerdicts | None = None,
    ) -> None:
        """Without `verdicts` vendors are spoken to in the earlier revisions."""
        self.bulkhead, self.circuits = bulkhead, circuits
        self.on_tools_changed: Callable[[PoolKey], None] | None = None
        self.on_items_changed: Callable[[PoolKey, Capability], None] | None = None
        self.on_resource_updated: Callable[[PoolKey, str], None] | None = None
        self.on_handshake: Callable[[PoolKey, frozenset[str]], None] | None = None  # gets what the vendor declared
        # Gets the tool whose answer contained a stored credential.
        self.on_secret_echoed: Callable[[PoolKey, str], None] | None = None
        self._transport = transport
        self._verdicts = verdicts
        self._idle_s = idle_s
        self._max_awake = max_awake
        self._sessions: FairShareCache[PoolKey, VendorSession] = FairShareCache(
            max_entries=max_sessions, on_drop=self._end
        )
        self._awake: OrderedDict[PoolKey, VendorSession] = OrderedDict()  # least recently leased first
        self._on_connected: dict[str, Callable[[], None]] = {}  # by vendor of the catalog
        self._opening: SingleFlight[PoolKey, VendorSession] = SingleFlight()
        self._handshakes: set[asyncio.Task[Any]] = set()
        self._closing = BackgroundTasks()
        self._closers = asyncio.Semaphore(CLOSED_AT_ONCE)

    @property
    def session_count(self) -> int:
        return len(self._sessions)

    async def lease(self, destination: Destination, *, deadline: float) -> VendorSession:
        """The key's session, opened if there is none; nothing to give back. Raises: VendorProblem."""
        session = self._sessions.get(destination.key)
        if session is not None:
            # An equal key may have a newer destination: of a credential that was sealed again under another data key.
            session.destination = destination
            self._keep_awake(destination.key, session)
            return session
        try:
            # The handshake has the vendor's own timeout: calls that join it do not inherit the first caller's deadline.
            async with asyncio.timeout_at(deadline):
                return await self._opening.run(destination.key, lambda: self._open(destination))
        except TimeoutError:
            raise errors.timeout() from None

    def evict(self, destination: Destination, session: VendorSession, *, is_of_other_era: bool = False) -> None:
        """Drop `session`, which the vendor does not know, but not a newer one under its key.

        `is_of_other_era`: the vendor is asked again which revision it speaks.
        """
        if is_of_other_era and self._verdicts is not None:
            self._verdicts.give_up(destination.key, session.verdict)
        if self._sessions.peek(destination.key) is session:
            session.is_lost = True
            self._sessions.pop(destination.key)

    def close_idle(self) -> None:
        """End sessions that were idle for long, and park those that cost the vendor nothing.

        A session with a call in flight is not idle, however long the call runs.
        """
        now_s = asyncio.get_running_loop().time()
        edge, stateless_edge = now_s - self._idle_s, now_s - max(self._idle_s, STATELESS_IDLE_S)
        for key in list(self._sessions):
            session = self._sessions.peek(key)
            if session is not None and self._is_outdated(session):
                self._sessions.pop(key)  # so that the vendor is asked again; calls under way end on it
                continue
            if session is None or session.last_used_s >= edge or session.is_in_use:
                continue
            if session.needs_closing or session.last_used_s < stateless_edge:
                self._sessions.pop(key)
            elif key in self._awake and session.park():
                del self._awake[key]

    async def aclose(self) -> None:
        """Waits CLOSE_DEADLINE_S at most for vendors; they end the other sessions themselves."""
        opening = list(self._handshakes)
        for task in opening:
            task.cancel()
        for key in list(self._sessions):
            self._sessions.pop(key)
        # Listeners refer to the pool: reference cycles.
        self.on_tools_changed = self.on_items_changed = self.on_resource_updated = None
        self.on_handshake = self.on_secret_echoed = None
        self._sessions = FairShareCache()
        if self._closing:
            await asyncio.wait(set(self._closing), timeout=CLOSE_DEADLINE_S)
        for task in self._closing:
            task.cancel()
        await asyncio.gather(*opening, *self._closing, return_exceptions=True)

    async def _open(self, destination: Destination) -> VendorSession:
        task = asyncio.current_task()
        if task is not None:
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)
        deadline = asyncio.get_running_loop().time() + destination.timeout_s
        key = destination.key
        on_connected = self._on_connected_of(key.vendor) if destination.fixed_address else None
        opener = Opener(self._transport, destination, self, on_connected)
        try:
            session = await opener.open(self._verdicts, deadline=deadline)
        except VendorProblem as problem:  # counted here: one failure, however many calls wait
            self.circuits.record(destination, problem.evidence)
            raise
        if session.has_asked:  # a vendor that is known to need no handshake has shown nothing yet
            self.circuits.record(destination, Evidence.RESPONDED)
        session.last_used_s = asyncio.get_running_loop().time()
        self.keep(key, session)
        if self.on_handshake is not None:
            self.on_handshake(destination.list_key, session.capabilities)
        return session

    def keep(self, key: PoolKey, session: VendorSession) -> None:
        """Lease the initialized session from now on."""
        self._sessions.put(key, session, owner=key.org_id, size_bytes=0)
        self._keep_awake(key, session)

    def _keep_awake(self, key: PoolKey, session: VendorSession) -> None:
        """Past the maximum, park what was leased longest ago. Sessions in use stay awake, even past it."""
        self._awake[key] = session
        self._awake.move_to_end(key)
        for _ in range(_PARK_ATTEMPTS):
            if len(self._awake) <= self._max_awake:
                return
            oldest_key, oldest = next(iter(self._awake.items()))
            if oldest is not session and oldest.park():  # this one is about to be used
                del self._awake[oldest_key]
            else:
                self._awake.move_to_end(oldest_key)

    def _is_outdated(self, session: VendorSession) -> bool:
        """Whether the vendor may speak a newer revision by now. A session with an id may hold a person's work."""
        if self._verdicts is None or session.verdict is None or session.needs_closing:
            return False
        return self._verdicts.is_outdated(session.verdict)

    def _on_connected_of(self, vendor: str) -> Callable[[], None]:
        found = self._on_connected.get(vendor)
        if found is None:
            found = self._on_connected[vendor] = partial(self.circuits.connected, vendor)
        return found

    # --- SessionListener ----------------------------------------------------------------------------------------------

    def tools_changed(self, key: PoolKey) -> None:
        if self.on_tools_changed is not None:
            self.on_tools_changed(key)

    def era_doubted(self, session: VendorSession) -> None:
        verdict, destination = session.verdict, session.destination
        if self._verdicts is None or verdict is None or destination is None:
            return
        if self._verdicts.may_doubt(verdict):
            self.evict(destination, session, is_of_other_era=True)

    def items_changed(self, key: PoolKey, capability: Capability) -> None:
        if self.on_items_changed is not None:
            self.on_items_changed(key, capability)

    def resource_updated(self, key: PoolKey, address: str) -> None:
        if self.on_resource_updated is not None:
            self.on_resource_updated(key, address)

    def secret_echoed(self, key: PoolKey, tool: str) -> None:
        if self.on_secret_echoed is not None:
            self.on_secret_echoed(key, tool)

    def responded(self, destination: Destination) -> None:
        self.circuits.record(destination, Evidence.RESPONDED)

    def ended_session_unused(self, session: VendorSession) -> None:
        self._close_later(session)

    def _end(self, session: VendorSession) -> None:
        """A session left the table: it is closed once no call runs on it."""
        if session.destination is not None and self._awake.get(session.destination.key) is session:
            del self._awake[session.destination.key]
        session.is_ended = True
        if not session.is_in_use:
            self._close_later(session)

    def _close_later(self, session: VendorSession) -> None:
        if session.needs_closing:
            self._closing.start(self._close(session))

    async def _close(self, session: VendorSession) -> None:
        async with self._closers:
            await session.close()


def configured_pool(
    transport: VendorTransport, store: CoordinationStore | None, verdicts: EraVerdicts | None = None
) -> SessionPool:
    """A pool under the bounds of the settings. Circuits are shared through `store`."""
    return SessionPool(
        transport,
        idle_s=settings.VENDOR_SESSION_IDLE_S,
        max_sessions=settings.VENDOR_SESSIONS,
        max_awake=settings.VENDOR_SESSIONS_AWAKE,
        bulkhead=Bulkhead(
            calls=settings.VENDOR_CALLS_PER_ORGANIZATION,
            max_queued=settings.VENDOR_CALLS_QUEUED,
            wait_s=settings.VENDOR_CALLS_WAIT_S,
        ),
        circuits=Circuits(store, trial_s=settings.VENDOR_CONNECT_TIMEOUT_S, max_circuits=settings.VENDOR_CIRCUITS),
        verdicts=verdicts,
    )
