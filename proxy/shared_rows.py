"""Rows that callers share: organizations' rights and the catalog, each loaded once for all and checked by itself."""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from credentials.access_rows import BY_ORGANIZATION
from gateway.catalog import registry as catalog_registry
from gateway.catalog.catalog import Catalog
from gateway.coordination import epochs
from gateway.lib.bounded import put_newest
from oauth_ext.bearer import InvalidBearer
from proxy.caller import OrganizationAccess
from proxy.caller_rows import organization_in
from proxy.freshness import Freshness
from proxy.hot_path_database import HotPathDatabase
from proxy.single_flight import SingleFlight

# While epochs cannot be read, rows of up to this age are reused: the loss of the coordination store must not overload
# the database.
UNCONFIRMED_AGE_S = 1.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shared(Generic[T]):
    """Loaded rows with their epoch, None if it was unknown; times are monotonic."""

    name: str  # of the epoch
    value: T
    epoch: str | None
    loaded_at_s: float
    fresh_until_s: float
    spread: float


class SharedRows:
    """One event loop. Concurrent callers that know the same epoch share one load."""

    def __init__(
        self, database: HotPathDatabase, freshness: Freshness, *, spread: Callable[[], float], max_organizations: int
    ) -> None:
        self._database = database
        self._freshness = freshness
        self._spread = spread
        self._max_organizations = max_organizations
        # By name of the epoch, the least recently used first.
        self._organizations: OrderedDict[str, Shared[OrganizationAccess]] = OrderedDict()
        self._catalog: Shared[Catalog] | None = None
        self._loading_organizations: SingleFlight[tuple[str, str | None], Shared[OrganizationAccess]] = SingleFlight()
        self._loading_catalog: SingleFlight[str | None, Shared[Catalog]] = SingleFlight()

    def touch(self, name: str) -> None:
        """The organization with this epoch was used."""
        if name in self._organizations:
            self._organizations.move_to_end(name)

    async def organization(
        self, org_id: uuid.UUID, name: str, epoch: str | None, not_before_s: float
    ) -> Shared[OrganizationAccess]:
        """Rows that hold under `epoch`, or, while that is None, that were loaded at `not_before_s` or later.

        Raises: InvalidBearer when the organization is deleted; DatabaseUnavailable.
        """

        async def load() -> Shared[OrganizationAccess]:
            known, loaded_at_s = self._organizations.get(name), time.monotonic()
            row = await self._database.read(BY_ORGANIZATION, str(org_id))
            try:
                value = organization_in(org_id, row)
            except InvalidBearer:
                self._organizations.pop(name, None)
                raise
            made = self._shared(name, value, epoch, loaded_at_s, known)
            put_newest(self._organizations, name, made, self._max_organizations)
            return made

        found = self._organizations.get(name)
        while found is None or not self._is_valid(found, epoch, not_before_s):
            found = await self._loading_organizations.run((name, epoch), load)
            if epoch is not None:  # a load under this epoch serves all who know it, whenever it began
                break
        return found

    async def catalog(self, epoch: str | None, not_before_s: float) -> Shared[Catalog]:
        """As `organization`. Raises: DatabaseUnavailable."""

        async def load() -> Shared[Catalog]:
            known, loaded_at_s = self._catalog, time.monotonic()
            value = await self._database.run_in_thread(catalog_registry.load)
            made = self._catalog = self._shared(epochs.CATALOG, value, epoch, loaded_at_s, known)
            return made

        found = self._catalog
        while found is None or not self._is_valid(found, epoch, not_before_s):
            found = await self._loading_catalog.run(epoch, load)
            if epoch is not None:
                break
        return found

    def _is_valid(self, found: Shared[T], epoch: str | None, not_before_s: float) -> bool:
        if epoch is None:
            return found.loaded_at_s >= not_before_s
        # An empty epoch was never bumped and confirms nothing.
        return bool(epoch) and (
            found.epoch == epoch
            and self._freshness.is_confirmed_by_epochs(found.loaded_at_s, found.fresh_until_s, found.spread)
        )

    def _shared(self, name: str, value: T, epoch: str | None, loaded_at_s: float, known: Shared[T] | None) -> Shared[T]:
        """The loaded rows, or the `known` object if it is equal."""
        spread = self._spread()
        # Callers of different age share one object: results computed for a vendor are looked up by identity.
        kept = known.value if known is not None and known.value == value else value
        return Shared(name, kept, epoch, loaded_at_s, self._freshness.until_s(loaded_at_s, spread), spread)
