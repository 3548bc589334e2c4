"""Rows that the tests of one module share: made once, and rolled back behind the last of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db import transaction
from pytest_django import DjangoDbBlocker

T = TypeVar("T")


@contextmanager
def rows_of_module(blocker: DjangoDbBlocker, make: Callable[[], T]) -> Iterator[T]:
    """Yields the result of `make`. A test's own changes are rolled back behind it, as ever.

    For fixtures with `scope="module"`, in modules whose tests neither commit nor read from other threads.
    """
    outer = transaction.atomic()
    outer._from_testcase = True  # as Django marks a test's own: a durable block inside stands for a commit
    with blocker.unblock():
        outer.__enter__()
    try:
        with blocker.unblock():
            made = make()
        yield made
    finally:
        with blocker.unblock():
            transaction.set_rollback(True)
            outer.__exit__(None, None, None)
