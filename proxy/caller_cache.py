"""Callers cached in memory, with the only database reads of the hot path.

A bearer resolves to a `Caller` of three parts: its own rows, its organization's, the catalog. Epochs are read before
rows, and a part is loaded again once its epoch differs, or when it is too old for an epoch to confirm it
(`freshness`). While epochs cannot be read, no part is older than UNCONFIRMED_AGE_S.   docs/decisions/0050
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
from typing import TypeVar

from django.conf import settings

from gateway.coordination import backend, epochs
from gateway.coordination.store import CoordinationStore
from gateway.lib import secrets
from gateway.lib.bounded import put_newest
from oauth_ext import bearer as bearers
from oauth_ext.bearer import ExpiredBearer, InvalidBearer, RevokedBearer
from proxy import hot_path_database, shared_rows
from proxy.bearer_loader import BearerLoader, epoch_names
from proxy.caller import Caller, EpochNames, OwnRights
from proxy.caller_rows import own_rights
from proxy.failed_auth_throttle import AuthThrottled, FailedAuthThrottle, RevokedTokens
from proxy.freshness import Freshness
from proxy.hot_path_database import DatabaseUnavailable, HotPathDatabase
from proxy.last_used import GATHER_S, LastUsed
from proxy.shared_rows import SharedRows
from proxy.single_flight import SingleFlight

# While epochs cannot be read, a change takes effect within five seconds (F2 of the reliability goals). An entry counts
# from its oldest part, so an organization shared for a second takes that second off; half a second is for the call
# itself.
UNCONFIRMED_AGE_S = 4.5
UNCONFIRMED_SPREAD_S = 1.0  # spreads reloads when the store fails, so that callers do not all hit the database at once
# Unknown bearers that are looked up at the same time. More would wait for the one connection anyway.
UNKNOWN_AT_ONCE = 8
# A caller's use is noted at most once in this time. The time of gathering is added, or a note would come too early for
# its row and be dropped.
LAST_USED_EVERY_S = bearers.RECORD_USE_EVERY.total_seconds() + GATHER_S
T = TypeVar("T")


class _Entry:
    __slots__ = ("caller", "use_noted_s")

    def __init__(self, caller: Caller, use_noted_s: float) -> None:
        self.caller = caller
        self.use_noted_s = use_noted_s


class CallerCache:
    """Callers by SHA-256 of the whole bearer, the least recently used dropped first. One event loop."""

    def __init__(
        self,
        store: CoordinationStore,
        *,
        spread: Callable[[], float] = random.random,
        is_database_down: Callable[[], bool] = lambda: False,
    ) -> None:
        """`spread`: 0 to 1, how much earlier than others an entry is loaded again."""
        self._store = store
        self._spread = spread
        self._callers: OrderedDict[bytes, _Entry] = OrderedDict()
        # While it is down, no caller waits for the database.
        self._database = HotPathDatabase(is_database_down)
        self._bearers = BearerLoader(self._database)
        self.freshness = Freshness(store, max_age_s=max_age_s())
        self._shared = SharedRows(
            self._database, self.freshness, spread=spread, max_organizations=settings.CACHED_ORGANIZATIONS
        )
        self._failed_auth = FailedAuthThrottle(store)
        self._revoked = RevokedTokens()
        self._loading: SingleFlight[bytes, Caller] = SingleFlight()
        self._unknown = asyncio.Semaphore(UNKNOWN_AT_ONCE)
        self._last_used = LastUsed(self.run_in_write_thread)

    async def get(self, bearer: str, address: str) -> Caller:
        """Raises: InvalidBearer; AuthThrottled; DatabaseUnavailable; CoordinationUnavailable."""
        digest = secrets.sha256(bearer)
        entry = self._callers.get(digest)
        if entry is None:
            return await self._load_unknown(digest, bearer, address)
        caller = entry.caller
        if not self._is_usable(caller):
            return await self.reload(bearer)
        self._callers.move_to_end(digest)
        self._shared.touch(caller.epoch_names[1])
        now_s = time.monotonic()
        if now_s - entry.use_noted_s >= LAST_USED_EVERY_S:
            entry.use_noted_s = now_s
            self._last_used.note(caller.principal.client_pk, caller.own.key_pk)
        return caller

    async def revalidated(self, bearer: str, caller: Caller, current: tuple[str, ...] | None) -> Caller:
        """`caller` if `current` epochs equal its own, otherwise the caller with the changed parts loaded again.

        Raises: InvalidBearer; DatabaseUnavailable, also rather than use rights older than an observed epoch.
        """
        if current is None:
            # None: the epochs cannot be read, so the caller is trusted for a short time.
            if time.monotonic() < _unconfirmed_until_s(caller) and _holds(caller):
                return caller
        elif current == caller.epochs and self._is_confirmed(caller) and _holds(caller):
            return caller
        seen_at_s = time.monotonic()
        for _ in range(2):  # the first may join a load that began before the change; the second cannot
            loaded = await self.reload(bearer, seen_at_s, caller.epoch_names, current)
            if (current is None or _is_no_older(loaded, current, seen_at_s)) and _holds(loaded):
                return loaded
        raise DatabaseUnavailable("rows older than an epoch that was seen")

    async def reload(
        self,
        bearer: str,
        seen_at_s: float = -math.inf,
        seen_names: EpochNames | None = None,
        seen: tuple[str, ...] | None = None,
    ) -> Caller:
        """Load the bearer's stale parts, once for all concurrent callers. Raises: InvalidBearer; DatabaseUnavailable.

        `seen`: epochs of `seen_names`, read at `seen_at_s` (monotonic) or before. Parts from before that time are used
        only if an epoch confirms them.
        """
        digest = secrets.sha256(bearer)
        known = (seen_names, seen) if seen_names is not None and seen is not None else None
        try:
            return await self._loading.run(digest, lambda: self._load(digest, bearer, seen_at_s, known))
        except InvalidBearer:
            self._callers.pop(digest, None)
            raise

    async def assumed(self, names: EpochNames, read_own: Callable[[], OwnRights]) -> Caller:
        """A caller without a bearer, whose own part is read now and not kept. Raises: as `reload`."""
        seen_at_s = time.monotonic()
        # Epochs must be read before the rows they guard.
        current = await self._current_epochs(names, None)
        own = await self.run_in_db_thread(read_own)
        return await self._with_shared_parts(own, names, current, seen_at_s)

    async def run_in_db_thread(self, work: Callable[[], T], threads: ThreadPoolExecutor | None = None) -> T:
        """Run database work in the hot path's threads, or in `threads`. Raises: DatabaseUnavailable."""
        return await self._database.run_in_thread(work, threads)

    async def run_in_write_thread(self, work: Callable[[], T]) -> T:
        """`run_in_db_thread` in a separate thread, so that blocked writes never delay loading. Raises:
        DatabaseUnavailable."""
        return await self._database.run_in_thread(work, self._database.write_thread)

    def note_credential(self, pk: uuid.UUID) -> None:
        """A call uses this credential."""
        self._last_used.note_credential(pk)

    async def flush_last_used(self) -> None:
        """Wait until all uses so far are written, at most DB_DEADLINE_S."""
        await self._last_used.flush(hot_path_database.DB_DEADLINE_S)

    async def aclose(self) -> None:
        """Write the remaining uses, shut the threads down, close the connection."""
        await self.flush_last_used()
        await self._database.aclose()

    async def _load_unknown(self, digest: bytes, bearer: str, address: str) -> Caller:
        if not bearers.may_be_access_token(bearer):
            self._failed_auth.check(address)
        # A few at once: many requests may have come before the first refusal, and are not looked up after it.
        try:
            async with asyncio.timeout(hot_path_database.DB_DEADLINE_S):
                await self._unknown.acquire()
        except TimeoutError as fault:
            raise DatabaseUnavailable("unknown callers wait") from fault
        try:
            await self._check_address(bearer, address)
            return await self._looked_up(digest, bearer, address)
        finally:
            self._unknown.release()

    async def _check_address(self, bearer: str, address: str) -> None:
        """Raises: AuthThrottled."""
        try:
            self._failed_auth.check(address)
        except AuthThrottled:
            # A token with the gateway's signature is no guess, so its sender passes from a throttled address.
            if not await self._bearers.is_signed_by_us(bearer):
                raise

    async def _looked_up(self, digest: bytes, bearer: str, address: str) -> Caller:
        # A bearer that this process does not know: a refusal counts against its address.
        entry = self._callers.get(digest)
        if entry is not None and self._is_usable(entry.caller):  # loaded while this one waited
            return entry.caller
        try:
            self._revoked.check(digest)
            return await self._loading.run(digest, lambda: self._load(digest, bearer))
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
        seen_at_s: float = -math.inf,
        seen: tuple[EpochNames, tuple[str, ...]] | None = None,
    ) -> Caller:
        entry = self._callers.get(digest)
        known = None if entry is None else entry.caller
        presented = None
        if known is not None:
            names = known.epoch_names
        else:
            presented = await self._bearers.read(bearer)
            names = await self._bearers.epoch_names(presented)
        # Epochs must be read before the rows they guard.
        current = await self._current_epochs(names, seen[1] if seen is not None and seen[0] == names else None)
        if known is not None and self._own_holds(known, current):
            own = known.own.at(time.time())
        else:
            loaded_at_s = time.monotonic()
            identity = await self._bearers.identity(presented or await self._bearers.read(bearer))
            if epoch_names(identity.subject, identity.org_id) != names:  # the bearer belongs to another subject now
                self._callers.pop(digest, None)
                return await self._load(digest, bearer, seen_at_s)
            own = own_rights(identity, loaded_at_s, self._spread())
        caller = await self._with_shared_parts(own, names, current, seen_at_s)
        now_s = time.monotonic()
        if entry is None:
            entry = _Entry(caller, now_s)
            self._last_used.note(own.principal.client_pk, own.key_pk)
        entry.caller = caller
        put_newest(self._callers, digest, entry, settings.CACHED_CALLERS)
        return caller

    async def _with_shared_parts(
        self, own: OwnRights, names: EpochNames, current: tuple[str, ...] | None, seen_at_s: float
    ) -> Caller:
        not_before_s = max(time.monotonic() - shared_rows.UNCONFIRMED_AGE_S, seen_at_s)
        _, organization_epoch, catalog_epoch = current if current is not None else (None, None, None)
        organization = await self._shared.organization(own.principal.org_id, names[1], organization_epoch, not_before_s)
        catalog = await self._shared.catalog(catalog_epoch, not_before_s)
        loaded_at_s = (own.loaded_at_s, organization.loaded_at_s, catalog.loaded_at_s)
        own_until_s = self.freshness.until_s(own.loaded_at_s, own.spread)
        return Caller(
            own=own,
            principal=own.principal,
            organization=organization.value,
            catalog=catalog.value,
            loaded_at_s=loaded_at_s,
            as_of_s=min(loaded_at_s),
            fresh_until_s=min(own_until_s, organization.fresh_until_s, catalog.fresh_until_s),
            epoch_names=(names[0], organization.name, epochs.CATALOG),
            # Equal to those of the shared parts, whose strings all callers share.
            epochs=None if current is None else (current[0], organization.epoch or "", catalog.epoch or ""),
        )

    # --- whether parts hold -------------------------------------------------------------------------------------------

    def _is_usable(self, caller: Caller) -> bool:
        """Whether admission may confirm it, or need not yet."""
        if not _holds(caller):
            return False
        if caller.epochs is None:
            return time.monotonic() < _unconfirmed_until_s(caller)
        return self._is_confirmed(caller)

    def _is_confirmed(self, caller: Caller) -> bool:
        return self.freshness.is_confirmed_by_epochs(caller.as_of_s, caller.fresh_until_s, caller.own.spread)

    def _own_holds(self, caller: Caller, current: tuple[str, ...] | None) -> bool:
        own = caller.own
        if current is None or caller.epochs is None or current[0] != caller.epochs[0]:
            return False
        fresh_until_s = self.freshness.until_s(own.loaded_at_s, own.spread)
        return time.time() < own.expires_at_s and self.freshness.is_confirmed_by_epochs(
            own.loaded_at_s, fresh_until_s, own.spread
        )

    async def _current_epochs(self, names: EpochNames, seen: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """`seen`, or the current epochs; one that was never bumped gets its first value here."""
        # An entry loaded under an empty epoch would look valid again after a bump and a loss of the store's memory.
        current = seen if seen is not None else await self._store.read_epochs(names)
        if current is not None and not all(current):
            current = await self._store.begin_epochs(names)
        return current if current and all(current) else None


def max_age_s() -> float:
    """How long an epoch may confirm rows. Without an outbox a bump may be lost, and the age bounds that loss."""
    return float(settings.CALLER_MAX_AGE_S) if backend.uses_outbox() else epochs.IN_FORCE_WITHIN_S


def _holds(caller: Caller) -> bool:
    """Whether neither the bearer nor an access of it has ended since it was loaded."""
    return time.time() < caller.own.holds_until_s


def _unconfirmed_until_s(caller: Caller) -> float:
    """Until when the caller is valid while the epochs cannot be read."""
    return caller.as_of_s + UNCONFIRMED_AGE_S - UNCONFIRMED_SPREAD_S * caller.own.spread


def _is_no_older(loaded: Caller, current: tuple[str, ...], seen_at_s: float) -> bool:
    """Whether each part has the epoch that was seen, or was loaded after that."""
    if loaded.epochs is None:
        return loaded.as_of_s >= seen_at_s
    parts = zip(loaded.epochs, current, loaded.loaded_at_s, strict=True)
    return all(own == seen or loaded_at_s >= seen_at_s for own, seen, loaded_at_s in parts)
