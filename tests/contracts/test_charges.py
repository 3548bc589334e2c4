"""Charges of several units on every store: the file of one host, a process by itself, and Redis where there is one."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from gateway.coordination import redis_store
from gateway.coordination.fallback_store import FallbackStore
from gateway.coordination.redis_scripts import ADMIT
from gateway.coordination.redis_store import RedisStore
from gateway.coordination.retry_thread import RetryThread
from gateway.coordination.rules import Rule
from gateway.coordination.sqlite_store import SQLiteStore
from gateway.coordination.store import Admission, CoordinationStore

LOG = Rule("bodies", limit=70, window_s=60)
RING = Rule("bodies", limit=300, window_s=60)
WINDOW_MS = 60_000
BEGAN_MS = 1_700_000_000_000
Said = tuple[bool, int, int]
# Milliseconds before each charge, and its units: also more than either limit.
sequences = st.lists(
    st.tuples(st.integers(0, 1) | st.integers(0, 45_000), st.integers(1, 5) | st.integers(1, 400)), max_size=40
)


class Clock:
    """The clock of the file and of the process. Redis, which has a clock of its own, is told."""

    now_ms = BEGAN_MS

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic(self) -> float:
        return self.now_ms / 1000


def new_value() -> str:
    return uuid.uuid4().hex


def alone(clock: Clock) -> FallbackStore:
    """The store of a process whose Redis is away from the first question on."""
    return FallbackStore(RedisStore("redis://127.0.0.1:1/0", new_value), processes=1, monotonic=clock.monotonic)


def said(admission: Admission) -> Said:
    return admission.allowed, admission.remaining, admission.retry_after_s


@contextmanager
def stores(clock: Clock) -> Iterator[Mapping[str, CoordinationStore]]:
    """Each kind, empty, by the same clock."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(RetryThread, "start", lambda self: None)
        made: dict[str, CoordinationStore] = {
            "file": SQLiteStore(Path(folder) / "coordination.sqlite3", new_value, clock.wall_ms),
            "process": alone(clock),
        }
        if settings.REDIS_URL:
            prefix = f"charges-{new_value()}:"
            store_time = f"{{0, 1000 * redis.call('GET', '{prefix}now')}}"
            assert ADMIT.count("redis.call('TIME')") == 1
            patch.setattr(redis_store, "ADMIT", ADMIT.replace("redis.call('TIME')", store_time))
            made["redis"] = RedisStore(settings.REDIS_URL, new_value, prefix)
        yield made


async def answers(clock: Clock, made: Mapping[str, CoordinationStore], rule: Rule, units: int) -> dict[str, Said]:
    """The answer of each store to the same charge at the same time."""
    redis = made.get("redis")
    if isinstance(redis, RedisStore):
        redis._sync.set(f"{redis._keys.prefix}now", clock.now_ms, ex=60)
    return {name: said(await store.charge(rule, "acme", units)) for name, store in made.items()}


async def walk(steps: Sequence[tuple[int, int]], rule: Rule, check: Callable[[int, int, Said], None]) -> None:
    """Charge all stores alike; `check` hears the time, the units and the one answer."""
    clock = Clock()
    with stores(clock) as made:
        try:
            for pause_ms, units in steps:
                clock.now_ms += pause_ms
                found = await answers(clock, made, rule, units)
                assert len(set(found.values())) == 1, found
                check(clock.now_ms, units, found["file"])
                if not found["file"][0]:
                    clock.now_ms += found["file"][2] * 1000
                    for name, (allowed, *_) in (await answers(clock, made, rule, units)).items():
                        assert allowed, f"{name} refuses who waited as told"
                    check(clock.now_ms, units, (True, -1, 0))
        finally:
            for store in made.values():
                await store.aclose()


@pytest.mark.parametrize("rule", [LOG, RING], ids=["log", "ring"])
@given(steps=sequences)
def test_all_stores_decide_alike_and_never_admit_more_than_the_limit(rule: Rule, steps: list[tuple[int, int]]) -> None:
    admitted: list[tuple[int, int]] = []

    def check(now_ms: int, units: int, answer: Said) -> None:
        allowed, remaining, _ = answer
        assert remaining < rule.limit
        if allowed:
            admitted.append((now_ms, min(units, rule.limit)))
        inside = sum(taken for moment, taken in admitted if moment > now_ms - WINDOW_MS)
        assert inside <= rule.limit
        if rule is LOG and remaining >= 0:
            assert remaining == rule.limit - inside, "a refusal counts nothing and says what is left"
        if not allowed:
            assert remaining < min(units, rule.limit)

    asyncio.run(walk(steps, rule, check))


@pytest.mark.parametrize("rule", [LOG, RING], ids=["log", "ring"])
async def test_what_is_larger_than_the_window_has_all_of_it(rule: Rule) -> None:
    clock = Clock()
    with stores(clock) as made:
        assert set((await answers(clock, made, rule, 10 * rule.limit)).values()) == {(True, 0, 0)}
        assert {allowed for allowed, *_ in (await answers(clock, made, rule, 1)).values()} == {False}
        clock.now_ms += WINDOW_MS + WINDOW_MS // 60
        assert set((await answers(clock, made, rule, 1)).values()) == {(True, rule.limit - 1, 0)}
        refused = await answers(clock, made, rule, 10 * rule.limit)
        assert {(allowed, left) for allowed, left, _ in refused.values()} == {(False, rule.limit - 1)}
        for store in made.values():
            await store.aclose()


@pytest.mark.parametrize("rule", [LOG, RING], ids=["log", "ring"])
async def test_a_charge_of_one_is_an_admission(rule: Rule) -> None:
    """Both count in the same window, and so do calls of threads."""
    made: list[CoordinationStore] = [alone(Clock())]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(RetryThread, "start", lambda self: None)
        made.append(SQLiteStore(Path(folder) / "coordination.sqlite3", new_value))
        if settings.REDIS_URL:
            made.append(RedisStore(settings.REDIS_URL, new_value, f"charges-{new_value()}:"))
        for store in made:
            assert (await store.admit(rule, "acme", ())).remaining == rule.limit - 1
            assert (await store.charge(rule, "acme", 1)).remaining == rule.limit - 2
            assert (await store.charge(rule, "acme", rule.limit - 3)).remaining == 1
            refused = await store.charge(rule, "acme", 2)
            assert (refused.allowed, refused.remaining, refused.retry_after_s > 0) == (False, 1, True)
            assert store.peek(rule, "acme").remaining == 1
            assert store.hit(rule, "acme").allowed
            assert not (await store.admit(rule, "acme", ())).allowed
            assert (await store.charge(rule, "globex", rule.limit)).allowed, "another key has a window of its own"
            await store.aclose()
