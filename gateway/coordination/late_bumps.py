"""Epoch bumps that the file of one host did not take, because another process held it: tried again until it does.

They live in the process. If it ends before, the maximum age of what is cached ends what they would have ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from gateway.coordination.recovery import Recovery
from gateway.coordination.store import CoordinationStore, CoordinationUnavailable


class LateBumps:
    """For any thread."""

    def __init__(self, store: Callable[[], CoordinationStore]) -> None:
        self._store = store
        self._names: list[str] = []
        self._lock = threading.Lock()
        self._recovery = Recovery(self.send, "late-bumps")

    def add(self, names: Sequence[str]) -> None:
        """Bump these as soon as the store takes them."""
        with self._lock:
            self._names.extend(names)
        self._recovery.begin()

    def send(self) -> bool:
        """Try once; whether nothing is left."""
        with self._lock:
            names = list(self._names)
        if names:
            try:
                self._store().bump_epochs(list(dict.fromkeys(names)))
            except CoordinationUnavailable:
                return False
        with self._lock:
            del self._names[: len(names)]
            return not self._names
