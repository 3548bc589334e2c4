"""Which calls count for which circuit: what one organization stores or sends never holds back another's calls."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

import pytest

from gateway.coordination.store import CoordinationUnavailable
from gateway.lib import clock
from proxy.outcomes import VendorFault
from proxy.vendors import circuits as circuits_module
from proxy.vendors import shared_circuits
from proxy.vendors.circuit import FAILURES_UNTIL_OPEN, OPEN_S, CircuitState
from proxy.vendors.circuits import Circuits
from proxy.vendors.errors import Sign, VendorProblem
from proxy.vendors.pool import Destination, PoolKey


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Board:
    """The part of the coordination store that is used."""

    def __init__(self) -> None:
        self.states: dict[str, bytes] = {}
        self.is_away = False

    def put_health(self, vendor: str, state: bytes, ttl_s: int) -> None:
        if self.is_away:
            raise CoordinationUnavailable("away")
        self.states[vendor] = state

    def health(self, vendors: Sequence[str]) -> Mapping[str, bytes]:
        if self.is_away:
            raise CoordinationUnavailable("away")
        return {vendor: self.states[vendor] for vendor in vendors if vendor in self.states}


def destination(*, fixed: bool = True, vendor: str = "acme", org: uuid.UUID | None = None) -> Destination:
    key = PoolKey.of(org or uuid.uuid4(), vendor, uuid.uuid4(), "http://vendor.example/mcp", {})
    return Destination(key, lambda: ("", {}), fixed_address=fixed)


def fail(circuits: Circuits, where: Destination, sign: Sign, times: int = FAILURES_UNTIL_OPEN) -> None:
    for _ in range(times):
        circuits.note(where, sign)


def is_let_through(circuits: Circuits, where: Destination) -> bool:
    try:
        circuits.leave(circuits.enter(where))
    except VendorProblem as problem:
        return problem.fault is not VendorFault.UNAVAILABLE or not problem.retry_after_s
    return True


async def test_a_vendor_that_nobody_can_reach_is_left_alone_by_all() -> None:
    circuits = Circuits()
    fail(circuits, destination(), Sign.UNREACHED)
    assert not is_let_through(circuits, destination())
    assert is_let_through(circuits, destination(vendor="globex"))


async def test_failures_of_several_organizations_add_up_where_the_address_is_the_catalogs() -> None:
    circuits = Circuits()
    for _ in range(FAILURES_UNTIL_OPEN):
        circuits.note(destination(), Sign.UNREACHED)
    assert not is_let_through(circuits, destination())


@pytest.mark.parametrize("sign", [Sign.UNREACHED, Sign.UNANSWERED])
async def test_an_address_of_a_customers_own_is_the_customers_own_trouble(sign: Sign) -> None:
    circuits = Circuits()
    wrong = destination(fixed=False)
    fail(circuits, wrong, sign, 50)
    assert not is_let_through(circuits, wrong)
    assert is_let_through(circuits, destination(fixed=False))
    assert is_let_through(circuits, destination(fixed=True))


async def test_calls_that_are_not_answered_count_for_their_credential_only() -> None:
    circuits = Circuits()
    poisoned = destination()
    fail(circuits, poisoned, Sign.UNANSWERED, 50)
    assert not is_let_through(circuits, poisoned)
    assert is_let_through(circuits, destination())


@pytest.mark.parametrize("sign", [Sign.ANSWERED, Sign.NOTHING])
async def test_what_is_no_failure_of_the_way_opens_nothing(sign: Sign) -> None:
    circuits = Circuits()
    where = destination()
    fail(circuits, where, sign, 500)
    assert is_let_through(circuits, where)
    assert not circuits.has_trouble


async def test_an_answer_in_between_begins_anew() -> None:
    circuits = Circuits()
    where = destination()
    for _ in range(3):
        fail(circuits, where, Sign.UNREACHED, FAILURES_UNTIL_OPEN - 1)
        circuits.note(destination(), Sign.ANSWERED)
    assert is_let_through(circuits, where)
    fail(circuits, where, Sign.UNANSWERED, FAILURES_UNTIL_OPEN - 1)
    circuits.note(destination(), Sign.ANSWERED)
    fail(circuits, where, Sign.UNANSWERED, 1)
    assert not is_let_through(circuits, where), "another credential's answer says nothing about this one's"


async def test_half_open_lets_one_through() -> None:
    now = Clock()
    circuits = Circuits(monotonic=now)
    where = destination()
    fail(circuits, where, Sign.UNREACHED)
    now.now_s += OPEN_S
    trial = circuits.enter(where)
    assert trial
    assert not is_let_through(circuits, destination())
    circuits.leave(trial)
    trial = circuits.enter(where)
    circuits.note(where, Sign.UNREACHED)
    circuits.leave(trial)
    assert not is_let_through(circuits, where)
    now.now_s += 2 * OPEN_S
    trial = circuits.enter(where)
    circuits.note(where, Sign.ANSWERED)
    circuits.leave(trial)
    assert not circuits.has_trouble


async def test_a_trial_keeps_other_organizations_away_no_longer_than_connecting_takes() -> None:
    now = Clock()
    circuits = Circuits(trial_s=3.0, monotonic=now)
    fail(circuits, destination(), Sign.UNREACHED)
    now.now_s += OPEN_S
    endless = circuits.enter(destination())
    now.now_s += 2.9
    assert not is_let_through(circuits, destination())
    now.now_s += 0.1
    second = circuits.enter(destination())
    assert second, "it is a trial too"
    assert not is_let_through(circuits, destination()), "one at a time"
    circuits.leave(endless)
    assert not is_let_through(circuits, destination()), "the end of the first is no end of the second"
    circuits.leave(second)
    assert is_let_through(circuits, destination())


async def test_a_trial_for_a_credential_lasts_until_its_call_ends() -> None:
    now = Clock()
    circuits = Circuits(monotonic=now)
    own, supplied = destination(), destination(fixed=False)
    for where in (own, supplied):
        fail(circuits, where, Sign.UNANSWERED)
        now.now_s += OPEN_S
        trial = circuits.enter(where)
        now.now_s += 300
        assert not is_let_through(circuits, where)
        circuits.leave(trial)
        assert is_let_through(circuits, where)


async def test_a_connection_closes_the_circuit_of_connections_and_no_other() -> None:
    circuits = Circuits()
    own, supplied = destination(), destination(fixed=False)
    fail(circuits, own, Sign.UNANSWERED)
    fail(circuits, supplied, Sign.UNREACHED)
    fail(circuits, destination(), Sign.UNREACHED)
    circuits.connected("globex")
    assert not is_let_through(circuits, destination())
    circuits.connected("acme")
    assert is_let_through(circuits, destination())
    assert not is_let_through(circuits, own)
    assert not is_let_through(circuits, supplied)


async def test_other_processes_see_it_and_join_after_one_failure() -> None:
    board = Board()
    one, other = Circuits(board), Circuits(board)  # type: ignore[arg-type]
    where = destination()
    fail(one, where, Sign.UNREACHED)
    await one.settled()
    shown = shared_circuits.posted(board, ["acme", "globex"])  # type: ignore[arg-type]
    assert list(shown) == ["acme"]
    assert shown["acme"].failures == FAILURES_UNTIL_OPEN
    assert shown["acme"].state(clock.now()) is CircuitState.OPEN
    assert shown["acme"].state(shown["acme"].until) is CircuitState.HALF_OPEN
    assert is_let_through(other, where)
    fail(other, where, Sign.UNREACHED, 1)
    await other.settled()
    assert not is_let_through(other, where)
    one.note(where, Sign.ANSWERED)
    await one.settled()
    assert shared_circuits.posted(board, ["acme"]) == {}  # type: ignore[arg-type]


async def test_what_is_held_half_open_is_shown_so_for_an_hour_without_calls() -> None:
    kept_s: list[int] = []

    class Timed(Board):
        def put_health(self, vendor: str, state: bytes, ttl_s: int) -> None:
            kept_s.append(ttl_s)

    timer = Clock()
    circuits = Circuits(Timed(), monotonic=timer)  # type: ignore[arg-type]
    fail(circuits, destination(), Sign.UNREACHED)
    await circuits.settled()
    timer.now_s += OPEN_S + 3600
    assert circuits._circuits["acme"].state(timer.now_s) is CircuitState.HALF_OPEN
    assert kept_s == [OPEN_S + 3600]


async def test_without_the_store_each_process_finds_out_for_itself() -> None:
    board = Board()
    board.is_away = True
    circuits = Circuits(board)  # type: ignore[arg-type]
    where = destination()
    fail(circuits, where, Sign.UNREACHED)
    await circuits.aclose()
    assert not is_let_through(circuits, where)
    circuits.note(where, Sign.ANSWERED)
    await circuits.aclose()
    assert is_let_through(circuits, where)


async def test_their_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuits_module, "MAX_CIRCUITS", 10)
    circuits = Circuits()
    for _ in range(30):
        circuits.note(destination(fixed=False), Sign.UNREACHED)
    assert len(circuits._circuits) == 10
