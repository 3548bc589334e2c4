"""Vendor sessions, shared by every call with the same credentials and by no other."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from proxy.protocol.secret_mask import SecretMask
from proxy.single_flight import SingleFlight
from proxy.vendors import errors
from proxy.vendors.bulkhead import Bulkhead
from proxy.vendors.circuits import Circuits
from proxy.vendors.errors import Sign, VendorProblem
from proxy.vendors.session import VendorSession
from proxy.vendors.transport import VendorTransport

MAX_SESSIONS = 2_000


@dataclass(frozen=True, slots=True, eq=False)
class PoolKey:
    """Who shares a session: organization, vendor, credential and exactly these headers at this address. Spec: D104

    `digest` is made of all of it, and is all that is compared: keys are looked up several times a call.
    """

    org_id: uuid.UUID
    vendor: str
    credential_id: uuid.UUID
    digest: bytes

    @classmethod
    def of(
        cls, org_id: uuid.UUID, vendor: str, credential_id: uuid.UUID, url: str, headers: Mapping[str, str]
    ) -> PoolKey:
        """The key of one credential; a replaced one has another digest."""
        whose = (org_id.hex, vendor, credential_id.hex, url)
        parts = "\0".join([*whose, *(f"{name}\0{headers[name]}" for name in sorted(headers))])
        return cls(org_id, vendor, credential_id, hashlib.sha256(parts.encode()).digest())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PoolKey) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a session goes. `open` gives the address and the headers, which are the credential: only to open one.

    `open` raises VendorProblem. `fixed_address`: it is the catalog's, and no organization had a say in it. `timeout_s`
    is how long the vendor may take for one answer. `secrets` gives what must not be read in its answers; it raises as
    `open` does.
    """

    key: PoolKey
    open: Callable[[], tuple[str, Mapping[str, str]]]
    fixed_address: bool = False
    timeout_s: float = 15.0
    secrets: Callable[[], Iterable[str]] = tuple

    def __repr__(self) -> str:
        return f"Destination({self.key.vendor!r})"


class SessionPool:
    """Bounded; one handshake per key however many wait for it; idle sessions are closed. One event loop.

    `bulkhead` and `circuits` bound what is sent on sessions of this pool (proxy.vendors.send). `on_tools_changed` is
    told whenever a vendor says on one of them that its tools changed, `on_secret_echoed` by which tool of a vendor a
    stored credential came back; both must return at once.
    """

    def __init__(
        self,
        transport: VendorTransport,
        *,
        idle_s: float,
        bulkhead: Bulkhead | None = None,
        circuits: Circuits | None = None,
    ) -> None:
        self.bulkhead = bulkhead or Bulkhead(calls=30, waiting=100, wait_s=5.0)
        self.circuits = circuits or Circuits()
        self.on_tools_changed: Callable[[PoolKey], None] | None = None
        self.on_secret_echoed: Callable[[PoolKey, str], None] | None = None
        self._transport = transport
        self._idle_s = idle_s
        self._sessions: OrderedDict[PoolKey, VendorSession] = OrderedDict()
        self._opening: SingleFlight[PoolKey, VendorSession] = SingleFlight()
        self._handshakes: set[asyncio.Task[Any]] = set()
        self._closing: set[asyncio.Task[None]] = set()

    async def lease(self, destination: Destination, *, deadline: float) -> VendorSession:
        """The key's session, opened if there is none. Nothing to give back: sessions are shared.

        Opening has the vendor's own time: a call that joins a handshake inherits no deadline of others.
        Raises: VendorProblem.
        """
        session = self._sessions.get(destination.key)
        if session is not None:
            self._sessions.move_to_end(destination.key)
            return session
        try:
            async with asyncio.timeout_at(deadline):
                return await self._opening.run(destination.key, lambda: self._open(destination))
        except TimeoutError:
            raise errors.timeout() from None

    def evict(self, destination: Destination, session: VendorSession) -> None:
        """Forget `session`; another one that took its place meanwhile stays."""
        if self._sessions.get(destination.key) is session:
            del self._sessions[destination.key]

    def close_idle(self) -> None:
        """Close sessions nobody used for a while. A call may run for longer than that: its session is in use."""
        edge = asyncio.get_running_loop().time() - self._idle_s
        for key, session in list(self._sessions.items()):
            if session.last_used_s < edge and not session.is_in_use:
                del self._sessions[key]
                self._close_later(session)

    async def aclose(self) -> None:
        """Close every session."""
        self.on_tools_changed = self.on_secret_echoed = (
            None  # listeners hold the pool: a ring that only garbage collection would part
        )
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
            on_tools_changed=partial(self._note_change, key),
            secrets=SecretMask(destination.secrets()),
            on_secret_echoed=partial(self._note_echo, key),
        )
        try:
            await session.initialize(deadline=deadline)
        except VendorProblem as problem:  # told here: however many wait for this handshake, it failed once
            self.circuits.note(destination, problem.sign)
            raise
        self.circuits.note(destination, Sign.ANSWERED)
        session.last_used_s = asyncio.get_running_loop().time()
        self._sessions[key] = session
        self._make_room(key)
        return session

    def _make_room(self, newest: PoolKey) -> None:
        """Close the session used longest ago of the organization that holds most, so that none displaces another's.

        While calls run on all of them there are more: none ends for another.
        """
        if len(self._sessions) <= MAX_SESSIONS:
            return
        held = Counter(key.org_id for key in self._sessions)
        unused: dict[uuid.UUID, deque[PoolKey]] = defaultdict(deque)
        for key, session in self._sessions.items():
            if not session.is_in_use and key != newest:
                unused[key.org_id].append(key)
        while unused and len(self._sessions) > MAX_SESSIONS:
            most = max(unused, key=held.__getitem__)
            self._close_later(self._sessions.pop(unused[most].popleft()))
            held[most] -= 1
            if not unused[most]:
                del unused[most]

    def _note_change(self, key: PoolKey) -> None:
        if self.on_tools_changed is not None:
            self.on_tools_changed(key)

    def _note_echo(self, key: PoolKey, tool: str) -> None:
        if self.on_secret_echoed is not None:
            self.on_secret_echoed(key, tool)

    def _close_later(self, session: VendorSession) -> None:
        task = asyncio.ensure_future(session.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
