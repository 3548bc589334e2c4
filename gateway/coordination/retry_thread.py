"""A background thread that retries until it succeeds, and ends then."""

from __future__ import annotations

import threading
from collections.abc import Callable

# A revocation made while Redis was away must be in force within a second of its return.
PROBE_EVERY_S = 0.5


class Recovery:
    """Runs `attempt` at once and then every PROBE_EVERY_S, in one thread, until it returns True."""

    def __init__(self, attempt: Callable[[], bool], name: str) -> None:
        self._attempt = attempt
        self._name = name
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        self._is_wanted = self._is_leaving = False

    def begin(self) -> None:
        with self._lock:
            self._is_wanted = True
            # A process that was forked finds a dead thread here and starts its own.
            is_there = self._thread is not None and self._thread.is_alive() and not self._is_leaving
            if self._ending.is_set() or is_there:
                return
            self._is_leaving = False
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread for good: `begin` starts no other."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ending.is_set():
            self._is_wanted = False  # `begin` during the attempt sets it: another attempt follows
            if not self._attempt():
                self._ending.wait(PROBE_EVERY_S)
            elif self._leaves():
                return

    def _leaves(self) -> bool:
        with self._lock:  # from here on `begin` starts a new thread instead of relying on this one
            self._is_leaving = not self._is_wanted
            return self._is_leaving
