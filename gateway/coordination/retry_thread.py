"""A background thread that retries until it succeeds, and ends then."""

from __future__ import annotations

import threading
from collections.abc import Callable

# A revocation made while Redis was away must be in force within a second of its return.
PROBE_EVERY_S = 0.5


class RetryThread:
    """Runs `attempt` at once and then every PROBE_EVERY_S, in one thread, until it returns True."""

    def __init__(self, attempt: Callable[[], bool], name: str) -> None:
        self._attempt = attempt
        self._name = name
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._is_requested = self._is_exiting = False

    def start(self) -> None:
        with self._lock:
            self._is_requested = True
            # A process that was forked finds a dead thread here and starts its own.
            is_there = self._thread is not None and self._thread.is_alive() and not self._is_exiting
            if self._stopping.is_set() or is_there:
                return
            self._is_exiting = False
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread for good: `start` starts no other."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._is_requested = False  # `start` during the attempt sets it: another attempt follows
            if not self._attempt():
                self._stopping.wait(PROBE_EVERY_S)
            elif self._may_exit():
                return

    def _may_exit(self) -> bool:
        with self._lock:  # from here on `start` starts a new thread instead of relying on this one
            self._is_exiting = not self._is_requested
            return self._is_exiting
