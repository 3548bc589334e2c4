"""How many pages and `/api` requests wait for vendors at once. Calls of agents are not among them: they hold no thread.

Somebody else's server may take its whole deadline, and whoever waits for it holds a thread that pages need. So only a
part of a process's room may wait, one organization holds few places of it, and who finds none is told at once.
"""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.conf import settings
from django.db import connection

from gateway.lib.errors import DomainError

_RETRY_AFTER_S = 5


class TooManyQuestions(DomainError):
    """Every place is taken, or each of the organization's."""

    code, status = "rate_limited", 429  # nothing was done, so the same request may be tried again
    message = "Other questions to vendors are still waiting for an answer. Try again in a moment."
    headers: Mapping[str, str] = {"Retry-After": str(_RETRY_AFTER_S)}


class VendorQuestions:
    """`size` places, of which one organization holds at most `per_organization`. Safe from any thread."""

    def __init__(self, *, size: int, per_organization: int) -> None:
        self._size = size
        self._per_organization = per_organization
        self._asking: Counter[uuid.UUID] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def place(self, organization_id: uuid.UUID) -> Iterator[None]:
        """A place for as long as the block runs; a database connection that is not in a transaction is given back.

        Raises: TooManyQuestions.
        """
        with self._lock:
            is_full = self._asking.total() >= self._size
            if is_full or self._asking.get(organization_id, 0) >= self._per_organization:
                raise TooManyQuestions
            self._asking[organization_id] += 1
        try:
            if not connection.in_atomic_block:
                # There are fewer of them than threads, and the vendor may take its time.
                connection.close_if_unusable_or_obsolete()
            yield
        finally:
            with self._lock:
                self._asking[organization_id] -= 1
                self._asking += Counter()  # drops organizations that ask nothing


questions = VendorQuestions(
    size=settings.VENDOR_QUESTIONS_AT_ONCE, per_organization=settings.VENDOR_QUESTIONS_OF_ORGANIZATION_AT_ONCE
)
