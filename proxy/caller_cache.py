"""Callers cached in memory, with the only database reads of the hot path, in a few dedicated threads.

A bearer resolves to a `Caller`. Epochs are read before its rows, and an entry is stale once one of them differs. No
entry outlives shared_rows.MAX_AGE_S (a new caller may use an organization of that age), and while epochs cannot be
read, no part of an entry is older than UNCONFIRMED_AGE_S.
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
from gateway.lib.bounded import put_newest
from gateway.lib.database_threads import with_own_connection
from gateway.lib.reserved_connections import use_reserved_connections
from oauth_ext import bearer as bearers
from oauth_ext.bearer import BearerIdentity, ExpiredBearer, InvalidBearer, RevokedBearer
from oauth_ext.jwt.keys import SigningKeysUnavailable
from proxy import shared_rows
from proxy.caller import Caller
from proxy.caller_rows import principal_of
from proxy.failed_auth_throttle import AuthThrottled, FailedAuthThrottle, RevokedTokens
from proxy.shared_rows import SharedRows
from proxy.single_flight import SingleFlight

# While epochs cannot be read, a change takes effect within five seconds (F2 of the reliability goals). An entry counts
# from its oldest part, so an organization shared for a second takes that second off; half a second is for the call
# itself.
UNCONFIRMED_AGE_S = 4.5
UNCONFIRMED_SPREAD_S = 1.0  # spreads reloads when the store fails, so that callers do not all hit the database at once
# "Last used" is written at most once per client in this time.
LAST_USED_EVERY_S = 60.0
# Callers in memory; the least recently used is dropped first. A round number, twice the members that an organization
# may have by default: a process serves a large one without reloads.
MAX_CALLERS = 20_000
# Threads for database reads; HOT_PATH_CONNECTIONS counts them.
DB_THREADS = 4
# Longest wait of a call for its caller's rows.
DB_DEADLINE_S = 5.0
T = TypeVar("T")
log = structlog.get_logger(__name__)


class DatabaseUnavailable(Exception):
    """The database is unavailable, and the cached rows are too old to use."""


class CallerCache:
    """Callers by SHA-256 of the whole bearer, on shared organizations and catalog. One event loop."""

    def __init__(
        self,
        store: CoordinationStore,
        *,
        spread: Callable[[], float] = random.random,
        is_database_down: Callable[[], bool] = lambda: False,
    ) -> None:
        """`spread`: 0 to 1, how much earlier a caller reloads while epochs cannot be read."""
        self._store = store
        self._spread = spread
        # Whether the database is known to be unavailable; then no caller waits for it.
        self._is_database_down = is_database_down
        self._callers: OrderedDict[bytes, Caller] = OrderedDict()
        self._shared = SharedRows()
        self._failed_auth = FailedAuthThrottle(store)
        self._revoked = RevokedTokens()
        self._loading: SingleFlight[bytes, Caller] = SingleFlight()
        self._db_threads = ThreadPoolExecutor(
            DB_THREADS,
            thread_name_prefix="caller-cache",
            initializer=use_reserved_connections,
            initargs=(settings.HOT_PATH_CONNECTIONS, settings.HOT_PATH_TIMEOUTS),
        )
        self._write_thread = ThreadPoolExecutor(1, thread_name_prefix="caller-cache-writes")
        self._last_used_recorded_s: OrderedDict[tuple[uuid.UUID, bool], float] = OrderedDict()
        self._last_used_pending: set[tuple[uuid.UUID, bool]] = set()
        self._last_used_task: asyncio.Task[None] | None = None

    async def get(self, bearer: str, address: str) -> Caller:
        """Raises: InvalidBearer; AuthThrottled; DatabaseUnavailable; CoordinationUnavailable."""
        digest = secrets.sha256(bearer)
        known = self._callers.get(digest)
        if known is None:
            return await self._load_unknown(digest, bearer, address)
        if _is_fresh(known) and time.time() < known.expires_at_s:
            self._callers.move_to_end(digest)
            return known
        return await self.reload(bearer)

    async def revalidated(self, bearer: str, caller: Caller, current: tuple[str, ...] | None) -> Caller:
        """`caller` if `current` epochs equal its own, otherwise the reloaded caller.

        Raises: InvalidBearer; DatabaseUnavailable, also rather than use rights older than an observed epoch.
        """
        if current is None:
            # None: the epochs cannot be read, so the caller is trusted for a short time.
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
        raise DatabaseUnavailable("rows older than an epoch that was seen")

    async def reload(self, bearer: str, seen_at_s: float = -math.inf) -> Caller:
        """Load the bearer's rows once for all concurrent callers. Raises: InvalidBearer; DatabaseUnavailable."""
        digest = secrets.sha256(bearer)
        # Rows from before `seen_at_s` (monotonic) are used only if an epoch confirms them.
        try:
            return await self._loading.run(digest, lambda: self._load(digest, bearer, seen_at_s=seen_at_s))
        except InvalidBearer:
            self._callers.pop(digest, None)
            raise

    async def run_in_db_thread(self, work: Callable[[], T], threads: ThreadPoolExecutor | None = None) -> T:
        """Run database work in the caller cache's threads, or in `threads`. Raises: DatabaseUnavailable."""
        if threads is None and self._is_database_down():
            raise DatabaseUnavailable("the database is away")
        loop = asyncio.get_running_loop()
        try:
            # The thread goes on after the timeout; only the wait ends.
            async with asyncio.timeout(DB_DEADLINE_S):
                return await loop.run_in_executor(threads or self._db_threads, with_own_connection, work)
        except (DatabaseError, InterfaceError, SigningKeysUnavailable, TimeoutError) as fault:
            raise DatabaseUnavailable(type(fault).__name__) from fault

    async def run_in_write_thread(self, work: Callable[[], T]) -> T:
        """`run_in_db_thread` in a separate thread, so that blocked writes never delay loading. Raises:
        DatabaseUnavailable."""
        return await self.run_in_db_thread(work, self._write_thread)

    async def flush_last_used(self) -> None:
        """Wait until all uses so far are written, at most DB_DEADLINE_S."""
        if self._last_used_task is not None:
            await asyncio.wait({self._last_used_task}, timeout=DB_DEADLINE_S)

    async def aclose(self) -> None:
        """Write the remaining uses and shut the threads down."""
        await self.flush_last_used()
        for threads in (self._db_threads, self._write_thread):
            threads.shutdown(wait=False, cancel_futures=True)

    async def _load_unknown(self, digest: bytes, bearer: str, address: str) -> Caller:
        # A bearer that this process does not know: a refusal counts against its address.
        def checked() -> BearerIdentity:
            try:
                # Again in the thread: many requests may have queued before the first refusal.
                self._failed_auth.check(address)
            except AuthThrottled:
                # A token with the gateway's signature is no guess, so its sender passes from a throttled address.
                if not bearers.is_signed_by_us(bearer):
                    raise
            return bearers.load_identity(bearer)

        if not bearers.may_be_access_token(bearer):
            self._failed_auth.check(address)
        try:
            self._revoked.check(digest)
            return await self._loading.run(digest, lambda: self._load(digest, bearer, checked))
        except ExpiredBearer:
            raise
        except InvalidBearer as fault:
            if isinstance(fault, RevokedBearer):
                self._revoked.add(digest, fault)
            await self._failed_auth.count(address)
            raise

    async def _load(
        self,
        digest: bytes,
        bearer: str,
        load_identity: Callable[[], BearerIdentity] | None = None,
        seen_at_s: float = -math.inf,
    ) -> Caller:
        loaded_at_s = time.monotonic()
        # Epochs must be read before the rows they guard. A cached caller names them; otherwise a first look-up does.
        known = self._callers.get(digest)
        if known is None:
            names = _names_of(await self.run_in_db_thread(load_identity or partial(bearers.load_identity, bearer)))
        else:
            names = known.epoch_names
        current = await self._current_epochs(names)
        caller = await self.run_in_db_thread(lambda: self._assemble(bearer, names, current, loaded_at_s, seen_at_s))
        if caller.epoch_names != names:  # the bearer belongs to another subject now
            self._callers.pop(digest, None)
            return await self._load(digest, bearer, None, seen_at_s)
        self._record_use_later(caller)
        put_newest(self._callers, digest, caller, MAX_CALLERS)
        return caller

    async def _current_epochs(self, names: tuple[str, ...]) -> tuple[str, ...] | None:
        """The current epochs; one that was never bumped gets its first value here."""
        # An entry loaded under an empty epoch would look valid again after a bump and a loss of the store's memory.
        current = await self._store.read_epochs(names)
        if current is None or all(current):
            return current
        return await self._store.begin_epochs(names)

    def _record_use_later(self, caller: Caller) -> None:
        """Update "last used" in the background, so that a row lock never delays a call."""
        used, now_s = (caller.principal.client_pk, caller.is_agent_key), time.monotonic()
        if now_s - self._last_used_recorded_s.get(used, -math.inf) < LAST_USED_EVERY_S:
            return
        put_newest(self._last_used_recorded_s, used, now_s, MAX_CALLERS)
        self._last_used_pending.add(used)
        if self._last_used_task is None or self._last_used_task.done():
            self._last_used_task = asyncio.ensure_future(self._write_uses())

    async def _write_uses(self) -> None:
        while self._last_used_pending:
            client_pk, is_agent_key = self._last_used_pending.pop()
            try:
                await self.run_in_write_thread(partial(bearers.record_use, client_pk, is_agent_key, clock.now()))
            except DatabaseUnavailable as fault:
                log.warning("last use not recorded", fault=str(fault))

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
    # The epochs that the subject's rights depend on.
    return epochs.subject(identity.subject), epochs.organization(identity.org_id), epochs.CATALOG


def _is_fresh(caller: Caller) -> bool:
    """Whether admission may confirm it, or need not yet."""
    now_s = time.monotonic()
    if caller.epochs is None:
        return now_s < caller.unconfirmed_until_s
    return now_s - caller.loaded_at_s < shared_rows.MAX_AGE_S
