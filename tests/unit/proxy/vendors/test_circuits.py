"""The circuits that calls count for: no organization's credentials or requests hold back another's calls."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

import pytest

from gateway.coordination.store import CoordinationUnavailable
from gateway.lib import clock
from proxy.outcomes import VendorFault
from proxy.vendors import shared_circuits
from proxy.vendors.circuit import FAILURES_UNTIL_OPEN, OPEN_S, CircuitState
from proxy.vendors.circuits import Circuits
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.errors import Evidence, VendorProblem
from tests.factories.vendor_pools import new_circuits


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class SharedStore:
    """The part of the coordination store that is used."""

    def __init__(self) -> None:
        self.states: dict[str, bytes] = {}
        self.is_down = False

    def put_health(self, vendor: str, state: bytes, ttl_s: int) -> None:
        if self.is_down:
            raise CoordinationUnavailable("away")
        self.states[vendor] = state

    def health(self, vendors: Sequence[str]) -> Mapping[str, bytes]:
        if self.is_down:
            raise CoordinationUnavailable("away")
        return {vendor: self.states[vendor] for vendor in vendors if vendor in self.states}


def destination(*, fixed: bool = True, vendor: str = "acme", org: uuid.UUID | None = None) -> Destination:
    key = PoolKey.of(org or uuid.uuid4(), vendor, uuid.uuid4(), "http://vendor.example/mcp", {})
    return Destination(key, lambda: ("", {}), fixed_address=fixed)


def fail(circuits: Circuits, where: Destination, evidence: Evidence, times: int = FAILURES_UNTIL_OPEN) -> None:
    for _ in range(times):
        circuits.record(where, evidence)


def is_let_through(circuits: Circuits, where: Destination) -> bool:
    try:
        circuits.exit(circuits.enter(where))
    except VendorProblem as problem:
        return problem.fault is not VendorFault.UNAVAILABLE or not problem.retry_after_s
    return True


async def test_a_vendor_that_nobody_can_reach_is_left_alone_by_all() -> None:
    circuits = new_circuits()
    fail(circuits, destination(), Evidence.CONNECT_FAILED)
    assert not is_let_through(circuits, destination())
    assert is_let_through(circuits, destination(vendor="globex"))


async def test_failures_of_several_organizations_add_up_where_the_address_is_the_catalogs() -> None:
    circuits = new_circuits()
    for _ in range(FAILURES_UNTIL_OPEN):
        circuits.record(destination(), Evidence.CONNECT_FAILED)
    assert not is_let_through(circuits, destination())


@pytest.mark.parametrize("evidence", [Evidence.CONNECT_FAILED, Evidence.NO_RESPONSE])
async def test_an_address_of_a_customers_own_is_the_customers_own_trouble(evidence: Evidence) -> None:
    circuits = new_circuits()
    wrong = destination(fixed=False)
    fail(circuits, wrong, evidence, 50)
    assert not is_let_through(circuits, wrong)
    assert is_let_through(circuits, destination(fixed=False))
    assert is_let_through(circuits, destination(fixed=True))


async def test_calls_that_are_not_answered_count_for_their_credential_only() -> None:
    circuits = new_circuits()
    poisoned = destination()
    fail(circuits, poisoned, Evidence.NO_RESPONSE, 50)
    assert not is_let_through(circuits, poisoned)
    assert is_let_through(circuits, destination())


@pytest.mark.parametrize("evidence", [Evidence.RESPONDED, Evidence.NONE])
async def test_what_is_no_failure_of_the_way_opens_nothing(evidence: Evidence) -> None:
    circuits = new_circuits()
    where = destination()
    fail(circuits, where, evidence, 500)
    assert is_let_through(circuits, where)
    assert not circuits.has_trouble


async def test_an_answer_in_between_begins_anew() -> None:
    circuits = new_circuits()
    where = destination()
    for _ in range(3):
        fail(circuits, where, Evidence.CONNECT_FAILED, FAILURES_UNTIL_OPEN - 1)
        circuits.record(destination(), Evidence.RESPONDED)
    assert is_let_through(circuits, where)
    fail(circuits, where, Evidence.NO_RESPONSE, FAILURES_UNTIL_OPEN - 1)
    circuits.record(destination(), Evidence.RESPONDED)
    fail(circuits, where, Evidence.NO_RESPONSE, 1)
    assert not is_let_through(circuits, where), "another credential's answer says nothing about this one's"


async def test_half_open_lets_one_through() -> None:
    now = Clock()
    circuits = new_circuits(monotonic=now)
    where = destination()
    fail(circuits, where, Evidence.CONNECT_FAILED)
    now.now_s += OPEN_S
    trial = circuits.enter(where)
    assert trial
    assert not is_let_through(circuits, destination())
    circuits.exit(trial)
    trial = circuits.enter(where)
    circuits.record(where, Evidence.CONNECT_FAILED)
    circuits.exit(trial)
    assert not is_let_through(circuits, where)
    now.now_s += 2 * OPEN_S
    trial = circuits.enter(where)
    circuits.record(where, Evidence.RESPONDED)
    circuits.exit(trial)
    assert not circuits.has_trouble


async def test_a_trial_keeps_other_organizations_away_no_longer_than_connecting_takes() -> None:
    now = Clock()
    circuits = new_circuits(trial_s=3.0, monotonic=now)
    fail(circuits, destination(), Evidence.CONNECT_FAILED)
    now.now_s += OPEN_S
    endless = circuits.enter(destination())
    now.now_s += 2.9
    assert not is_let_through(circuits, destination())
    now.now_s += 0.1
    second = circuits.enter(destination())
    assert second, "it is a trial too"
    assert not is_let_through(circuits, destination()), "one at a time"
    circuits.exit(endless)
    assert not is_let_through(circuits, destination()), "the end of the first is no end of the second"
    circuits.exit(second)
    assert is_let_through(circuits, destination())


async def test_a_trial_for_a_credential_lasts_until_its_call_ends() -> None:
    now = Clock()
    circuits = new_circuits(monotonic=now)
    own, supplied = destination(), destination(fixed=False)
    for where in (own, supplied):
        fail(circuits, where, Evidence.NO_RESPONSE)
        now.now_s += OPEN_S
        trial = circuits.enter(where)
        now.now_s += 300
        assert not is_let_through(circuits, where)
        circuits.exit(trial)
        assert is_let_through(circuits, where)


async def test_a_connection_closes_the_circuit_of_connections_and_no_other() -> None:
    circuits = new_circuits()
    own, supplied = destination(), destination(fixed=False)
    fail(circuits, own, Evidence.NO_RESPONSE)
    fail(circuits, supplied, Evidence.CONNECT_FAILED)
    fail(circuits, destination(), Evidence.CONNECT_FAILED)
    circuits.connected("globex")
    assert not is_let_through(circuits, destination())
    circuits.connected("acme")
    assert is_let_through(circuits, destination())
    assert not is_let_through(circuits, own)
    assert not is_let_through(circuits, supplied)


async def test_other_processes_see_it_and_join_after_one_failure() -> None:
    store = SharedStore()
    one, other = new_circuits(store), new_circuits(store)  # type: ignore[arg-type]
    where = destination()
    fail(one, where, Evidence.CONNECT_FAILED)
    await one.settled()
    shown = shared_circuits.published(store, ["acme", "globex"])  # type: ignore[arg-type]
    assert list(shown) == ["acme"]
    assert shown["acme"].failures == FAILURES_UNTIL_OPEN
    assert shown["acme"].state(clock.now()) is CircuitState.OPEN
    assert shown["acme"].state(shown["acme"].until) is CircuitState.HALF_OPEN
    assert is_let_through(other, where)
    fail(other, where, Evidence.CONNECT_FAILED, 1)
    await other.settled()
    assert not is_let_through(other, where)
    one.record(where, Evidence.RESPONDED)
    await one.settled()
    assert shared_circuits.published(store, ["acme"]) == {}  # type: ignore[arg-type]


async def test_what_is_held_half_open_is_shown_so_for_an_hour_without_calls() -> None:
    kept_s: list[int] = []

    class Timed(SharedStore):
        def put_health(self, vendor: str, state: bytes, ttl_s: int) -> None:
            kept_s.append(ttl_s)

    timer = Clock()
    circuits = new_circuits(Timed(), monotonic=timer)  # type: ignore[arg-type]
    fail(circuits, destination(), Evidence.CONNECT_FAILED)
    await circuits.settled()
    timer.now_s += OPEN_S + 3600
    assert circuits._circuits["acme"].state(timer.now_s) is CircuitState.HALF_OPEN
    assert kept_s == [OPEN_S + 3600]


async def test_without_the_store_each_process_finds_out_for_itself() -> None:
    store = SharedStore()
    store.is_down = True
    circuits = new_circuits(store)  # type: ignore[arg-type]
    where = destination()
    fail(circuits, where, Evidence.CONNECT_FAILED)
    await circuits.settled()
    assert not is_let_through(circuits, where)
    circuits.record(where, Evidence.RESPONDED)
    await circuits.settled()
    assert is_let_through(circuits, where)


async def test_their_number_is_bounded() -> None:
    circuits = new_circuits(max_circuits=10)
    for _ in range(30):
        circuits.record(destination(fixed=False), Evidence.CONNECT_FAILED)
    assert len(circuits._circuits) == 10
