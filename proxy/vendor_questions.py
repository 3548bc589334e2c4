"""How many pages and `/api` requests wait for vendors at once. Calls of agents are not among them: they hold no thread.

Somebody else's server may take its whole deadline, and whoever waits for it holds a thread that pages need. So only a
part of a process's room may wait, one organization holds few places of it, and who finds none is told at once.
"""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
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


def _give_connection_back() -> None:
    """To the pool: there are fewer connections than threads, and the vendor may take its time."""
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()


class VendorQuestions:
    """`size` places, of which one organization holds at most `per_organization`. Safe from any thread.

    `before_waiting` runs in the thread that is about to wait.
    """

    def __init__(
        self, *, size: int, per_organization: int, before_waiting: Callable[[], None] = _give_connection_back
    ) -> None:
        self._size = size
        self._before_waiting = before_waiting
        self._per_organization = per_organization
        self._asking: Counter[uuid.UUID] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def place(self, organization_id: uuid.UUID) -> Iterator[None]:
        """A place for as long as the block runs.

        Raises: TooManyQuestions.
        """
        with self._lock:
            is_full = self._asking.total() >= self._size
            if is_full or self._asking.get(organization_id, 0) >= self._per_organization:
                raise TooManyQuestions
            self._asking[organization_id] += 1
        try:
            self._before_waiting()
            yield
        finally:
            with self._lock:
                self._asking[organization_id] -= 1
                self._asking += Counter()  # drops organizations that ask nothing


questions = VendorQuestions(
    size=settings.VENDOR_QUESTIONS_AT_ONCE, per_organization=settings.VENDOR_QUESTIONS_OF_ORGANIZATION_AT_ONCE
)
