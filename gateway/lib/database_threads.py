from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.db import connections

T = TypeVar("T")


def with_own_connection(work: Callable[[], T]) -> T:
    """Run `work` in a thread that is in no view, and drop dead database connections."""
    # Django's request signals, which do this for pages, do not fire around such work.
    give_connections_back()
    try:
        return work()
    finally:
        give_connections_back()


def give_connections_back() -> None:
    """Return the thread's connections to their pool, except in a transaction, which would be lost."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
