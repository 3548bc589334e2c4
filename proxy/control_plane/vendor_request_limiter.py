"""Limit on pages and /api requests that wait for vendors. Calls of agents hold no thread and do not count."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from django.conf import settings
from django.db import connection

from gateway.lib.errors import DomainError

# Seconds.
_RETRY_AFTER_S = 5


class TooManyVendorRequests(DomainError):
    """The process's or the organization's limit is reached."""

    code, status = "rate_limited", 429  # nothing was done, so a retry is safe
    message = "Other questions to vendors are still waiting for an answer. Try again in a moment."
    headers: Mapping[str, str] = {"Retry-After": str(_RETRY_AFTER_S)}


def _give_connection_back() -> None:
    # Return the connection to the pool: there are fewer connections than threads, and the vendor may be slow.
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()


class VendorRequestLimiter:
    """`size` slots, at most `per_organization` of one organization. Thread-safe."""

    def __init__(
        self, *, size: int, per_organization: int, before_waiting: Callable[[], None] = _give_connection_back
    ) -> None:
        self._size = size
        # Runs in the thread that is about to wait.
        self._before_waiting = before_waiting
        self._per_organization = per_organization
        self._active: Counter[uuid.UUID] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def slot(self, organization_id: uuid.UUID) -> Iterator[None]:
        """Hold a slot during the block. Raises: TooManyVendorRequests."""
        with self._lock:
            # A waiting request holds a thread that pages need, and the vendor may take its whole deadline. So only part
            # of the threads may wait, one organization has few slots, and a request without one is refused at once.
            is_full = self._active.total() >= self._size
            if is_full or self._active.get(organization_id, 0) >= self._per_organization:
                raise TooManyVendorRequests
            self._active[organization_id] += 1
        try:
            self._before_waiting()
            yield
        finally:
            with self._lock:
                self._active[organization_id] -= 1
                self._active += Counter()  # drops organizations without a slot


vendor_requests = VendorRequestLimiter(
    size=settings.CONCURRENT_VENDOR_REQUESTS, per_organization=settings.CONCURRENT_VENDOR_REQUESTS_OF_ORGANIZATION
)
