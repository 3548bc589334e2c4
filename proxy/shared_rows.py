"""The rows that many callers share, for the snapshot's threads: an organization's side of decisions, and the catalog.

While its epoch stands it is used for MAX_AGE_S. While nobody can say what the epochs are it is used for a moment: the
loss of the coordination store must not become the loss of the database.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from gateway.catalog import registry as catalog_registry
from gateway.catalog.registry import Catalog
from gateway.coordination import epochs
from proxy.access import OrganizationAccess
from proxy.snapshot_rows import organization_access

MAX_AGE_S = epochs.IN_FORCE_WITHIN_S / 2  # a new caller may be made of an organization as old as that
UNCONFIRMED_AGE_S = 1.0
MAX_ORGANIZATIONS = 5_000
_LOCKS = 64  # organizations that share one wait for each other now and then
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shared(Generic[T]):
    """Loaded rows with their epoch and time (monotonic seconds): a bump that was lost must not last."""

    value: T
    epoch: str | None
    loaded_at_s: float

    def holds(self, epoch: str | None, not_before_s: float) -> bool:
        """Whether it may be used under `epoch`. While that is None: if it was loaded at `not_before_s` or later.

        An epoch that was never bumped vouches for nothing.
        """
        if epoch is None:
            return self.loaded_at_s >= not_before_s
        return bool(epoch) and self.epoch == epoch and time.monotonic() - self.loaded_at_s < MAX_AGE_S


class SharedRows:
    """Bounded; the rows used longest ago are forgotten first. One load at a time for each organization."""

    def __init__(self) -> None:
        self._organizations: OrderedDict[uuid.UUID, Shared[OrganizationAccess]] = OrderedDict()
        self._catalog: Shared[Catalog] | None = None
        self._sharing = threading.Lock()
        self._loading = [threading.Lock() for _ in range(_LOCKS)]
        self._loading_catalog = threading.Lock()

    def organization(self, org_id: uuid.UUID, epoch: str | None, not_before_s: float) -> Shared[OrganizationAccess]:
        """The organization's side. Raises: InvalidBearer when it is gone; django.db.Error."""
        with self._loading[hash(org_id) % _LOCKS]:
            known = self._organizations.get(org_id)
            if known is None or not known.holds(epoch, not_before_s):
                known = _load(lambda: organization_access(org_id), epoch, known)
            with self._sharing:
                self._organizations[org_id] = known
                self._organizations.move_to_end(org_id)
                if len(self._organizations) > MAX_ORGANIZATIONS:
                    self._organizations.popitem(last=False)
            return known

    def catalog(self, epoch: str | None, not_before_s: float) -> Shared[Catalog]:
        """The catalog. Raises: django.db.Error."""
        with self._loading_catalog:
            if self._catalog is None or not self._catalog.holds(epoch, not_before_s):
                self._catalog = _load(catalog_registry.load, epoch, self._catalog)
            return self._catalog


def _load(work: Callable[[], T], epoch: str | None, known: Shared[T] | None) -> Shared[T]:
    """The rows just loaded; the `known` object if it says the same.

    Callers of different age share objects: results computed for a vendor are looked up by the object.
    """
    loaded_at_s = time.monotonic()
    value = work()
    return Shared(known.value if known is not None and known.value == value else value, epoch, loaded_at_s)
