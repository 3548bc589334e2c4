"""A thread pool for fetching client documents.

The owner of a document's server, or of its name server, decides how long a fetch takes, and a name resolution cannot
be cancelled. So fetches run apart from calls, keep their thread until they end, and share the pool by address.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from gateway.lib.bounded import put_newest

# One address may take three threads. The last two are for addresses that fetched a document before and hold none.
THREADS = 8
THREADS_OF_ONE_ADDRESS = 3
THREADS_KEPT = 2
# Addresses with a successful fetch, in memory; the oldest leaves first.
REMEMBERED_ADDRESSES = 1_000
PATIENCE_S = 6.0  # slightly above the timeout of a fetch

T = TypeVar("T")
_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="client-document")
_busy: Counter[str] = Counter()
_succeeded: OrderedDict[str, None] = OrderedDict()  # addresses with a fetched document, the latest last
_lock = threading.Lock()


class NoThreadFree(Exception):
    """All threads are busy, or all that one address may take."""


def run(fetch: Callable[[], T], *, asked_by: str) -> T:
    """Raises: NoThreadFree; TimeoutError after PATIENCE_S, while the fetch goes on; the errors of `fetch`."""
    with _lock:
        if not _has_place_for(asked_by):
            raise NoThreadFree
        _busy[asked_by] += 1
    work = _threads.submit(_run, fetch, asked_by)
    return work.result(timeout=PATIENCE_S)


def _has_place_for(address: str) -> bool:
    # The caller holds the lock.
    free, held = THREADS - _busy.total(), _busy[address]
    if free <= THREADS_KEPT:
        return free > 0 and held == 0 and address in _succeeded
    return held < THREADS_OF_ONE_ADDRESS


def _remember(address: str) -> None:
    with _lock:
        put_newest(_succeeded, address, None, REMEMBERED_ADDRESSES)


def _run(fetch: Callable[[], T], asked_by: str) -> T:
    try:
        fetched = fetch()
        _remember(asked_by)
        return fetched
    finally:
        with _lock:
            _busy[asked_by] -= 1
            if not _busy[asked_by]:
                del _busy[asked_by]
