"""The only database reads of the hot path, gathered in one synchronous island and kept until an epoch says otherwise.

A bearer resolves to a `Caller`; the organization's side is shared by all its callers. Epochs are read before the rows
are loaded, and an entry is dead when one of them differs. Whatever happens, no entry outlives shared_rows.MAX_AGE_S (a
new caller may be made of an organization as old as that), and while nobody can say what the epochs are, no part of one
is older than UNCONFIRMED_AGE_S.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError

from gateway.coordination import epochs
from gateway.coordination.store import CoordinationStore
from gateway.lib import clock, secrets
from gateway.lib.database_threads import with_own_connection
from gateway.lib.reserved_connections import use_reserved_connections
from oauth_ext import bearer as bearers
from oauth_ext.bearer import BearerIdentity, ExpiredBearer, InvalidBearer, RevokedBearer
from oauth_ext.jwt.keys import SigningKeysUnavailable
from proxy import shared_rows
from proxy.access import Caller
from proxy.refused_bearers import RefusedBearers, RefusedTooOften, RevokedTokens
from proxy.shared_rows import SharedRows
from proxy.single_flight import SingleFlight
from proxy.snapshot_rows import principal_of

# While epochs are unknown a change is in force within five seconds (F2 of the reliability goals). An entry counts from
# its oldest part, so an organization shared for a second takes that second off; half a second is for the call itself.
UNCONFIRMED_AGE_S = 4.5
UNCONFIRMED_SPREAD_S = 1.0  # not all callers at once when the store goes away
NOTED_AGAIN_AFTER_S = 60.0
MAX_CALLERS = 20_000
ISLAND_THREADS = 4
ISLAND_DEADLINE_S = 5.0
T = TypeVar("T")
log = structlog.get_logger(__name__)


class SnapshotUnavailable(Exception):
    """The database cannot be asked, and what is known is too old to be trusted."""


class Snapshots:
    """Callers by the SHA-256 of the whole bearer; organizations and the catalog behind them. One event loop."""

    def __init__(
        self,
        store: CoordinationStore,
        *,
        spread: Callable[[], float] = random.random,
        is_away: Callable[[], bool] = lambda: False,
    ) -> None:
        """`spread`: of 0 to 1, how much earlier than the others a caller is loaded again while epochs are unknown.

        `is_away` says that the database is known not to answer: then no caller waits for it.
        """
        self._store = store
        self._spread = spread
        self._is_away = is_away
        self._callers: OrderedDict[bytes, Caller] = OrderedDict()
        self._shared = SharedRows()
        self._refused = RefusedBearers(store)
        self._revoked = RevokedTokens()
        self._loading: SingleFlight[bytes, Caller] = SingleFlight()
        self._island = ThreadPoolExecutor(
            ISLAND_THREADS,
            thread_name_prefix="snapshot",
            initializer=use_reserved_connections,
            initargs=(settings.HOT_PATH_CONNECTIONS, settings.HOT_PATH_TIMEOUTS),
        )
        self._notes = ThreadPoolExecutor(1, thread_name_prefix="snapshot-notes")
        self._noted_at_s: OrderedDict[tuple[uuid.UUID, bool], float] = OrderedDict()
        self._unnoted: set[tuple[uuid.UUID, bool]] = set()
        self._noting: asyncio.Task[None] | None = None

    async def caller(self, bearer: str, address: str) -> Caller:
        """Who this bearer from `address` is, from memory when it is known and young.

        Raises: InvalidBearer; RefusedTooOften; SnapshotUnavailable; CoordinationUnavailable.
        """
        digest = secrets.sha256(bearer)
        known = self._callers.get(digest)
        if known is None:
            return await self._first_sight(digest, bearer, address)
        if _is_young(known) and time.time() < known.expires_at_s:
            self._callers.move_to_end(digest)
            return known
        return await self.reload(bearer)

    async def confirmed(self, bearer: str, caller: Caller, current: tuple[str, ...] | None) -> Caller:
        """`caller` if the epochs just read are the ones it was loaded under, else what the rows say now.

        While nobody can say what the epochs are (`current` is None) it is believed for a moment only.
        Raises: InvalidBearer; SnapshotUnavailable, also rather than rights older than an epoch that was seen.
        """
        if current is None:
            if time.monotonic() < caller.unconfirmed_until_s:
                return caller
        elif current == caller.epochs:
            return caller
        seen_at_s = time.monotonic()
        for _ in range(2):  # the first may join a load that began before the change; the second cannot
            loaded = await self.reload(bearer, seen_at_s)
            rows_from_s = loaded.as_of_s if loaded.epochs is None else loaded.loaded_at_s
            if current is None or current == loaded.epochs or rows_from_s >= seen_at_s:
                return loaded
        raise SnapshotUnavailable("rows older than an epoch that was seen")

    async def reload(self, bearer: str, seen_at_s: float = -math.inf) -> Caller:
        """Load the bearer's rows, once however many ask. Rows loaded before `seen_at_s` (monotonic) are not used
        unless an epoch vouches for it.

        Raises: InvalidBearer; SnapshotUnavailable.
        """
        digest = secrets.sha256(bearer)
        try:
            return await self._loading.run(digest, lambda: self._load(digest, bearer, seen_at_s=seen_at_s))
        except InvalidBearer:
            self._callers.pop(digest, None)
            raise

    async def run(self, work: Callable[[], T], threads: ThreadPoolExecutor | None = None) -> T:
        """Run synchronous database work on the island, or on other `threads`.

        Raises: SnapshotUnavailable when the database cannot be asked, or does not answer in time.
        """
        if threads is None and self._is_away():
            raise SnapshotUnavailable("the database is away")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(ISLAND_DEADLINE_S):
                return await loop.run_in_executor(threads or self._island, with_own_connection, work)
        except (DatabaseError, InterfaceError, SigningKeysUnavailable, TimeoutError) as fault:
            raise SnapshotUnavailable(type(fault).__name__) from fault

    async def run_behind(self, work: Callable[[], T]) -> T:
        """The same in a thread apart: while no write can end, loading must not wait behind writes.

        Raises: SnapshotUnavailable.
        """
        return await self.run(work, self._notes)

    async def noted(self) -> None:
        """Every use so far is written down, or could not be in time."""
        if self._noting is not None:
            await asyncio.wait({self._noting}, timeout=ISLAND_DEADLINE_S)

    async def aclose(self) -> None:
        """Write what is still to be noted and let the threads end."""
        await self.noted()
        for threads in (self._island, self._notes):
            threads.shutdown(wait=False, cancel_futures=True)

    async def _first_sight(self, digest: bytes, bearer: str, address: str) -> Caller:
        """A bearer that this process does not know: refusing it is counted for its address."""

        def checked() -> BearerIdentity:
            try:
                self._refused.check(address)  # many may have come at once, before the first of them was refused
            except RefusedTooOften:
                # A token of ours cannot be guessed: whoever shares the address with somebody who guesses is let in.
                if not bearers.is_signed_by_us(bearer):
                    raise
            return bearers.load_identity(bearer)

        if not bearers.may_be_access_token(bearer):
            self._refused.check(address)
        try:
            self._revoked.check(digest)
            return await self._loading.run(digest, lambda: self._load(digest, bearer, checked))
        except ExpiredBearer:
            raise
        except InvalidBearer as fault:
            if isinstance(fault, RevokedBearer):
                self._revoked.remember(digest, fault)
            await self._refused.count(address)
            raise

    async def _load(
        self,
        digest: bytes,
        bearer: str,
        first_look: Callable[[], BearerIdentity] | None = None,
        seen_at_s: float = -math.inf,
    ) -> Caller:
        loaded_at_s = time.monotonic()
        # The epochs must be read before the rows that count. A known caller names them; otherwise a first look does.
        known = self._callers.get(digest)
        if known is None:
            names = _names_of(await self.run(first_look or partial(bearers.load_identity, bearer)))
        else:
            names = known.epoch_names
        current = await self._current_epochs(names)
        caller = await self.run(lambda: self._assemble(bearer, names, current, loaded_at_s, seen_at_s))
        if caller.epoch_names != names:  # the bearer speaks for another subject now
            self._callers.pop(digest, None)
            return await self._load(digest, bearer, None, seen_at_s)
        self._note_use_later(caller)
        self._callers[digest] = caller
        self._callers.move_to_end(digest)
        if len(self._callers) > MAX_CALLERS:
            self._callers.popitem(last=False)
        return caller

    async def _current_epochs(self, names: tuple[str, ...]) -> tuple[str, ...] | None:
        """The epochs, none of them empty: a name never bumped gets its first value here.

        An entry loaded under "never bumped" would be believed again after a bump and a store that lost its memory.
        """
        current = await self._store.read_epochs(names)
        if current is None or all(current):
            return current
        return await self._store.begin_epochs(names)

    def _note_use_later(self, caller: Caller) -> None:
        """Keep "last used" about right, behind the call's back: a lock that a writer waits for must not hold it up."""
        used, now_s = (caller.principal.client_pk, caller.is_agent_key), time.monotonic()
        if now_s - self._noted_at_s.get(used, -math.inf) < NOTED_AGAIN_AFTER_S:
            return
        self._noted_at_s[used] = now_s
        self._noted_at_s.move_to_end(used)
        if len(self._noted_at_s) > MAX_CALLERS:
            self._noted_at_s.popitem(last=False)
        self._unnoted.add(used)
        if self._noting is None or self._noting.done():
            self._noting = asyncio.ensure_future(self._note_uses())

    async def _note_uses(self) -> None:
        while self._unnoted:
            client_pk, is_agent_key = self._unnoted.pop()
            try:
                await self.run_behind(partial(bearers.note_use, client_pk, is_agent_key, clock.now()))
            except SnapshotUnavailable as fault:
                log.warning("last use not noted", fault=str(fault))

    def _assemble(
        self,
        bearer: str,
        names: tuple[str, ...],
        current: tuple[str, ...] | None,
        loaded_at_s: float,
        seen_at_s: float,
    ) -> Caller:
        identity = bearers.load_identity(bearer)
        if _names_of(identity) != names:
            names, current = _names_of(identity), None
        organization_epoch, catalog_epoch = (current[1], current[2]) if current is not None else (None, None)
        not_before_s = max(loaded_at_s - shared_rows.UNCONFIRMED_AGE_S, seen_at_s)
        principal = principal_of(identity)
        organization = self._shared.organization(identity.org_id, organization_epoch, not_before_s)
        catalog = self._shared.catalog(catalog_epoch, not_before_s)
        as_of_s = min(loaded_at_s, organization.loaded_at_s, catalog.loaded_at_s)
        return Caller(
            principal=principal,
            organization=organization.value,
            catalog=catalog.value,
            is_agent_key=identity.kind == "agent_key",
            audiences=frozenset(identity.audiences),
            expires_at_s=identity.expires_at.timestamp(),
            loaded_at_s=loaded_at_s,
            as_of_s=as_of_s,
            unconfirmed_until_s=as_of_s + UNCONFIRMED_AGE_S - UNCONFIRMED_SPREAD_S * self._spread(),
            epoch_names=names,
            epochs=current,
        )


def _names_of(identity: BearerIdentity) -> tuple[str, ...]:
    """The epochs that the subject's rights depend on."""
    return epochs.subject(identity.subject), epochs.organization(identity.org_id), epochs.CATALOG


def _is_young(caller: Caller) -> bool:
    """Whether an admission may confirm it, or is not needed for that yet."""
    now_s = time.monotonic()
    if caller.epochs is None:
        return now_s < caller.unconfirmed_until_s
    return now_s - caller.loaded_at_s < shared_rows.MAX_AGE_S
