"""The audit database's outage: when calls are refused before a vendor gets them.

   well --fault--> bridged --GRACE_S--> away --probe--> on trial --commit--> well
                                           ^--fault---------'

Short outages are bridged: calls are sent, and their records wait. After that calls are refused, because no call may be
answered without its row.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import structlog

GRACE_S = 1.0  # length of an outage before calls are refused
PROBE_PAUSE_S = 1.0  # between probes while the outage lasts
logger = structlog.get_logger(__name__)


class Outage:
    """Written by the writer's thread and its loops; the hot path reads `is_active`."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.is_active = False
        self._monotonic = monotonic
        self._failing_since: float | None = None
        self._is_on_trial = False
        self._last_commit_s = monotonic()
        self._lock = threading.Lock()

    def committed(self) -> None:
        self._last_commit_s = now = self._monotonic()
        if self._failing_since is None:
            return
        with self._lock:
            since, self._failing_since = self._failing_since, None
            self.is_active = self._is_on_trial = False
        if since is not None:
            logger.warning("audit.recovered", after_s=round(now - since, 1))

    def failed(self, fault: Exception | None) -> None:
        self._record_failure(self._monotonic(), fault)

    def unanswered(self, since_s: float) -> None:
        """A record that was written at `since_s` (monotonic seconds) is still not committed."""
        if since_s > self._last_commit_s:
            self._record_failure(since_s, None)

    def probed(self) -> None:
        with self._lock:
            # Only a commit ends the outage: on a full disk every probe succeeds.
            self._is_on_trial, self.is_active = self.is_active or self._is_on_trial, False

    def _record_failure(self, since_s: float, fault: Exception | None) -> None:
        with self._lock:
            is_first = self._failing_since is None
            if self._failing_since is None:
                self._failing_since = since_s
            if self._is_on_trial or self._monotonic() - self._failing_since >= GRACE_S:
                self.is_active = True
        if is_first:
            name = "no answer" if fault is None else type(fault).__name__
            # Once for each outage, without the driver's text, which may quote the row.
            logger.error("audit.unavailable", fault=name, sqlstate=getattr(fault, "sqlstate", None))
