"""Pure: sliding rate windows. Never more than the limit inside any window, refused attempts do not count.

Two shapes. A log keeps the moment of each admission and is exact. A ring counts in slices of a sixtieth of the window
and counts the slice that is only partly inside as if it were wholly inside: it may refuse up to one slice early and
never admits one too many. `redis_store.py` says the same in Lua; one contract test holds both to it.

Spec: §8 · D20
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gateway.coordination.rules import Rule

SLICES = 60
SLOTS = SLICES + 1


@dataclass(slots=True)
class LogState:
    """Admission times in milliseconds, oldest first."""

    taken_ms: list[int] = field(default_factory=list)


@dataclass(slots=True)
class RingState:
    """Counts per slice; `last` is the newest slice counted, `total` the sum of all slots."""

    last: int = 0
    total: int = 0
    counts: list[int] = field(default_factory=lambda: [0] * SLOTS)


@dataclass(frozen=True, slots=True)
class Take:
    """`allowed`, how many are left, and after how many milliseconds the next may come (0 when allowed)."""

    allowed: bool
    remaining: int
    retry_after_ms: int


State = LogState | RingState


def new_state(rule: Rule) -> State:
    """An empty window of the shape the rule asks for."""
    return LogState() if rule.keeps_log else RingState()


def take(state: State, rule: Rule, now_ms: int) -> Take:
    """Admit once by the arithmetic that fits the state."""
    return take_from_log(state, rule, now_ms) if isinstance(state, LogState) else take_from_ring(state, rule, now_ms)


def look(state: State, rule: Rule, now_ms: int) -> Take:
    """What `take` would meet; the state stays as it is, and `remaining` is what the window still admits."""
    if isinstance(state, LogState):
        edge = now_ms - rule.window_s * 1000
        inside = [moment for moment in state.taken_ms if moment > edge]
        left = max(0, rule.limit - len(inside))
        return Take(left > 0, left, 0 if left else max(1, inside[0] - edge))
    width_ms = rule.window_s * 1000 // SLICES
    index = now_ms // width_ms
    copy = replace(state, counts=[*state.counts])
    _advance(copy, index)
    left = max(0, rule.limit - copy.total)
    return Take(left > 0, left, 0 if left else _until_oldest_leaves(copy, index, width_ms, now_ms))


def take_from_log(state: LogState, rule: Rule, now_ms: int) -> Take:
    """Admit once if fewer than the limit lie in the window that ends now."""
    edge = now_ms - rule.window_s * 1000
    state.taken_ms = [moment for moment in state.taken_ms if moment > edge]
    if len(state.taken_ms) >= rule.limit:
        return Take(False, 0, max(1, state.taken_ms[0] - edge))
    state.taken_ms.append(now_ms)
    return Take(True, rule.limit - len(state.taken_ms), 0)


def take_from_ring(state: RingState, rule: Rule, now_ms: int) -> Take:
    """Admit once if the slices that touch the window hold fewer than the limit."""
    width_ms = rule.window_s * 1000 // SLICES
    index = now_ms // width_ms
    _advance(state, index)
    if state.total >= rule.limit:
        return Take(False, 0, _until_oldest_leaves(state, index, width_ms, now_ms))
    state.counts[index % SLOTS] += 1
    state.total += 1
    return Take(True, rule.limit - state.total, 0)


def _advance(state: RingState, index: int) -> None:
    if index - state.last >= SLOTS:
        state.counts = [0] * SLOTS
        state.total = 0
    else:
        for slot in range(state.last + 1, index + 1):
            state.total -= state.counts[slot % SLOTS]
            state.counts[slot % SLOTS] = 0
    state.last = max(state.last, index)  # a clock that steps back must not reopen old slices


def _until_oldest_leaves(state: RingState, index: int, width_ms: int, now_ms: int) -> int:
    oldest = next((slot for slot in range(index - SLICES, index + 1) if state.counts[slot % SLOTS]), index)
    return max(1, (oldest + SLOTS) * width_ms - now_ms)
