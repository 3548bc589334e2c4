"""No wait for PostgreSQL is without an end: neither for an answer, nor for a lock, nor for a connection of the pool."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any, cast

import pytest
from django.core.management import call_command
from django.db import OperationalError, close_old_connections, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import load_backend

from gateway.coordination.store import CoordinationStore
from gateway.lib.reserved_connections import close_reserved_connections, reserved_entry, use_reserved_connections
from gateway.lib.session_timeouts import SessionTimeouts
from gateway.management.commands.migrate import without_statement_timeout
from orgs.models import Organization
from proxy.caller_cache import CallerCache
from tests.fakes.silent_relay import Relay, relay_to

pytestmark = pytest.mark.django_db(transaction=True)
SHORT = SessionTimeouts(statement_s=1, lock_s=1, idle_in_transaction_s=1)


@pytest.fixture(autouse=True)
def _on_postgresql() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("the file of the embedded default has no server that could be silent")


@contextmanager
def relayed(size: int = 2) -> Iterator[tuple[Relay, BaseDatabaseWrapper]]:
    """The test database with short timeouts, behind a relay, through a pool of its own."""
    from gateway.lib.bounded_connection import ReservedWrapper

    class Wrapper(ReservedWrapper):
        _connection_pools: dict[str, Any] = {}

    entry = connection.settings_dict
    with relay_to(entry["HOST"], int(entry["PORT"] or 5432)) as relay:
        config = {**reserved_entry(entry, size, SHORT), "HOST": "127.0.0.1", "PORT": relay.port}
        config["OPTIONS"]["pool"] = {**config["OPTIONS"]["pool"], "timeout": 3}
        wrapper = Wrapper(config, "default")
        try:
            yield relay, wrapper
        finally:
            wrapper.close()
            wrapper.close_pool()


def free_connections() -> int:
    """How many connections of the pool may still be taken: a thread that outlives its test can hold one."""
    wrapper = connections["default"]
    stats = wrapper.pool.get_stats()  # type: ignore[attr-defined]
    return int(stats["pool_max"] - stats["pool_size"] + stats["pool_available"])


def ask(wrapper: BaseDatabaseWrapper, sql: str = "SELECT 1") -> Any:
    with wrapper.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]


def test_a_server_that_is_silent_is_waited_for_a_moment_only() -> None:
    with relayed() as (relay, wrapper):
        assert ask(wrapper) == 1
        with relay.silent():
            began = time.monotonic()
            with pytest.raises(OperationalError, match="in time"):
                ask(wrapper)
            assert SHORT.response_timeout_s <= time.monotonic() - began < SHORT.response_timeout_s + 30
        wrapper.close()
        assert ask(wrapper) == 1, "the pool has let go of the connection that was given up"


def test_the_pools_own_check_of_a_connection_ends_as_well() -> None:
    with relayed(size=1) as (relay, wrapper):
        assert ask(wrapper) == 1
        wrapper.close()  # back in the pool, which checks it before it gives it out
        with relay.silent():
            began = time.monotonic()
            with pytest.raises(OperationalError):
                ask(wrapper)
            assert time.monotonic() - began < 30
        wrapper.close()
        deadline = time.monotonic() + 10
        while True:
            try:
                assert ask(wrapper) == 1
                break
            except OperationalError:
                assert time.monotonic() < deadline, "the pool has not come back"


def test_the_server_ends_statements_and_waits_for_locks_of_ours() -> None:
    with relayed() as (_, wrapper):
        assert ask(wrapper, "SHOW idle_in_transaction_session_timeout") == "1s"
        with pytest.raises(OperationalError, match="statement timeout"):
            ask(wrapper, "SELECT pg_sleep(30)")
        Organization.objects.create(name="Locked")
        with transaction.atomic():
            Organization.objects.select_for_update().get(name="Locked")
            with pytest.raises(OperationalError, match="timeout"):
                ask(wrapper, "SELECT 1 FROM orgs_organization FOR UPDATE")
        assert ask(wrapper) == 1, "the connection goes on"


def test_pages_that_take_every_connection_leave_the_hot_path_its_own() -> None:
    connection.close()
    size = free_connections()
    taken, enough = threading.Barrier(size + 1), threading.Event()

    def page() -> None:
        try:
            with connections["default"].cursor():
                taken.wait(30)
                enough.wait(30)
        finally:
            connections["default"].close()

    def load() -> tuple[int, int]:
        number = ask(connections["default"], "SELECT 1")
        waiting = connections["default"].pool.get_stats()["pool_max"]  # type: ignore[attr-defined]
        close_old_connections()
        return number, waiting

    close_reserved_connections()
    with (
        ThreadPoolExecutor(size) as pages,
        ThreadPoolExecutor(4, initializer=use_reserved_connections, initargs=(4, SHORT)) as db_threads,
    ):
        futures = [pages.submit(page) for _ in range(size)]
        try:
            taken.wait(30)
            assert [db_threads.submit(load).result(5) for _ in range(8)] == [(1, 4)] * 8
        finally:
            enough.set()
        for future in futures:
            future.result(30)
    close_reserved_connections()


async def test_callers_are_loaded_on_the_reserved_connections() -> None:
    cache = CallerCache(cast(CoordinationStore, None))
    try:
        assert await cache.run_in_db_thread(lambda: type(connections["default"]).__name__) == "ReservedWrapper"
        assert await cache.run_in_db_thread(lambda: ask(connections["default"], "SHOW statement_timeout")) == "4s"
    finally:
        await cache.aclose()


def test_migrations_take_their_time_and_wait_for_no_lock() -> None:
    usual = ask(connection, "SHOW statement_timeout"), ask(connection, "SHOW lock_timeout")
    assert usual == ("5min", "1min")
    with without_statement_timeout(connection):
        assert ask(connection, "SHOW statement_timeout") == "0"
        assert ask(connection, "SHOW lock_timeout") == "2s"
        assert connection.connection.response_timeout_s is None
    assert (ask(connection, "SHOW statement_timeout"), ask(connection, "SHOW lock_timeout")) == usual
    assert connection.connection.response_timeout_s > 300


def test_the_migrate_command_is_ours() -> None:
    from django.core.management import get_commands

    assert get_commands()["migrate"] == "gateway"
    call_command("migrate", verbosity=0)


def test_a_connection_without_a_pool_waits_as_long_as_configured() -> None:
    from gateway.lib.bounded_connection import BoundedWrapper

    entry = {**connection.settings_dict, "OPTIONS": {**connection.settings_dict["OPTIONS"]}}
    del entry["OPTIONS"]["pool"]
    assert load_backend(entry["ENGINE"]).DatabaseWrapper is BoundedWrapper.__mro__[1]
    with closing(BoundedWrapper(entry, "default")) as wrapper:
        assert ask(wrapper) == 1
        assert wrapper.connection.response_timeout_s == BoundedWrapper.response_timeout_s
