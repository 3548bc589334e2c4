"""Whether the audit database has been away for so long that calls are refused before a vendor is asked.

A moment without the database is bridged: calls go out, and their records wait. After that calls are refused, because
an answer without its row may not be given. While the outage lasts, the writer asks the database once a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import structlog

BRIDGED_S = 1.0
PROBE_PAUSE_S = 1.0
logger = structlog.get_logger(__name__)


class Outage:
    """Kept by the writer's thread and its loops; `is_away` is what the hot path reads.

    A probe that succeeds ends the refusals, but only a committed record ends the outage: the first fault before it
    brings the refusals back at once. A disk that is full lets every probe pass.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.is_away = False
        self._monotonic = monotonic
        self._failing_since: float | None = None
        self._is_on_trial = False
        self._last_commit_s = monotonic()
        self._lock = threading.Lock()

    def committed(self) -> None:
        """A record is durable."""
        self._last_commit_s = now = self._monotonic()
        if self._failing_since is None:
            return
        with self._lock:
            since, self._failing_since = self._failing_since, None
            self.is_away = self._is_on_trial = False
        if since is not None:
            logger.warning("audit.recovered", after_s=round(now - since, 1))

    def failed(self, fault: Exception | None) -> None:
        """A commit failed, or a probe. One log line an outage, without the driver's text: it may quote the row."""
        self._note(self._monotonic(), fault)

    def unanswered(self, since_s: float) -> None:
        """A record has waited since `since_s`, on the monotonic clock, and is not committed."""
        if since_s > self._last_commit_s:
            self._note(since_s, None)

    def probed(self) -> None:
        """The database took a probe."""
        with self._lock:
            self._is_on_trial, self.is_away = self.is_away or self._is_on_trial, False

    def _note(self, since_s: float, fault: Exception | None) -> None:
        with self._lock:
            is_first = self._failing_since is None
            if self._failing_since is None:
                self._failing_since = since_s
            if self._is_on_trial or self._monotonic() - self._failing_since >= BRIDGED_S:
                self.is_away = True
        if is_first:
            name = "no answer" if fault is None else type(fault).__name__
            logger.error("audit.unavailable", fault=name, sqlstate=getattr(fault, "sqlstate", None))
