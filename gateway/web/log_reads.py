"""Pages and answers made from the logs and from usage: each organization has a share of those under way at once.

They are the slowest requests of a page or of /api, and the largest organization's are the slowest among them. Without
shares, its dashboards could hold every slot of PAGE_CONCURRENCY.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from gateway.lib.sentences import sentence
from gateway.web.organization_slots import OrganizationSlots

reads = OrganizationSlots(
    size=settings.CONCURRENT_LOG_READS,
    of_owner=settings.CONCURRENT_LOG_READS_OF_ORGANIZATION,
    retry_after_s=1,  # nearly all end earlier
    share_taken=sentence(
        "Other requests for this organization’s logs or usage are in progress. Try again in a moment."
    ),
    slots_taken=sentence("Too many requests for logs and usage are in progress. Try again in a moment."),
)


@contextmanager
def log_read(organization_id: uuid.UUID) -> Iterator[None]:
    """Holds a slot of the organization. Raises: ShareTaken, SlotsTaken."""
    reads.require(organization_id)
    try:
        yield
    finally:
        reads.give_back(organization_id)
