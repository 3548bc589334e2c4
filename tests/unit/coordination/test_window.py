"""The window arithmetic, against a slow and obvious model."""

from __future__ import annotations

from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from gateway.coordination.rules import Rule
from gateway.coordination.window import LogState, RingState, acquire, acquire_in_log, acquire_in_ring, new_state, peek

SMALL = Rule("small", limit=3, window_s=60)
LARGE = Rule("large", limit=150, window_s=60)
gaps = st.lists(st.integers(min_value=0, max_value=40_000), max_size=60)


def test_log_refuses_the_next_one_until_the_oldest_leaves() -> None:
    state = LogState()
    assert [acquire_in_log(state, SMALL, moment).allowed for moment in (0, 10, 20, 30)] == [True, True, True, False]
    refused = acquire_in_log(state, SMALL, 59_999)
    assert (refused.allowed, refused.retry_after_ms) == (False, 1)
    assert acquire_in_log(state, SMALL, 60_000).allowed


@given(gaps)
def test_log_admits_whenever_fewer_than_the_limit_lie_in_the_window(steps: list[int]) -> None:
    state, admitted, now = LogState(), [], 0
    for step in steps:
        now += step
        inside = [moment for moment in admitted if moment > now - 60_000]
        taken = acquire_in_log(state, SMALL, now)
        assert taken.allowed == (len(inside) < SMALL.limit)
        if taken.allowed:
            admitted.append(now)


@given(gaps, st.integers(min_value=1, max_value=40))
def test_ring_never_admits_more_than_the_limit_in_any_window(steps: list[int], burst: int) -> None:
    state, admitted, now = RingState(), [], 0
    for step in steps:
        now += step
        for _ in range(burst):
            if acquire_in_ring(state, LARGE, now).allowed:
                admitted.append(now)
    for start in admitted:
        assert sum(1 for moment in admitted if start <= moment < start + 60_000) <= LARGE.limit


@given(st.sampled_from([SMALL, LARGE]), gaps, st.integers(min_value=1, max_value=200))
def test_units_are_admitted_together_or_not_at_all(rule: Rule, steps: list[int], units: int) -> None:
    state, admitted, now = new_state(rule), [], 0
    for step in steps:
        now += step
        before = peek(state, rule, now).remaining
        taken = acquire(state, rule, now, units)
        cost = min(units, rule.limit)
        assert taken.allowed == (before >= cost)
        assert taken.remaining == peek(state, rule, now).remaining == before - (cost if taken.allowed else 0)
        admitted += [now] * (cost if taken.allowed else 0)
        assert sum(1 for moment in admitted if moment > now - 60_000) <= rule.limit
        if not taken.allowed:
            assert acquire(deepcopy(state), rule, now + taken.retry_after_ms, units).allowed
            assert not acquire(deepcopy(state), rule, now + taken.retry_after_ms - 1, units).allowed


@given(gaps)
def test_ring_lets_a_client_in_that_waits_as_asked(steps: list[int]) -> None:
    state, now = RingState(), 0
    for step in steps:
        now += step
        taken = acquire_in_ring(state, LARGE, now)
        while taken.allowed:
            taken = acquire_in_ring(state, LARGE, now)
        assert 0 < taken.retry_after_ms <= 61_000
        now += taken.retry_after_ms
        assert acquire_in_ring(state, LARGE, now).allowed


def test_ring_holds_when_the_clock_steps_back() -> None:
    state = RingState()
    while acquire_in_ring(state, LARGE, 600_000).allowed:
        pass
    assert not acquire_in_ring(state, LARGE, 590_000).allowed


@given(gaps, st.sampled_from([SMALL, LARGE]), st.integers(min_value=1, max_value=60))
def test_a_peek_foresees_what_the_next_one_meets_and_changes_nothing(steps: list[int], rule: Rule, burst: int) -> None:
    state, now = new_state(rule), 0
    for step in steps:
        now += step
        for _ in range(burst):
            before = deepcopy(state)
            seen = peek(state, rule, now)
            assert state == before
            taken = acquire(state, rule, now)
            assert (seen.allowed, seen.retry_after_ms) == (taken.allowed, taken.retry_after_ms)
            assert seen.remaining == taken.remaining + (1 if taken.allowed else 0)


def test_a_peek_holds_when_the_clock_steps_back() -> None:
    state = RingState()
    while acquire_in_ring(state, LARGE, 600_000).allowed:
        pass
    assert not peek(state, LARGE, 590_000).allowed
