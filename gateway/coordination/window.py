"""Pure: sliding rate-limit windows. No window holds more than the limit; refused attempts do not count.

`redis_scripts.py` is the same in Lua; one contract test covers both.   Spec: §8 · D20
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec

from gateway.coordination.rules import Rule

SLICES = 60  # a refusal comes at most a sixtieth of the window early
SLOTS = SLICES + 1  # the slice that is partly inside the window counts in full


@dataclass(slots=True)
class LogState:
    """Exact: the time of each admission in Unix milliseconds, oldest first."""

    taken_ms: list[int] = field(default_factory=list)


# The ring counts the oldest, partly expired slice in full: it may refuse one slice early, never admits too many.
@dataclass(slots=True)
class RingState:
    """Counts per slice; `last` is the newest slice counted, `total` the sum of all slots."""

    last: int = 0
    total: int = 0
    counts: list[int] = field(default_factory=lambda: [0] * SLOTS)


class Decision(msgspec.Struct, frozen=True):
    """`remaining` units; the next may come after `retry_after_ms`, 0 when allowed."""

    allowed: bool
    remaining: int
    retry_after_ms: int


State = LogState | RingState


def new_state(rule: Rule) -> State:
    return LogState() if rule.keeps_log else RingState()


def acquire(state: State, rule: Rule, now_ms: int, units: int = 1) -> Decision:
    """Admit all `units` or none. More units than the limit count as the limit."""
    if units > rule.limit:
        units = rule.limit
    if isinstance(state, LogState):
        return acquire_in_log(state, rule, now_ms, units)
    return acquire_in_ring(state, rule, now_ms, units)


def peek(state: State, rule: Rule, now_ms: int) -> Decision:
    """The answer `acquire` would give; the state stays unchanged. `remaining` is what the window still admits."""
    if isinstance(state, LogState):
        edge = now_ms - rule.window_s * 1000
        inside = [moment for moment in state.taken_ms if moment > edge]
        left = max(0, rule.limit - len(inside))
        return Decision(left > 0, left, 0 if left else max(1, inside[-rule.limit] - edge))
    width_ms = rule.window_s * 1000 // SLICES
    index = now_ms // width_ms
    copy = replace(state, counts=[*state.counts])
    _advance(copy, index)
    left = max(0, rule.limit - copy.total)
    excess = copy.total + 1 - rule.limit
    return Decision(left > 0, left, 0 if left else _wait_ms(copy, excess, index, width_ms, now_ms))


def acquire_in_log(state: LogState, rule: Rule, now_ms: int, units: int = 1) -> Decision:
    edge = now_ms - rule.window_s * 1000
    state.taken_ms = [moment for moment in state.taken_ms if moment > edge]
    left = rule.limit - len(state.taken_ms) - units
    if left < 0:
        return Decision(False, max(0, left + units), max(1, state.taken_ms[units - 1 - rule.limit] - edge))
    state.taken_ms += [now_ms] * units
    return Decision(True, left, 0)


def acquire_in_ring(state: RingState, rule: Rule, now_ms: int, units: int = 1) -> Decision:
    width_ms = rule.window_s * 1000 // SLICES
    index = now_ms // width_ms
    if index > state.last:
        _advance(state, index)
    left = rule.limit - state.total - units
    if left < 0:
        return Decision(False, max(0, left + units), _wait_ms(state, -left, index, width_ms, now_ms))
    state.counts[index % SLOTS] += units
    state.total += units
    return Decision(True, left, 0)


def _advance(state: RingState, index: int) -> None:
    if index - state.last >= SLOTS:
        state.counts = [0] * SLOTS
        state.total = 0
    else:
        for slot in range(state.last + 1, index + 1):
            state.total -= state.counts[slot % SLOTS]
            state.counts[slot % SLOTS] = 0
    state.last = max(state.last, index)  # a clock that steps back must not reopen slices that were cleared


def _wait_ms(state: RingState, excess: int, index: int, width_ms: int, now_ms: int) -> int:
    """Milliseconds until slices that hold `excess` admissions have left the window, oldest first."""
    last = index
    for slot in range(index - SLICES, index + 1):
        excess -= state.counts[slot % SLOTS]
        if excess <= 0:
            last = slot
            break
    return max(1, (last + SLOTS) * width_ms - now_ms)
