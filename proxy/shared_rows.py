"""Rows shared by many callers, for the caller cache's threads: organizations' rights and the catalog."""

from __future__ import annotations

import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from gateway.catalog import registry as catalog_registry
from gateway.catalog.catalog import Catalog
from gateway.coordination import epochs
from gateway.lib.bounded import put_newest
from proxy.caller import OrganizationAccess
from proxy.caller_rows import organization_access

# Half the limit, because a new caller may be built on an organization of this age.
MAX_AGE_S = epochs.IN_FORCE_WITHIN_S / 2
# While epochs cannot be read, rows of up to this age are reused: the loss of the coordination store must not overload
# the database.
UNCONFIRMED_AGE_S = 1.0
# Organizations in memory; the least recently used is dropped first. A round number: with four callers to an
# organization, MAX_CALLERS of the caller cache is full at the same time.
MAX_ORGANIZATIONS = 5_000
_LOCKS = 64  # lock stripes: organizations on one stripe load one after the other
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shared(Generic[T]):
    """Loaded rows with their epoch and load time (monotonic)."""

    value: T
    epoch: str | None
    # Bounds the entry's age, in case a bump was lost.
    loaded_at_s: float

    def is_valid(self, epoch: str | None, not_before_s: float) -> bool:
        """Whether it is valid under `epoch`; while that is None, whether it was loaded at `not_before_s` or later."""
        if epoch is None:
            return self.loaded_at_s >= not_before_s
        # An empty epoch was never bumped and confirms nothing.
        return bool(epoch) and self.epoch == epoch and time.monotonic() - self.loaded_at_s < MAX_AGE_S


class SharedRows:
    """Bounded LRU with one load at a time per organization."""

    def __init__(self) -> None:
        self._organizations: OrderedDict[uuid.UUID, Shared[OrganizationAccess]] = OrderedDict()
        self._catalog: Shared[Catalog] | None = None
        self._sharing = threading.Lock()
        self._loading = [threading.Lock() for _ in range(_LOCKS)]
        self._loading_catalog = threading.Lock()

    def organization(self, org_id: uuid.UUID, epoch: str | None, not_before_s: float) -> Shared[OrganizationAccess]:
        """Raises: InvalidBearer when the organization is deleted; django.db.Error."""
        with self._loading[hash(org_id) % _LOCKS]:
            known = self._organizations.get(org_id)
            if known is None or not known.is_valid(epoch, not_before_s):
                known = _load(lambda: organization_access(org_id), epoch, known)
            with self._sharing:
                put_newest(self._organizations, org_id, known, MAX_ORGANIZATIONS)
            return known

    def catalog(self, epoch: str | None, not_before_s: float) -> Shared[Catalog]:
        """Raises: django.db.Error."""
        with self._loading_catalog:
            if self._catalog is None or not self._catalog.is_valid(epoch, not_before_s):
                self._catalog = _load(catalog_registry.load, epoch, self._catalog)
            return self._catalog


def _load(work: Callable[[], T], epoch: str | None, known: Shared[T] | None) -> Shared[T]:
    """The loaded rows, or the `known` object if it is equal."""
    loaded_at_s = time.monotonic()
    value = work()
    # Callers of different age share one object: results computed for a vendor are looked up by identity.
    return Shared(known.value if known is not None and known.value == value else value, epoch, loaded_at_s)
