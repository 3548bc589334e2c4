"""Rate-limit windows of this process alone, used while Redis is unavailable. They carry no epochs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from gateway.coordination import window
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission

MAX_KEYS = 50_000  # some 40 MB of ring windows


class MemoryLimiter:
    """At most MAX_KEYS windows; the least recently used is dropped first. Thread-safe."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._states: OrderedDict[tuple[str, str], window.State] = OrderedDict()
        self._lock = threading.Lock()

    def hit(self, rule: Rule, key: str, units: int = 1) -> Admission:
        with self._lock:
            state = self._states.setdefault((rule.name, key), window.new_state(rule))
            self._states.move_to_end((rule.name, key))
            if len(self._states) > MAX_KEYS:
                self._states.popitem(last=False)
            return Admission.of(rule, window.acquire(state, rule, self._now_ms(), units), epochs=None)

    def peek(self, rule: Rule, key: str) -> Admission:
        with self._lock:
            state = self._states.get((rule.name, key)) or window.new_state(rule)
            return Admission.of(rule, window.peek(state, rule, self._now_ms()), epochs=None)
