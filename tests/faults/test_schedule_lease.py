"""Several schedulers with one Redis: one of them sends, and another goes on when it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from celery import Celery

from gateway.leased_scheduler import LEASE_KEY, LEASE_S, RENEW_S, Lease, LeasedScheduler
from tests.fakes.redis_server import RedisServer, is_installed, redis_server

pytestmark = pytest.mark.skipif(not is_installed(), reason="redis-server is not installed")


class Clock:
    """A monotonic clock that stands still."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def pass_renewal(self) -> None:
        self.now += RENEW_S


@pytest.fixture(scope="module")
def running() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture
def server(running: RedisServer) -> RedisServer:
    running.ask("FLUSHALL")
    return running


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lease(server: RedisServer, clock: Clock) -> Lease:
    return Lease(redis.Redis.from_url(server.url, socket_timeout=0.2, socket_connect_timeout=0.2), clock)


def test_one_of_two_holds_it(server: RedisServer, clock: Clock) -> None:
    first, second = lease(server, clock), lease(server, clock)
    for _ in range(3):
        assert (first.is_held(), second.is_held()) == (True, False)
        clock.pass_renewal()


def test_it_ends_by_itself_and_renewals_put_the_end_off(server: RedisServer, clock: Clock) -> None:
    holder = lease(server, clock)
    assert holder.is_held()
    server.ask("PEXPIRE", LEASE_KEY, 5000)
    clock.pass_renewal()
    assert holder.is_held()
    left_ms = server.ask("PTTL", LEASE_KEY)
    assert isinstance(left_ms, int)
    assert 5000 < left_ms <= LEASE_S * 1000


def test_it_is_given_back_at_an_orderly_end(server: RedisServer, clock: Clock) -> None:
    first, second = lease(server, clock), lease(server, clock)
    assert (first.is_held(), second.is_held()) == (True, False)
    first.release()
    clock.pass_renewal()
    assert (second.is_held(), first.is_held()) == (True, False)


def test_a_holder_that_was_silent_too_long_stands_by(server: RedisServer, clock: Clock) -> None:
    first, second = lease(server, clock), lease(server, clock)
    assert first.is_held()
    server.ask("DEL", LEASE_KEY)  # as at its end
    assert second.is_held()
    clock.pass_renewal()
    assert (first.is_held(), second.is_held()) == (False, True)
    first.release()  # takes nothing from the other
    clock.pass_renewal()
    assert second.is_held()


def test_without_redis_it_is_held_by_none(server: RedisServer, clock: Clock) -> None:
    holder, other = lease(server, clock), lease(server, clock)
    assert holder.is_held()
    clock.pass_renewal()
    with server.hung():
        assert (holder.is_held(), other.is_held()) == (False, False)
    clock.pass_renewal()
    assert [holder.is_held(), other.is_held()].count(True) == 1


class RecordingScheduler(LeasedScheduler):
    """Notes what it would send."""

    sent: list[str]

    def apply_async(self, entry: Any, producer: Any = None, advance: bool = True, **kwargs: Any) -> Any:
        self.sent.append(entry.name)
        return SimpleNamespace(id="1")


def scheduler(server: RedisServer, folder: Path, clock: Clock) -> RecordingScheduler:
    app = Celery("schedule", broker=server.url, set_as_current=False)
    app.conf.beat_schedule = {"due": {"task": "due", "schedule": 0.0}}
    made = RecordingScheduler(app=app, schedule_filename=str(folder))
    made.sent = []
    made.lease = lease(server, clock)
    return made


def test_each_scheduler_goes_through_the_schedule_and_one_sends(
    server: RedisServer, clock: Clock, tmp_path: Path
) -> None:
    first, second = scheduler(server, tmp_path / "first", clock), scheduler(server, tmp_path / "second", clock)
    for _ in range(3):
        first.tick()
        second.tick()
    assert (len(first.sent), second.sent) == (3, [])
    first.close()
    clock.pass_renewal()
    second.tick()
    assert second.sent == ["due"]
    second.close()
    assert server.ask("EXISTS", LEASE_KEY) == 0
