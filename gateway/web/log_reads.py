"""Pages and answers made from the logs and from usage: each organization has a share of those under way at once.

They are the slowest requests of a page or of /api, and the largest organization's are the slowest among them. Without
shares, its dashboards could hold every slot of PAGE_CONCURRENCY.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.conf import settings

from gateway.lib.errors import DomainError
from gateway.lib.shared_slots import SharedSlots, SlotResult

# Seconds in `Retry-After`: nearly all end earlier.
_RETRY_AFTER_S = 1

reads: SharedSlots[uuid.UUID] = SharedSlots(
    size=settings.CONCURRENT_LOG_READS, of_owner=settings.CONCURRENT_LOG_READS_OF_ORGANIZATION
)


class TooManyReads(DomainError):
    """The organization's limit is reached."""

    code, status = "rate_limited", 429
    message = "Other requests for the logs or the usage of this organization are under way. Try again in a moment."
    headers: Mapping[str, str] = {"Retry-After": str(_RETRY_AFTER_S)}


class ReadsBusy(DomainError):
    """The process's limit is reached."""

    code, status = "overloaded", 503
    message = "Too many requests for logs and usage are under way. Try again in a moment."
    headers: Mapping[str, str] = {"Retry-After": str(_RETRY_AFTER_S)}


@contextmanager
def log_read(organization_id: uuid.UUID) -> Iterator[None]:
    """Holds a slot of the organization. Raises: TooManyReads, ReadsBusy."""
    match reads.take(organization_id):
        case SlotResult.OWNER_HAS_ALL_OF_ITS:
            raise TooManyReads
        case SlotResult.NONE_FREE:
            raise ReadsBusy
    try:
        yield
    finally:
        reads.give_back(organization_id)
