from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.db import close_old_connections

T = TypeVar("T")


def with_own_connection(work: Callable[[], T]) -> T:
    """Run `work` in a thread that serves no request, and drop dead database connections."""
    # Django's request signals, which do this for pages, do not fire in such a thread.
    close_old_connections()
    try:
        return work()
    finally:
        close_old_connections()
