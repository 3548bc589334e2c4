"""A Redis that hangs, refuses, forgets, is slow or is not the primary any more, with the patience of production.

Each test has a Redis of its own; the suite's own patience (tests/conftest.py) plays no part here.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from gateway.coordination.fallback_store import FallbackStore
from gateway.coordination.redis_store import RedisStore
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission, CoordinationUnavailable
from tests.fakes.redis_server import RedisServer, is_installed, redis_server
from tests.fakes.silent_relay import relay_to

pytestmark = [
    pytest.mark.one_back_end,
    pytest.mark.skipif(not is_installed(), reason="redis-server is not installed"),
]
OPERATION_S, THREAD_S = 0.05, 1.0
RULE = Rule("tools", limit=100_000, window_s=3600)
CROWD = 128
# Between what one deadline of 50 ms costs on a busy machine and the 6.4 s that one deadline for each call would cost.
LONGEST_S = 3.0
LONG_THREAD_S = 4.0  # a thread's deadline that the loop would be seen to wait for
PATIENCE = {"operation_s": 5.0, "thread_s": 5.0}  # where the deadlines are not tested
Open = Callable[..., FallbackStore]


def new_value() -> str:
    return uuid.uuid4().hex


@pytest.fixture(scope="module")
def shared() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture
def own(shared: RedisServer) -> RedisServer:
    shared.ask("FLUSHALL")
    return shared


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    """Opens stores as a process of production has them; two processes share the limits."""
    made: list[tuple[FallbackStore, RedisStore]] = []

    def opened(url: str, operation_s: float = OPERATION_S, thread_s: float = THREAD_S) -> FallbackStore:
        inner = RedisStore(url, new_value, "test:", operation_s=operation_s, thread_s=thread_s)
        made.append((FallbackStore(inner, processes=2), inner))
        return made[-1][0]

    yield opened
    for store, inner in made:
        await asyncio.to_thread(store.stop)
        await store.aclose()
        for client in (inner._sync, inner._probe_client):  # of threads; a process keeps them until it ends
            client.close()


class Heartbeat:
    """The longest time for which the loop of the test did not come round, inside the block."""

    async def __aenter__(self) -> Heartbeat:
        self.longest_s = 0.0
        self._task = asyncio.ensure_future(self._beat())
        return self

    async def __aexit__(self, *fault: object) -> None:
        self._task.cancel()

    async def _beat(self) -> None:
        while True:
            began_s = time.monotonic()
            await asyncio.sleep(0.005)
            self.longest_s = max(self.longest_s, time.monotonic() - began_s)


async def crowd(store: FallbackStore) -> tuple[list[Admission], float]:
    """The answers to many calls at once, and the wait of the slowest."""

    async def one(number: int) -> tuple[Admission, float]:
        began_s = time.monotonic()
        answer = await store.admit(RULE, f"caller {number}", ("{a}subject:a",))
        return answer, time.monotonic() - began_s

    found = await asyncio.gather(*map(one, range(CROWD)))
    return [answer for answer, _ in found], max(waited_s for _, waited_s in found)


async def believed(store: FallbackStore) -> Admission:
    """The first admission that Redis has counted again."""
    while (answer := await store.admit(RULE, "anna", ("{a}subject:a",))).epochs is None:
        await asyncio.sleep(0.01)
    return answer


def test_these_are_the_deadlines_of_production() -> None:
    code = "from gateway.coordination import redis_store as r; print(r.OPERATION_TIMEOUT_S, r.THREAD_TIMEOUT_S)"
    known = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert known.split() == [str(OPERATION_S), str(THREAD_S)]


@pytest.mark.parametrize("is_connected", [True, False])
async def test_a_hang_costs_a_crowd_one_deadline_and_later_calls_nothing(
    own: RedisServer, opened: Open, is_connected: bool
) -> None:
    store = opened(own.url, thread_s=LONG_THREAD_S)
    if is_connected:
        assert (await believed(store)).epochs == ("",)
    async with asyncio.timeout(30), Heartbeat() as heart:
        with own.hung():
            answers, slowest_s = await crowd(store)
            assert {answer.epochs for answer in answers} == {None}
            assert {(answer.allowed, answer.rule.limit) for answer in answers} == {(True, RULE.limit // 2)}
            assert slowest_s < LONGEST_S
            _, later_s = await crowd(store)
            assert later_s < LONGEST_S
            assert await store.begin_epochs(["cache:a"]) is await store.read_epochs(["cache:a"]) is None
        assert (await believed(store)).epochs == ("",)
    assert heart.longest_s < LONGEST_S


FIRST: dict[str, Callable[[FallbackStore], Awaitable[object]]] = {
    "charge": lambda store: store.charge(RULE, "anna", 2),
    "read": lambda store: store.read_epochs(["cache:a"]),
    "begin": lambda store: store.begin_epochs(["cache:a"]),
    "renew": lambda store: store.renew_epoch("cache:a"),
}


@pytest.mark.parametrize("operation", FIRST)
async def test_the_operation_that_meets_a_hang_first_holds_no_loop(
    own: RedisServer, opened: Open, operation: str
) -> None:
    store = opened(own.url, thread_s=LONG_THREAD_S)
    async with asyncio.timeout(30), Heartbeat() as heart:
        await believed(store)
        with own.hung():
            began_s = time.monotonic()
            await FIRST[operation](store)
            assert time.monotonic() - began_s < LONGEST_S
            assert store.is_away()
        await believed(store)
    assert heart.longest_s < LONGEST_S


async def test_missed_bumps_hold_neither_the_loop_nor_the_calls(own: RedisServer, opened: Open) -> None:
    store = opened(own.url, thread_s=LONG_THREAD_S)
    async with asyncio.timeout(30), Heartbeat() as heart:
        while (before := await store.begin_epochs(["cache:a", "cache:b"])) is None:
            await asyncio.sleep(0.01)
        with own.hung():
            with pytest.raises(CoordinationUnavailable):
                await asyncio.to_thread(store.bump_epochs, ["{a}subject:a"])
            for _ in range(20):
                await store.renew_epoch("cache:a")
                assert (await store.admit(RULE, "anna", ())).epochs is None
        await believed(store)
        while (after := await store.read_epochs(["cache:a", "cache:b"])) is None:
            await asyncio.sleep(0.01)
    assert heart.longest_s < LONGEST_S
    assert after[0] not in {"", before[0]}, "made up for before anything was believed"
    assert after[1] == before[1]


async def test_a_failover_is_followed_to_the_new_primary(
    own: RedisServer, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_server() as promoted, relay_to("127.0.0.1", own.port) as name:
        store = opened(own.url_through(name.port), **PATIENCE)
        store.bump_epochs(["{a}subject:a"])
        assert (await believed(store)).remaining == RULE.limit - 1
        try:
            own.ask("REPLICAOF", "127.0.0.1", promoted.port)
            async with asyncio.timeout(30):
                assert (await store.admit(RULE, "anna", ("{a}subject:a",))).epochs is None
                assert "READONLY: REDIS_URL leads to a replica" in caplog.text
                with pytest.raises(CoordinationUnavailable):
                    store.ping()
                name.lead_to("127.0.0.1", promoted.port)
                assert (await believed(store)).epochs is not None
            store.bump_epochs(["subject:b"])
            assert promoted.ask("EXISTS", "test:epoch:subject:b") == 1
            assert store.hit(RULE, "anna").rule == RULE, "exact again, for threads too"
        finally:
            own.ask("REPLICAOF", "NO", "ONE")


async def test_a_wrong_password_is_an_outage_with_its_reason_in_the_log(
    own: RedisServer, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    store = opened(own.url_through(own.port, "wrong"), **PATIENCE)
    assert (await store.admit(RULE, "anna", ())).rule.limit == RULE.limit // 2
    assert "WRONGPASS: Redis does not accept the password in REDIS_URL" in caplog.text
    assert "wrong" not in caplog.text
    own.ask("ACL", "SETUSER", "default", ">wrong")
    try:
        async with asyncio.timeout(30):
            await believed(store)
    finally:
        own.ask("ACL", "SETUSER", "default", "<wrong")


async def test_a_redis_that_refuses_and_comes_back_without_its_memory(own: RedisServer, opened: Open) -> None:
    store = opened(own.url)
    store.bump_epochs(["{a}subject:a"])
    assert (await believed(store)).epochs != ("",)
    own.end()
    try:
        async with asyncio.timeout(30):
            answers, slowest_s = await crowd(store)
            assert {answer.epochs for answer in answers} == {None}
            assert slowest_s < LONGEST_S
            own.start()  # in this thread: the process ends with the thread that started it
            assert (await believed(store)).epochs == ("",), "nothing that was loaded is vouched for"
    finally:
        if own.is_down:
            own.start()


async def test_a_redis_that_was_flushed_is_no_outage(own: RedisServer, opened: Open) -> None:
    store = opened(own.url, **PATIENCE)
    store.bump_epochs(["{a}subject:a"])
    assert (await store.admit(RULE, "anna", ("{a}subject:a",))).remaining == RULE.limit - 1
    own.ask("FLUSHALL")
    own.ask("SCRIPT", "FLUSH")
    again = await store.admit(RULE, "anna", ("{a}subject:a",))
    assert (again.remaining, again.epochs) == (RULE.limit - 1, ("",))


async def test_a_slow_redis_costs_one_deadline_and_is_away_until_it_is_quick(own: RedisServer, opened: Open) -> None:
    with relay_to("127.0.0.1", own.port) as relay:
        store = opened(own.url_through(relay.port))
        await believed(store)
        relay.delay_s = 0.2
        answers, slowest_s = await crowd(store)
        assert {answer.epochs for answer in answers} == {None}
        assert slowest_s < LONGEST_S
        assert not await asyncio.to_thread(store.recover)
        relay.delay_s = 0.0
        async with asyncio.timeout(30):
            await believed(store)
