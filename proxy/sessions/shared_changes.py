"""Changes that one process knows of and that streams of other processes must tell: a log in the exchange, sealed.

It says that a vendor announced a changed list, and that a session's subscriptions or its end are to be looked at.
While the exchange is away, this process keeps what it has to say. A process that could not read the log looks at all
that its streams see. docs/decisions/0113
"""

from __future__ import annotations

import asyncio
import hmac
import os
from collections.abc import Callable, Iterable
from uuid import UUID

import msgspec
import structlog

from gateway.coordination.exchange import Exchange
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib.crypto import CryptoError, open_sealed, seal
from proxy.sessions.client_session import ClientSession
from proxy.sessions.stream_places import StreamPlaces

log = structlog.get_logger(__name__)
LOG = "changes"
KEPT_S = 600
GATHER_S = 0.5  # changes that are told together: a vendor may announce at any rate
MAX_WAITING = 2_000  # changes; past it, streams of all processes look at everything
_LOOK_S = 3.0  # less than the longest wait of an exchange: a late answer is no silence
_PAUSE_S = 1.0  # while the exchange is away
_AAD = LOG.encode()


class _Batch(msgspec.Struct, frozen=True, array_like=True):
    """`lists`: organization, place, name of the list. `sessions`: their ids. `is_all`: there was more than fits."""

    sender: bytes
    lists: tuple[tuple[bytes, bytes, str], ...]
    sessions: tuple[bytes, ...]
    is_all: bool = False


_decoder = msgspec.msgpack.Decoder(_Batch)


class SharedChanges:
    """One event loop."""

    def __init__(
        self,
        exchange: Exchange,
        secret: bytes,
        streams: StreamPlaces,
        on_heard: Callable[[UUID, bytes, str], None],
    ) -> None:
        """`secret` is the deployment's. `on_heard` gets each changed list that another process tells of."""
        self._exchange, self._streams, self._on_heard = exchange, streams, on_heard
        self._key = hmac.digest(secret, b"shared-changes|values", "sha256")
        self._sender = os.urandom(8)
        self._lists: set[tuple[bytes, bytes, str]] = set()
        self._told_here: set[tuple[bytes, bytes, str]] = set()  # of them, while others could not be told
        self._sessions: set[bytes] = set()
        self._is_all = False
        self._teller: asyncio.Task[None] | None = None
        self._place: str | None = None  # None: not following
        self._follower: asyncio.Task[None] | None = None

    def list_changed(self, org_id: UUID, place: bytes, name: str) -> None:
        """A vendor announced it. Streams of all processes are told in a moment."""
        changed = (org_id.bytes, place, name)
        self._told_here.discard(changed)
        if len(self._lists) < MAX_WAITING:
            self._lists.add(changed)
        else:
            self._is_all = True
        self._tell()

    def session_changed(self, session: ClientSession) -> None:
        """Its stream has something to look at."""
        self._streams.nudge(session.id)
        if len(self._sessions) < MAX_WAITING:
            self._sessions.add(session.id)
        else:
            self._is_all = True
        self._tell()

    async def follow(self) -> None:
        """Hear of changes from now on."""
        if self._follower is not None and not self._follower.done():
            return
        try:
            self._place = await self._exchange.end_of(LOG)
        except CoordinationUnavailable as fault:
            log.info("changes of other processes not read", fault=str(fault))
            self._place = None
        if self._follower is None or self._follower.done():
            self._follower = asyncio.ensure_future(self._follow())

    async def aclose(self) -> None:
        tasks = [task for task in (self._teller, self._follower) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- saying -------------------------------------------------------------------------------------------------------

    def _tell(self) -> None:
        if self._teller is None or self._teller.done():
            self._teller = asyncio.ensure_future(self._tell_others())

    async def _tell_others(self) -> None:
        while self._lists or self._sessions or self._is_all:
            # The client of a session waits for the first notification.
            if not self._sessions:
                await asyncio.sleep(GATHER_S)
            # Changes that come while these are being written are written next: others may have read these by then.
            lists, self._lists = self._lists, set()
            sessions, self._sessions = self._sessions, set()
            is_all, self._is_all = self._is_all, False
            # A client that is told may ask any process, so the others are to know by then.
            batch = _Batch(self._sender, tuple(lists), tuple(sessions), is_all)
            try:
                await self._exchange.append(LOG, seal(self._key, msgspec.msgpack.encode(batch), _AAD), KEPT_S)
            except CoordinationUnavailable as fault:
                log.info("changes not told to other processes", fault=str(fault))
                self._announce(lists - self._told_here)
                self._told_here |= lists
                self._keep(lists, sessions, is_all=is_all)
                await asyncio.sleep(_PAUSE_S)
                continue
            self._announce(lists - self._told_here)
            self._told_here -= lists
            if is_all:
                self._streams.announce_all()

    def _keep(self, lists: set[tuple[bytes, bytes, str]], sessions: set[bytes], *, is_all: bool) -> None:
        """For the next try, with what has come meanwhile, as far as there is room."""
        more_lists, more_sessions = lists | self._lists, sessions | self._sessions
        has_room = max(len(more_lists), len(more_sessions)) <= MAX_WAITING
        self._lists, self._sessions = (more_lists, more_sessions) if has_room else (lists, sessions)
        self._is_all = self._is_all or is_all or not has_room

    def _announce(self, lists: Iterable[tuple[bytes, bytes, str]]) -> None:
        for org_id, place, name in lists:
            self._streams.announce(UUID(bytes=org_id), (place, name))

    # --- hearing ------------------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            try:
                if self._place is None:  # something may have been said meanwhile
                    self._place = await self._exchange.end_of(LOG)
                    self._streams.announce_all()
                self._place, found = await self._exchange.read_after(LOG, self._place, _LOOK_S)
            except CoordinationUnavailable as fault:
                log.info("changes of other processes not read", fault=str(fault))
                self._place = None
                await asyncio.sleep(_PAUSE_S)
                continue
            for sealed in found:
                self._hear(sealed)

    def _hear(self, sealed: bytes) -> None:
        try:
            batch = _decoder.decode(open_sealed(self._key, sealed, _AAD))
        except (CryptoError, msgspec.MsgspecError) as fault:
            log.warning("changes of another process not read", fault=type(fault).__name__)
            return
        if batch.sender == self._sender:
            return
        if batch.is_all:
            self._streams.announce_all()
        for org_id, place, name in batch.lists:
            self._on_heard(UUID(bytes=org_id), place, name)
        self._announce(batch.lists)
        for session_id in batch.sessions:
            self._streams.nudge(session_id)
