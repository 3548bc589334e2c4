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


def take(state: State, rule: Rule, now_ms: int, units: int = 1) -> Take:
    """Admit `units` together or none of them. More than the limit count as it: an empty window refuses nothing."""
    if units > rule.limit:
        units = rule.limit
    if isinstance(state, LogState):
        return take_from_log(state, rule, now_ms, units)
    return take_from_ring(state, rule, now_ms, units)


def look(state: State, rule: Rule, now_ms: int) -> Take:
    """What `take` would meet; the state stays as it is, and `remaining` is what the window still admits."""
    if isinstance(state, LogState):
        edge = now_ms - rule.window_s * 1000
        inside = [moment for moment in state.taken_ms if moment > edge]
        left = max(0, rule.limit - len(inside))
        return Take(left > 0, left, 0 if left else max(1, inside[-rule.limit] - edge))
    width_ms = rule.window_s * 1000 // SLICES
    index = now_ms // width_ms
    copy = replace(state, counts=[*state.counts])
    _advance(copy, index)
    left = max(0, rule.limit - copy.total)
    excess = copy.total + 1 - rule.limit
    return Take(left > 0, left, 0 if left else _until_gone(copy, excess, index, width_ms, now_ms))


def take_from_log(state: LogState, rule: Rule, now_ms: int, units: int = 1) -> Take:
    """Admit `units`, at most the limit, if with them no more than the limit lie in the window that ends now."""
    edge = now_ms - rule.window_s * 1000
    state.taken_ms = [moment for moment in state.taken_ms if moment > edge]
    left = rule.limit - len(state.taken_ms) - units
    if left < 0:
        return Take(False, max(0, left + units), max(1, state.taken_ms[units - 1 - rule.limit] - edge))
    state.taken_ms += [now_ms] * units
    return Take(True, left, 0)


def take_from_ring(state: RingState, rule: Rule, now_ms: int, units: int = 1) -> Take:
    """Admit `units`, at most the limit, if with them the slices that touch the window hold no more than the limit."""
    width_ms = rule.window_s * 1000 // SLICES
    index = now_ms // width_ms
    if index > state.last:
        _advance(state, index)
    left = rule.limit - state.total - units
    if left < 0:
        return Take(False, max(0, left + units), _until_gone(state, -left, index, width_ms, now_ms))
    state.counts[index % SLOTS] += units
    state.total += units
    return Take(True, left, 0)


def _advance(state: RingState, index: int) -> None:
    if index - state.last >= SLOTS:
        state.counts = [0] * SLOTS
        state.total = 0
    else:
        for slot in range(state.last + 1, index + 1):
            state.total -= state.counts[slot % SLOTS]
            state.counts[slot % SLOTS] = 0
    state.last = max(state.last, index)  # a clock that steps back must not reopen old slices


def _until_gone(state: RingState, excess: int, index: int, width_ms: int, now_ms: int) -> int:
    """Milliseconds until slices with so many have left, the oldest first."""
    last = index
    for slot in range(index - SLICES, index + 1):
        excess -= state.counts[slot % SLOTS]
        if excess <= 0:
            last = slot
            break
    return max(1, (last + SLOTS) * width_ms - now_ms)
