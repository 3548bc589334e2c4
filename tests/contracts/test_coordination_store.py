"""One contract for every coordination store: the file of one host, Redis where the run has one, and a Redis cluster.

The cluster has one node. It refuses each command whose keys are in several slots, as larger ones do.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings

from gateway.coordination import epochs
from gateway.coordination.fallback_store import FallbackStore
from gateway.coordination.redis_store import RedisStore
from gateway.coordination.rules import Rule
from gateway.coordination.sqlite_store import SQLiteStore
from gateway.coordination.store import CoordinationStore
from proxy.cache.keys import epoch_name
from tests.fakes.redis_server import RedisServer, makes_clusters, redis_server

EXACT = Rule("exact", limit=5, window_s=900)
LARGE = Rule("large", limit=500, window_s=3600)
CLUSTER = pytest.param(
    "cluster", marks=pytest.mark.skipif(not makes_clusters(), reason="redis-server 7 is not installed")
)
STORES = ["file", *(["redis", CLUSTER] if settings.REDIS_URL else [])]


class Clock:
    """The time of this host, which a test may move on."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def cluster() -> Iterator[RedisServer]:
    with redis_server(is_cluster=True) as server:
        yield server


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> AsyncIterator[CoordinationStore]:
    """Each store under test, empty."""
    made: CoordinationStore
    if request.param == "redis":
        made = RedisStore(settings.REDIS_URL, lambda: uuid.uuid4().hex, prefix=f"contract-{uuid.uuid4().hex}:")
    elif request.param == "cluster":
        url, prefix = request.getfixturevalue("cluster").url, f"contract-{uuid.uuid4().hex}:"
        made = RedisStore(url, lambda: uuid.uuid4().hex, prefix, is_cluster=True)
    else:
        made = SQLiteStore(tmp_path / "coordination.sqlite3", lambda: uuid.uuid4().hex, clock.now_ms)
    yield made
    await made.aclose()


async def pass_a_second(store: CoordinationStore, clock: Clock, is_over: Callable[[], bool]) -> None:
    """Move the store's clock on. The time of Redis cannot be moved: wait there, some seconds at most."""
    clock.ahead_ms += 1_100
    deadline = time.monotonic() + (10 if isinstance(store, RedisStore) else 0)
    while not is_over() and time.monotonic() < deadline:
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("rule", [EXACT, LARGE])
async def test_admits_exactly_the_limit_and_says_when_to_come_back(store: CoordinationStore, rule: Rule) -> None:
    answers = [await store.admit(rule, "anna", ()) for _ in range(rule.limit + 3)]
    assert [answer.allowed for answer in answers] == [True] * rule.limit + [False] * 3
    assert [answer.remaining for answer in answers[: rule.limit]] == list(range(rule.limit - 1, -1, -1))
    assert all(0 < answer.retry_after_s <= rule.window_s * 61 // 60 + 1 for answer in answers[rule.limit :])
    assert (await store.admit(rule, "bo", ())).allowed  # another key has a window of its own


@pytest.mark.parametrize(("before", "after"), [(500, 5), (5, 500)])
async def test_an_operator_may_change_a_limit(store: CoordinationStore, before: int, after: int) -> None:
    """Small limits are counted in another way than large ones: neither trips over what the other left."""
    old, new = Rule("tools", limit=before, window_s=3600), Rule("tools", limit=after, window_s=3600)
    store.bump_epochs(["org"])
    assert (await store.admit(old, "anna", ())).allowed
    assert store.peek(new, "anna").allowed
    answers = [await store.admit(new, "anna", ["org"]) for _ in range(after + 1)]
    assert [answers[0].allowed, answers[-1].allowed] == [True, False]
    assert all(answer.epochs == answers[0].epochs != ("",) for answer in answers)
    assert store.hit(old, "anna").rule == old, "in a process that has not been started again yet"


@pytest.mark.parametrize("rule", [EXACT, LARGE])
async def test_parallel_hits_from_threads_and_tasks_share_one_window(store: CoordinationStore, rule: Rule) -> None:
    admitted = itertools.count()
    passed = []

    def hammer() -> None:
        for _ in range(rule.limit // 4 + 10):
            if store.hit(rule, "anna").allowed:
                passed.append(next(admitted))

    threads = [threading.Thread(target=hammer) for _ in range(8)]
    for thread in threads:
        thread.start()
    more = await asyncio.gather(*(store.admit(rule, "anna", ()) for _ in range(20)), return_exceptions=True)
    await asyncio.to_thread(lambda: [thread.join() for thread in threads])
    in_loop = sum(1 for answer in more if not isinstance(answer, BaseException) and answer.allowed)
    assert len(passed) + in_loop == rule.limit


@pytest.mark.parametrize("rule", [EXACT, LARGE])
async def test_a_peek_counts_nothing_and_agrees_with_what_follows(store: CoordinationStore, rule: Rule) -> None:
    for _ in range(3):
        assert store.peek(rule, "anna").remaining == rule.limit
    for taken in range(rule.limit):
        seen = store.peek(rule, "anna")
        assert (seen.allowed, seen.remaining, seen.retry_after_s) == (True, rule.limit - taken, 0)
        assert store.hit(rule, "anna").allowed
    seen, refused = store.peek(rule, "anna"), store.hit(rule, "anna")
    assert (seen.allowed, seen.remaining, seen.epochs) == (refused.allowed, refused.remaining, None) == (False, 0, None)
    assert refused.retry_after_s <= seen.retry_after_s <= refused.retry_after_s + 60
    assert store.peek(rule, "bo").remaining == rule.limit


@pytest.mark.parametrize("rule", [Rule("brief", limit=5, window_s=1), Rule("brief-ring", limit=150, window_s=1)])
async def test_a_peek_leaves_out_what_is_over(store: CoordinationStore, clock: Clock, rule: Rule) -> None:
    for _ in range(5):
        store.hit(rule, "anna")
    await pass_a_second(store, clock, lambda: store.peek(rule, "anna").remaining == rule.limit)
    assert store.peek(rule, "anna").remaining == rule.limit


@pytest.mark.parametrize("subject", ["svc:1:anna", "anna"])
@pytest.mark.parametrize("rule", [EXACT, LARGE])
async def test_epochs_come_with_the_admission_and_change_when_bumped(
    store: CoordinationStore, subject: str, rule: Rule
) -> None:
    """A service client's window lies beside its organization's epoch; a person's is in another slot of a cluster."""
    names = (epochs.subject(subject), epochs.organization("1"), "catalog", epoch_name("1", "team:a", "acme"))
    assert (await store.admit(rule, subject, names)).epochs == ("", "", "", "")
    store.bump_epochs([names[1]])
    first = (await store.admit(rule, subject, names)).epochs
    assert first is not None
    assert (first[0], first[2], first[3]) == ("", "", "")
    assert first[1]
    store.bump_epochs([names[1], "catalog", names[3]])
    second = await store.read_epochs(names)
    assert second is not None
    assert second[1] not in {"", first[1]}
    assert second[0] == ""
    assert second[2]
    assert second[3]
    third = await store.admit(rule, subject, names)
    assert (third.remaining, third.epochs) == (rule.limit - 3, second)


async def test_a_store_notes_when_it_comes_back_on_a_new_connection(store: CoordinationStore) -> None:
    """A server that took over or restarted may lack the last bumps. A file is never replaced."""
    await store.read_epochs(["e"])
    opened_s = time.monotonic()
    await store.read_epochs(["e"])
    assert store.returns.first_after(opened_s) == math.inf
    await store.aclose()
    await store.read_epochs(["e"])
    assert math.isfinite(store.returns.first_after(opened_s)) == isinstance(store, RedisStore)
    assert FallbackStore(store, processes=1).returns is store.returns


async def test_names_without_a_value_get_one_once_and_others_keep_theirs(store: CoordinationStore) -> None:
    store.bump_epochs(["{1}org:1"])
    before = await store.read_epochs(["{1}org:1"])
    assert before is not None
    begun = await asyncio.gather(*(store.begin_epochs(["{a}subject:a", "{1}org:1", "catalog"]) for _ in range(20)))
    assert len(set(begun)) == 1
    values = begun[0]
    assert values is not None
    assert all(values)
    assert values[1] == before[0]
    assert await store.read_epochs(["{a}subject:a", "{1}org:1", "catalog"]) == values


async def test_a_renewal_changes_what_has_a_value_and_begins_nothing(store: CoordinationStore) -> None:
    await store.renew_epoch("cache:a")
    assert await store.read_epochs(["cache:a"]) == ("",)
    before = await store.begin_epochs(["cache:a", "cache:b"])
    await store.renew_epoch("cache:a")
    after = await store.read_epochs(["cache:a", "cache:b"])
    assert before is not None
    assert after is not None
    assert after[0] not in {"", before[0]}
    assert after[1] == before[1]


async def test_many_names_are_bumped(store: CoordinationStore) -> None:
    names = [f"subject:{number}" for number in range(1_200)]
    store.bump_epochs(names)
    values = await store.read_epochs(names)
    assert values is not None
    assert len(set(values)) == 1_200


async def test_epochs_are_read_even_when_the_window_is_full(store: CoordinationStore) -> None:
    rule = Rule("one", limit=1, window_s=60)
    await store.admit(rule, "anna", ())
    store.bump_epochs(["{a}subject:a"])
    refused = await store.admit(rule, "anna", ("{a}subject:a",))
    assert not refused.allowed
    assert refused.epochs is not None
    assert refused.epochs[0]


async def test_health_is_kept_until_it_is_too_old(store: CoordinationStore, clock: Clock) -> None:
    store.put_health("acme", b"state", ttl_s=60)
    store.put_health("globex", b"old", ttl_s=1)
    await pass_a_second(store, clock, lambda: "globex" not in store.health(["globex"]))
    assert dict(store.health(["acme", "globex", "never"])) == {"acme": b"state"}


async def test_ping_answers(store: CoordinationStore) -> None:
    store.ping()


async def test_a_burst_queues_and_is_no_outage(store: CoordinationStore) -> None:
    rule = Rule("burst", limit=10_000, window_s=3600)
    answers = await asyncio.gather(*(store.admit(rule, "anna", ("{a}subject:a",)) for _ in range(500)))
    assert sorted(answer.remaining for answer in answers) == list(range(9_500, 10_000))
