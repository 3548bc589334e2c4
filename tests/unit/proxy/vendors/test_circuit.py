"""The circuit breaker's states: in any order of events, one trial at a time and nothing for ever."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from proxy.vendors.circuit import CLOSED, FAILURES_UNTIL_OPEN, LONGEST_OPEN_S, OPEN_S, Circuit, CircuitState


def after_failures(count: int, now_s: float = 0.0) -> Circuit:
    circuit = CLOSED
    for _ in range(count):
        circuit = circuit.failed(now_s)
    return circuit


def test_only_a_row_of_failures_opens() -> None:
    assert after_failures(FAILURES_UNTIL_OPEN - 1).state(0) is CircuitState.CLOSED
    assert after_failures(FAILURES_UNTIL_OPEN).state(0) is CircuitState.OPEN


def test_after_the_pause_one_call_tries() -> None:
    circuit = after_failures(FAILURES_UNTIL_OPEN)
    assert not circuit.may_pass(OPEN_S - 0.1)
    assert circuit.state(OPEN_S) is CircuitState.HALF_OPEN
    assert circuit.may_pass(OPEN_S)
    trying = circuit.trying()
    assert not trying.may_pass(OPEN_S)
    assert trying.given_up(trying.trial).may_pass(OPEN_S)
    assert not trying.given_up(trying.trial + 1).may_pass(OPEN_S), "another call's end is no end of the trial"


def test_the_pause_doubles_up_to_a_bound() -> None:
    circuit, now_s, pauses = after_failures(FAILURES_UNTIL_OPEN), 0.0, []
    for _ in range(6):
        assert circuit.until_s is not None
        pauses.append(circuit.until_s - now_s)
        now_s = circuit.until_s
        circuit = circuit.trying().failed(now_s)
    assert pauses == [10.0, 20.0, 40.0, LONGEST_OPEN_S, LONGEST_OPEN_S, LONGEST_OPEN_S]


def test_late_failures_do_not_prolong_the_pause() -> None:
    circuit = after_failures(FAILURES_UNTIL_OPEN)
    assert circuit.failed(OPEN_S - 1).until_s == circuit.until_s


def test_what_another_process_found() -> None:
    assert CLOSED.failed(0).joined(5, 8.0).until_s == 8.0
    own = after_failures(FAILURES_UNTIL_OPEN)
    assert own.joined(9, 60.0) == own


class Life(RuleBasedStateMachine):
    """One circuit, many calls, a clock."""

    def __init__(self) -> None:
        super().__init__()
        self.circuit = CLOSED
        self.now_s = 0.0
        self.in_a_row = 0
        self.trial: int | None = None
        self.opened_by_others = False

    @rule(seconds=st.floats(0, 90))
    def time_passes(self, seconds: float) -> None:
        self.now_s += seconds

    @rule()
    def a_call_comes(self) -> None:
        state = self.circuit.state(self.now_s)
        passes = self.circuit.may_pass(self.now_s)
        if state is CircuitState.OPEN:
            assert not passes
        if state is CircuitState.CLOSED:
            assert passes
        if state is CircuitState.HALF_OPEN:
            assert passes == (self.trial is None)
            if passes:
                self.circuit = self.circuit.trying()
                self.trial = self.circuit.trial

    @rule()
    def a_failure(self) -> None:
        before = self.circuit.state(self.now_s)
        self.circuit = self.circuit.failed(self.now_s)
        self.in_a_row += 1
        if before is CircuitState.HALF_OPEN:
            assert self.circuit.state(self.now_s) is CircuitState.OPEN
        if self.circuit.state(self.now_s) is CircuitState.OPEN and before is not CircuitState.OPEN:
            self.trial = None

    @rule()
    def an_answer(self) -> None:
        self.circuit = CLOSED
        self.in_a_row, self.trial, self.opened_by_others = 0, None, False

    @precondition(lambda self: self.trial is not None)
    @rule()
    def the_trial_ends_without_a_word(self) -> None:
        assert self.trial is not None
        self.circuit = self.circuit.given_up(self.trial)
        self.trial = None

    @rule(number=st.integers(1, 3), left_s=st.floats(0.1, LONGEST_OPEN_S))
    def another_process_publishes(self, number: int, left_s: float) -> None:
        if self.circuit.until_s is None:
            self.opened_by_others = True
        self.circuit = self.circuit.joined(number, self.now_s + left_s)

    @invariant()
    def it_opens_for_a_reason(self) -> None:
        if self.circuit.state(self.now_s) is not CircuitState.CLOSED:
            assert self.opened_by_others or self.in_a_row >= FAILURES_UNTIL_OPEN

    @invariant()
    def nothing_lasts(self) -> None:
        if self.circuit.until_s is not None:
            assert self.circuit.until_s - self.now_s <= LONGEST_OPEN_S + 1e-6
            over = self.now_s + LONGEST_OPEN_S + 1
            assert self.trial is not None or self.circuit.may_pass(over)
        assert self.circuit.wait_s(self.now_s) >= 1


Life.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestLife = Life.TestCase
