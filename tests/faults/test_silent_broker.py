"""A Redis that falls silent or ends holds neither a worker nor a sender of tasks for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from celery import Celery
from celery.contrib.testing.worker import start_worker
from kombu.exceptions import OperationalError

from gateway import queue_transport
from gateway.settings.workers import BROKER_ANSWER_S, REDIS_TRANSPORT_OPTIONS
from tests.fakes.redis_server import RedisServer, is_installed, redis_server
from tests.fakes.silent_relay import Relay, relay_to

pytestmark = [
    pytest.mark.one_back_end,
    pytest.mark.skipif(not is_installed(), reason="redis-server is not installed"),
]
QUICK_S = 1


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with redis_server() as made:
        yield made


@pytest.fixture
def queue(server: RedisServer) -> Iterator[tuple[Relay, str]]:
    """The relay before a Redis, and the address through it."""
    with relay_to("127.0.0.1", server.port) as relay:
        yield relay, server.url_through(relay.port)


def made_app(url: str) -> Celery:
    """With the options of the settings, and a shorter wait."""
    queue_transport.use()
    app = Celery("silent", broker=url, set_as_current=False)
    waits = {name: QUICK_S for name, value in REDIS_TRANSPORT_OPTIONS.items() if value == BROKER_ANSWER_S}
    app.conf.update(
        broker_transport_options={**REDIS_TRANSPORT_OPTIONS, **waits},
        task_ignore_result=True,
        task_acks_late=True,
        broker_connection_retry_on_startup=True,
    )
    return app


def test_every_wait_for_the_broker_has_an_end() -> None:
    bounds = {"socket_timeout", "socket_connect_timeout", "health_check_interval"}
    assert {name: REDIS_TRANSPORT_OPTIONS[name] for name in bounds} == dict.fromkeys(bounds, BROKER_ANSWER_S)


def test_a_worker_takes_tasks_again_after_the_silence(queue: tuple[Relay, str]) -> None:
    relay, url = queue
    app = made_app(url)
    taken = threading.Event()
    app.task(name="taken")(taken.set)
    with start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=30):
        app.send_task("taken")
        assert taken.wait(20)
        with relay.silent():
            time.sleep(1.2)  # the worker has asked for a task, and the answer is swallowed
        taken.clear()
        with made_app(url).connection_for_write() as fresh:
            app.send_task("taken", connection=fresh)
        assert taken.wait(20)


def test_a_sender_is_refused_during_the_silence(queue: tuple[Relay, str]) -> None:
    relay, url = queue
    app = made_app(url)
    with app.connection_for_write() as connection:
        app.send_task("taken", connection=connection)
        with relay.silent(), pytest.raises(OperationalError):
            app.send_task("taken", connection=connection, retry=False)


def test_a_worker_whose_broker_ends_while_tasks_run_goes_on(server: RedisServer) -> None:
    app = made_app(server.url)
    begun, may_end, taken = threading.Event(), threading.Event(), threading.Event()

    @app.task(name="long")  # type: ignore[untyped-decorator]
    def long() -> None:
        begun.set()
        may_end.wait(30)

    app.task(name="next")(taken.set)
    with start_worker(app, pool="threads", concurrency=2, perform_ping_check=False, shutdown_timeout=30):
        app.send_task("long")
        assert begun.wait(20)
        server.end()
        time.sleep(0.5)
        server.start()
        may_end.set()
        with made_app(server.url).connection_for_write() as fresh:
            app.send_task("next", connection=fresh)
        assert taken.wait(20)
