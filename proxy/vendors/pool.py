"""Vendor sessions, shared by all calls with the same credentials and by no others."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import Any

from gateway.lib.background_tasks import BackgroundTasks
from proxy.protocol.secret_mask import SecretMask
from proxy.single_flight import SingleFlight
from proxy.vendors import errors
from proxy.vendors.bulkhead import Bulkhead
from proxy.vendors.circuits import Circuits
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.errors import Evidence, VendorProblem
from proxy.vendors.session import VendorSession
from proxy.vendors.transport import VendorTransport

# Past it, sessions that are not in use are closed. A round number: it bounds memory, not the calls.
MAX_SESSIONS = 2_000


class SessionPool:
    """One event loop. Calls for one key share one handshake; idle sessions are closed. Listeners may not block."""

    def __init__(
        self,
        transport: VendorTransport,
        *,
        idle_s: float,
        bulkhead: Bulkhead | None = None,
        circuits: Circuits | None = None,
    ) -> None:
        self.bulkhead = bulkhead or Bulkhead(calls=30, max_queued=100, wait_s=5.0)
        self.circuits = circuits or Circuits()
        self.on_tools_changed: Callable[[PoolKey], None] | None = None
        # Gets the tool whose answer contained a stored credential.
        self.on_secret_echoed: Callable[[PoolKey, str], None] | None = None
        self._transport = transport
        self._idle_s = idle_s
        self._sessions: OrderedDict[PoolKey, VendorSession] = OrderedDict()
        self._opening: SingleFlight[PoolKey, VendorSession] = SingleFlight()
        self._handshakes: set[asyncio.Task[Any]] = set()
        self._closing = BackgroundTasks()

    async def lease(self, destination: Destination, *, deadline: float) -> VendorSession:
        """The key's session, opened if there is none; nothing to give back. Raises: VendorProblem."""
        session = self._sessions.get(destination.key)
        if session is not None:
            self._sessions.move_to_end(destination.key)
            return session
        try:
            # The handshake has the vendor's own timeout: calls that join it do not inherit the first caller's deadline.
            async with asyncio.timeout_at(deadline):
                return await self._opening.run(destination.key, lambda: self._open(destination))
        except TimeoutError:
            raise errors.timeout() from None

    def evict(self, destination: Destination, session: VendorSession) -> None:
        """Drop `session`, but not a newer one under its key."""
        if self._sessions.get(destination.key) is session:
            del self._sessions[destination.key]

    def close_idle(self) -> None:
        """A session with a call in flight is not idle, however long the call runs."""
        edge = asyncio.get_running_loop().time() - self._idle_s
        for key, session in list(self._sessions.items()):
            if session.last_used_s < edge and not session.is_in_use:
                del self._sessions[key]
                self._close_later(session)

    async def aclose(self) -> None:
        self.on_tools_changed = self.on_secret_echoed = None  # listeners refer to the pool: a reference cycle
        sessions = list(self._sessions.values())
        self._sessions.clear()
        opening = list(self._handshakes)
        for task in opening:
            task.cancel()
        closing = [session.close() for session in sessions]
        await asyncio.gather(*closing, *opening, *self._closing, return_exceptions=True)

    async def _open(self, destination: Destination) -> VendorSession:
        task = asyncio.current_task()
        if task is not None:
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)
        deadline = asyncio.get_running_loop().time() + destination.timeout_s
        key = destination.key
        on_connected = partial(self.circuits.connected, key.vendor) if destination.fixed_address else None
        session = VendorSession(
            self._transport,
            *destination.open(),
            vendor=key.vendor,
            owner=key.org_id,
            has_own_address=not destination.fixed_address,
            on_connected=on_connected,
            on_tools_changed=partial(self._notify_tools_changed, key),
            secrets=SecretMask(destination.secrets()),
            on_secret_echoed=partial(self._notify_secret_echoed, key),
        )
        try:
            await session.initialize(deadline=deadline)
        except VendorProblem as problem:  # counted here: one failure, however many calls wait
            self.circuits.record(destination, problem.evidence)
            raise
        self.circuits.record(destination, Evidence.RESPONDED)
        session.last_used_s = asyncio.get_running_loop().time()
        self._sessions[key] = session
        self._evict_surplus(key)
        return session

    def _evict_surplus(self, newest: PoolKey) -> None:
        """Close the oldest sessions of the organization that holds most. Those in use stay, even past the maximum."""
        # FairShareCache evicts without a look at the entry: a session in use must stay, and one that goes is closed.
        if len(self._sessions) <= MAX_SESSIONS:
            return
        counts = Counter(key.org_id for key in self._sessions)
        unused: dict[uuid.UUID, deque[PoolKey]] = defaultdict(deque)
        for key, session in self._sessions.items():
            if not session.is_in_use and key != newest:
                unused[key.org_id].append(key)
        while unused and len(self._sessions) > MAX_SESSIONS:
            largest = max(unused, key=counts.__getitem__)
            self._close_later(self._sessions.pop(unused[largest].popleft()))
            counts[largest] -= 1
            if not unused[largest]:
                del unused[largest]

    def _notify_tools_changed(self, key: PoolKey) -> None:
        if self.on_tools_changed is not None:
            self.on_tools_changed(key)

    def _notify_secret_echoed(self, key: PoolKey, tool: str) -> None:
        if self.on_secret_echoed is not None:
            self.on_secret_echoed(key, tool)

    def _close_later(self, session: VendorSession) -> None:
        self._closing.start(session.close())
