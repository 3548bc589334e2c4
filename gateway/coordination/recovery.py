"""A thread that exists only while something is to be tried again: nothing that people or calls wait for runs in it."""

from __future__ import annotations

import threading
from collections.abc import Callable

# A store that is back is noticed after so long: a revocation made while it was away is in force within a second.
PROBE_EVERY_S = 0.5


class Recovery:
    """Runs `attempt` at once and then every PROBE_EVERY_S, until it returns True. One thread, however many begin it.

    An attempt that returns True is followed by another one if `begin` was called while it ran.
    """

    def __init__(self, attempt: Callable[[], bool], name: str) -> None:
        self._attempt = attempt
        self._name = name
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        self._is_wanted = self._is_leaving = False

    def begin(self) -> None:
        """Start the thread unless it runs. A process that was forked from one where it ran gets its own."""
        with self._lock:
            self._is_wanted = True
            is_there = self._thread is not None and self._thread.is_alive() and not self._is_leaving
            if self._ending.is_set() or is_there:
                return
            self._is_leaving = False
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread, and begin no other."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ending.is_set():
            self._is_wanted = False
            if not self._attempt():
                self._ending.wait(PROBE_EVERY_S)
            elif self._leaves():
                return

    def _leaves(self) -> bool:
        """Whether the thread is done. From then on `begin` starts another: it never relies on one that is leaving."""
        with self._lock:
            self._is_leaving = not self._is_wanted
            return self._is_leaving
