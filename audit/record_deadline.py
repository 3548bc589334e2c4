"""The deadline of one record in the writer's queue, kept by its event loop in case the thread hangs."""

from __future__ import annotations

import time

from audit.outage import BRIDGED_S, Outage
from audit.pending_record import Waiting, fail


class Alarm:
    """Reports the outage after BRIDGED_S, and fails the record's future at its deadline."""

    __slots__ = ("_outage", "_since_s", "_timer", "_waiting")

    def __init__(self, waiting: Waiting, outage: Outage, since_s: float) -> None:
        """Runs in the record's loop; `since_s` is the monotonic time of `write`."""
        self._waiting, self._outage, self._since_s = waiting, outage, since_s
        self._set(time.monotonic())
        waiting.future.add_done_callback(lambda _: self._timer.cancel())

    def _set(self, now_s: float) -> None:
        # The timer rings at the next of these two moments.
        bridged_until_s, expires_s = self._since_s + BRIDGED_S, self._waiting.expires_at
        at_s = min(bridged_until_s, expires_s) if now_s < bridged_until_s else expires_s
        self._timer = self._waiting.loop.call_later(max(0.0, at_s - now_s), self._ring)

    def _ring(self) -> None:
        now_s = time.monotonic()
        if now_s - self._since_s >= BRIDGED_S:
            self._outage.unanswered(self._since_s)
        if now_s < self._waiting.expires_at:  # a timer may fire slightly early
            self._set(now_s)
        else:
            fail((self._waiting.future,), "the audit log did not answer in time")
