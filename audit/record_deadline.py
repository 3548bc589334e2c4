"""The deadline of one record in the writer's queue, kept by its event loop in case the thread hangs."""

from __future__ import annotations

import time

from audit.outage import GRACE_S, Outage
from audit.pending_record import PendingRecord, fail


class RecordDeadline:
    """Reports the outage after GRACE_S, and fails the record's future at its deadline."""

    __slots__ = ("_outage", "_pending", "_since_s", "_timer")

    def __init__(self, pending: PendingRecord, outage: Outage, since_s: float) -> None:
        """Runs in the record's loop; `since_s` is the monotonic time of `write`."""
        self._pending, self._outage, self._since_s = pending, outage, since_s
        self._schedule(time.monotonic())
        pending.future.add_done_callback(lambda _: self._timer.cancel())

    def _schedule(self, now_s: float) -> None:
        # The timer rings at the next of these two moments.
        grace_until_s, expires_s = self._since_s + GRACE_S, self._pending.expires_at
        at_s = min(grace_until_s, expires_s) if now_s < grace_until_s else expires_s
        self._timer = self._pending.loop.call_later(max(0.0, at_s - now_s), self._on_timer)

    def _on_timer(self) -> None:
        now_s = time.monotonic()
        if now_s - self._since_s >= GRACE_S:
            self._outage.unanswered(self._since_s)
        if now_s < self._pending.expires_at:  # a timer may fire slightly early
            self._schedule(now_s)
        else:
            fail((self._pending.future,), "the audit log did not answer in time")
