"""Retries epoch bumps that the SQLite file did not take because another process had locked it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from gateway.coordination.retry_thread import RetryThread
from gateway.coordination.store import CoordinationStore, CoordinationUnavailable


class RetriedBumps:
    def __init__(self, store: Callable[[], CoordinationStore]) -> None:
        self._store = store
        self._names: list[str] = []  # lost with the process: the maximum age of cache entries bounds the delay
        self._lock = threading.Lock()
        self._retry_thread = RetryThread(self.send, "late-bumps")

    def add(self, names: Sequence[str]) -> None:
        with self._lock:
            self._names.extend(names)
        self._retry_thread.start()

    def send(self) -> bool:
        """Try once; True when nothing is left to send."""
        with self._lock:
            names = list(self._names)
        if names:
            try:
                self._store().bump_epochs(list(dict.fromkeys(names)))
            except CoordinationUnavailable:
                return False
        with self._lock:  # names added meanwhile stay
            del self._names[: len(names)]
            return not self._names
