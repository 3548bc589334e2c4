"""Limit on pages and /api requests that wait for vendors. Calls of agents hold no thread and do not count."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from django.conf import settings

from gateway.lib.database_threads import give_connections_back
from gateway.lib.errors import DomainError
from gateway.lib.sentences import sentence
from gateway.lib.shared_slots import SharedSlots, SlotResult

# Seconds.
_RETRY_AFTER_S = 5


class TooManyVendorRequests(DomainError):
    """The process's or the organization's limit is reached."""

    code, status = "rate_limited", 429  # nothing was done, so a retry is safe
    message = sentence("Other vendor requests are still in progress. Try again in a moment.")
    headers: Mapping[str, str] = {"Retry-After": str(_RETRY_AFTER_S)}


class VendorRequestLimiter:
    """`size` slots, at most `per_organization` of one organization. Thread-safe."""

    def __init__(
        self, *, size: int, per_organization: int, before_waiting: Callable[[], None] = give_connections_back
    ) -> None:
        # A waiting request holds a thread that pages need, and the vendor may take its whole deadline. So only part of
        # the threads may wait, one organization has few slots, and a request without one is refused at once.
        self.slots: SharedSlots[uuid.UUID] = SharedSlots(size=size, of_owner=per_organization)
        # Runs in the thread that is about to wait: there are fewer connections than threads, and vendors may be slow.
        self._before_waiting = before_waiting

    @contextmanager
    def slot(self, organization_id: uuid.UUID) -> Iterator[None]:
        """Hold a slot during the block. Raises: TooManyVendorRequests."""
        if self.slots.take(organization_id) is not SlotResult.TAKEN:
            raise TooManyVendorRequests
        try:
            self._before_waiting()
            yield
        finally:
            self.slots.give_back(organization_id)


vendor_requests = VendorRequestLimiter(
    size=settings.CONCURRENT_VENDOR_REQUESTS, per_organization=settings.CONCURRENT_VENDOR_REQUESTS_OF_ORGANIZATION
)
