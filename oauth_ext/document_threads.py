"""Threads of their own for fetching clients' documents, each with an event loop of its own.

Whoever runs a document's server, or its name server, decides how long a fetch takes; resolving a name cannot even be
given up. So nothing of it runs where calls are served, a fetch keeps its place until it has really ended, and one
address can take only some of the places.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

THREADS = 8
THREADS_OF_ONE_ADDRESS = 3
PATIENCE_S = 6.0  # a little more than a fetch gives itself

T = TypeVar("T")
_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="client-document")
_busy: Counter[str] = Counter()
_lock = threading.Lock()


class NoThreadFree(Exception):
    """All places are taken, or all that one address may take."""


def run(fetch: Callable[[], Coroutine[Any, Any, T]], *, asked_by: str) -> T:
    """What `fetch` gives, for somebody at the address `asked_by`.

    Raises: NoThreadFree; TimeoutError after PATIENCE_S, and then the fetch ends when it ends; what `fetch` raises.
    """
    with _lock:
        if _busy.total() >= THREADS or _busy[asked_by] >= THREADS_OF_ONE_ADDRESS:
            raise NoThreadFree
        _busy[asked_by] += 1
    work = _threads.submit(_run, fetch, asked_by)
    return work.result(timeout=PATIENCE_S)


def _run(fetch: Callable[[], Coroutine[Any, Any, T]], asked_by: str) -> T:
    try:
        return asyncio.run(fetch())
    finally:
        with _lock:
            _busy[asked_by] -= 1
            if not _busy[asked_by]:
                del _busy[asked_by]
