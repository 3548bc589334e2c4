"""The only database reads of the hot path, gathered in one synchronous island and kept until an epoch says otherwise.

A bearer resolves to a `Caller`; the organization's side is shared by all its callers. Epochs are read before the rows
are loaded, and an entry is dead when one of them differs. Whatever happens, no entry outlives MAX_AGE_S (a new caller
may be made of an organization as old as that), and while nobody can say what the epochs are, not UNCONFIRMED_AGE_S.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import structlog
from django.db import DatabaseError, InterfaceError, close_old_connections

from credentials.sealing import wrapped_keys
from credentials.selectors import refs_by_vendor
from gateway.catalog import registry as catalog_registry
from gateway.catalog.registry import Catalog
from gateway.coordination import epochs
from gateway.coordination.store import CoordinationStore
from gateway.lib import clock, secrets
from oauth_ext import bearer as bearers
from oauth_ext.bearer import BearerIdentity, ExpiredBearer, InvalidBearer
from oauth_ext.jwt.keys import SigningKeysUnavailable
from oauth_ext.selectors import vendor_grants
from orgs import selectors as orgs
from orgs.principal import Principal, PrincipalKind
from orgs.roles import Role
from proxy.access import Caller, OrganizationAccess
from proxy.refused_bearers import RefusedBearers, RefusedTooOften
from proxy.single_flight import SingleFlight

MAX_AGE_S = 30.0
UNCONFIRMED_AGE_S = 1.0  # F2 of the reliability goals asks for five
MAX_CALLERS = 20_000
MAX_ORGANIZATIONS = 5_000
ISLAND_THREADS = 4
ISLAND_DEADLINE_S = 5.0
T = TypeVar("T")
log = structlog.get_logger(__name__)


class SnapshotUnavailable(Exception):
    """The database cannot be asked, and what is known is too old to be trusted."""


@dataclass(frozen=True, slots=True)
class _Shared(Generic[T]):
    """What many callers share, the epoch it was loaded under, and when: a bump that was lost must not last."""

    value: T
    epoch: str | None
    loaded_at_s: float

    @classmethod
    def of(cls, value: T, epoch: str | None, loaded_at_s: float, known: _Shared[T] | None) -> _Shared[T]:
        """What was just loaded; if it says the same as what is `known`, as that object.

        Several threads may load at once, and callers of different age share what they can: what was worked out for a
        vendor is looked up by the object.
        """
        return cls(known.value if known is not None and known.value == value else value, epoch, loaded_at_s)

    def holds(self, epoch: str | None) -> bool:
        """Whether it may be used under `epoch`. One that was never bumped, or cannot be read, vouches for nothing."""
        return bool(epoch) and self.epoch == epoch and time.monotonic() - self.loaded_at_s < MAX_AGE_S


class Snapshots:
    """Callers by the SHA-256 of the whole bearer; organizations and the catalog behind them. One event loop."""

    def __init__(self, store: CoordinationStore) -> None:
        self._store = store
        self._callers: OrderedDict[bytes, Caller] = OrderedDict()
        self._organizations: OrderedDict[uuid.UUID, _Shared[OrganizationAccess]] = OrderedDict()
        self._catalog: _Shared[Catalog] | None = None
        self._sharing = threading.Lock()
        self._refused = RefusedBearers(store)
        self._loading: SingleFlight[bytes, Caller] = SingleFlight()
        self._island = ThreadPoolExecutor(ISLAND_THREADS, thread_name_prefix="snapshot")
        # A thread apart: while nobody can write, loading must not wait behind notes.
        self._notes = ThreadPoolExecutor(1, thread_name_prefix="snapshot-notes")
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
        if time.monotonic() - known.loaded_at_s < _max_age_s(known) and _unexpired(known):
            self._callers.move_to_end(digest)
            return known
        return await self.reload(bearer)

    async def confirmed(self, bearer: str, caller: Caller, current: tuple[str, ...] | None) -> Caller:
        """`caller` if the epochs just read are the ones it was loaded under, else what the rows say now.

        Raises: InvalidBearer; SnapshotUnavailable.
        """
        if current is None:  # nobody knows: trust the entry for a moment only
            if time.monotonic() - caller.loaded_at_s < UNCONFIRMED_AGE_S:
                return caller
        elif current == caller.epochs:
            return caller
        loaded = await self.reload(bearer)
        if current is not None and loaded.epochs != current:
            # We may have joined a load that began before the change. The next one cannot have.
            loaded = await self.reload(bearer)
        return loaded

    async def reload(self, bearer: str) -> Caller:
        """Load the bearer's rows, once however many ask.

        Raises: InvalidBearer; SnapshotUnavailable.
        """
        digest = secrets.sha256(bearer)
        try:
            return await self._loading.run(digest, lambda: self._load(digest, bearer))
        except InvalidBearer:
            self._callers.pop(digest, None)
            raise

    async def run(self, work: Callable[[], T], threads: ThreadPoolExecutor | None = None) -> T:
        """Run synchronous database work on the island, or on other `threads`.

        Raises: SnapshotUnavailable when the database cannot be asked, or does not answer in time.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(ISLAND_DEADLINE_S):
                return await loop.run_in_executor(threads or self._island, _with_connection, work)
        except (DatabaseError, InterfaceError, SigningKeysUnavailable, TimeoutError) as fault:
            raise SnapshotUnavailable(type(fault).__name__) from fault

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
            return await self._loading.run(digest, lambda: self._load(digest, bearer, checked))
        except ExpiredBearer:
            raise
        except InvalidBearer:
            await self._refused.count(address)
            raise

    async def _load(self, digest: bytes, bearer: str, first_look: Callable[[], BearerIdentity] | None = None) -> Caller:
        # Twice, because only the first look says which epochs matter, and they must be read before the rows count.
        identity = await self.run(first_look or partial(bearers.load_identity, bearer))
        names = (epochs.subject(identity.subject), epochs.organization(identity.org_id), epochs.CATALOG)
        current = await self._current_epochs(names)
        caller = await self.run(lambda: self._assemble(bearer, names, current))
        self._note_use_later(caller)
        self._callers[digest] = caller
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
        missing = [name for name, value in zip(names, current, strict=True) if not value]
        await self.run(partial(self._store.bump_epochs, missing))
        return await self._store.read_epochs(names)

    def _note_use_later(self, caller: Caller) -> None:
        """Keep "last used" about right, behind the call's back: a lock that a writer waits for must not hold it up."""
        self._unnoted.add((caller.principal.client_pk, caller.is_agent_key))
        if self._noting is None or self._noting.done():
            self._noting = asyncio.ensure_future(self._note_uses())

    async def _note_uses(self) -> None:
        while self._unnoted:
            client_pk, is_agent_key = self._unnoted.pop()
            try:
                await self.run(partial(bearers.note_use, client_pk, is_agent_key, clock.now()), self._notes)
            except SnapshotUnavailable as fault:
                log.warning("last use not noted", fault=str(fault))

    def _assemble(self, bearer: str, names: tuple[str, ...], current: tuple[str, ...] | None) -> Caller:
        loaded_at_s = time.monotonic()
        identity = bearers.load_identity(bearer)
        organization_epoch, catalog_epoch = (current[1], current[2]) if current is not None else (None, None)
        return Caller(
            principal=principal_of(identity),
            organization=self._organization(identity.org_id, organization_epoch),
            catalog=self._current_catalog(catalog_epoch),
            is_agent_key=identity.kind == "agent_key",
            audiences=frozenset(identity.audiences),
            expires_at_s=identity.expires_at.timestamp(),
            loaded_at_s=loaded_at_s,
            epoch_names=names,
            epochs=current,
        )

    def _organization(self, org_id: uuid.UUID, epoch: str | None) -> OrganizationAccess:
        """Shared by the organization's callers while its epoch stands."""
        known = self._organizations.get(org_id)
        if known is not None and known.holds(epoch):
            return known.value
        loaded_at_s = time.monotonic()
        access = organization_access(org_id)
        if epoch:
            with self._sharing:
                shared = _Shared.of(access, epoch, loaded_at_s, self._organizations.get(org_id))
                self._organizations[org_id] = shared
                if len(self._organizations) > MAX_ORGANIZATIONS:
                    self._organizations.popitem(last=False)
            return shared.value
        return access

    def _current_catalog(self, epoch: str | None) -> Catalog:
        known = self._catalog
        if known is not None and known.holds(epoch):
            return known.value
        loaded_at_s = time.monotonic()
        catalog = catalog_registry.load()
        with self._sharing:
            self._catalog = _Shared.of(catalog, epoch, loaded_at_s, self._catalog)
            return self._catalog.value


def _max_age_s(caller: Caller) -> float:
    return MAX_AGE_S if caller.epochs is not None else UNCONFIRMED_AGE_S


def _unexpired(caller: Caller) -> bool:
    return time.time() < caller.expires_at_s


def _with_connection(work: Callable[[], T]) -> T:
    """Django's request signals do not fire here, so connections that died are dropped by hand."""
    close_old_connections()
    try:
        return work()
    finally:
        close_old_connections()


def principal_of(identity: BearerIdentity) -> Principal:
    """Who the identity is now, in its organization.

    Raises: InvalidBearer for somebody who is no member any more.
    """
    if identity.user_id is None:
        return Principal(
            kind=PrincipalKind.SERVICE,
            subject=identity.subject,
            label=identity.client_name,
            org_id=identity.org_id,
            role=Role.MEMBER,
            team_ids=(),
            granted_vendors=vendor_grants(identity.client_pk),
            scopes=identity.scopes,
            client_pk=identity.client_pk,
            client_id=identity.client_id,
            client_name=identity.client_name,
        )
    membership = orgs.membership_row(identity.user_id, identity.org_id)
    if membership is None:
        raise InvalidBearer("The person is no longer a member of the organization.")
    teams = orgs.team_ids(membership)
    return Principal(
        kind=PrincipalKind.PERSON,
        subject=identity.subject,
        label=membership.user.name,
        org_id=identity.org_id,
        role=Role(membership.role),
        team_ids=teams,
        granted_vendors=orgs.granted_vendors(membership, teams),
        scopes=identity.scopes,
        client_pk=identity.client_pk,
        client_id=identity.client_id,
        client_name=identity.client_name,
        user_id=identity.user_id,
    )


def organization_access(org_id: uuid.UUID) -> OrganizationAccess:
    """The organization's side of every decision, as the rows say now.

    Raises: InvalidBearer when it is gone.
    """
    organization = orgs.organization(org_id)
    if organization is None:
        raise InvalidBearer("The organization is gone.")
    return OrganizationAccess(
        org_id=org_id,
        name=organization.name,
        default_access_all=organization.gives_access_by_default,
        credentials=refs_by_vendor(org_id),
        wrapped_keys=tuple(wrapped_keys(org_id)),
        allowlists=orgs.allowlists(org_id),
    )
