"""The database in threads that serve no request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.db import close_old_connections

T = TypeVar("T")


def with_own_connection(work: Callable[[], T]) -> T:
    """Django's request signals do not fire here, so connections that died are dropped by hand."""
    close_old_connections()
    try:
        return work()
    finally:
        close_old_connections()
