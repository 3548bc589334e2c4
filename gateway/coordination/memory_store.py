"""Rate windows of this process alone: what a limiter falls back to while Redis is away. It knows no epochs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from gateway.coordination import window
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission

MAX_KEYS = 50_000


class MemoryLimiter:
    """Bounded: the key unused for longest is forgotten first."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._states: OrderedDict[tuple[str, str], window.State] = OrderedDict()
        self._lock = threading.Lock()

    def hit(self, rule: Rule, key: str, units: int = 1) -> Admission:
        """Admit `units` under this process's own count."""
        with self._lock:
            state = self._states.setdefault((rule.name, key), window.new_state(rule))
            self._states.move_to_end((rule.name, key))
            if len(self._states) > MAX_KEYS:
                self._states.popitem(last=False)
            return Admission.of(rule, window.take(state, rule, self._now_ms(), units), epochs=None)

    def peek(self, rule: Rule, key: str) -> Admission:
        """What the next `hit` would meet; nothing is counted or remembered."""
        with self._lock:
            state = self._states.get((rule.name, key)) or window.new_state(rule)
            return Admission.of(rule, window.look(state, rule, self._now_ms()), epochs=None)
