"""/health and /ready: what load balancers and container engines ask."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import redis
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.db.migrations.recorder import MigrationRecorder

import gateway
from gateway import asgi, draining, graceful_stop, readiness
from gateway.coordination import backend
from gateway.coordination.fallback_store import FallbackStore
from gateway.coordination.redis_store import RedisStore
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib import build_info
from gateway.lib.session_timeouts import GIVEN_OPTIONS
from proxy import runtime
from tests.vendors.processes import free_port

pytestmark = pytest.mark.django_db(transaction=True)
GOOD = {"database": "ok", "migrations": "ok", "coordination": "ok"}


@pytest.fixture(autouse=True)
def _new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "_is_migrated", False)
    monkeypatch.setattr(readiness, "_of_loops", weakref.WeakKeyDictionary())
    monkeypatch.setattr(draining, "_draining", threading.Event())


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    """A client that knows the process by its address only."""
    transport = httpx.ASGITransport(app=asgi.application)
    async with httpx.AsyncClient(transport=transport, base_url="http://10.0.0.7:8000") as made:
        yield made
    await runtime.stop()


async def test_a_process_that_can_serve_says_so(http: httpx.AsyncClient) -> None:
    answer = await http.get("/ready")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "checks": GOOD})
    assert answer.headers["Cache-Control"] == "no-store"
    alive = await http.get("/health")
    assert alive.status_code == 200
    assert alive.json().keys() == {"status", "timestamp", "version", "commit", "schema"}
    assert (alive.json()["status"], alive.json()["version"]) == ("ok", gateway.__version__)
    assert alive.json().items() >= build_info.current().labels().items()


@pytest.mark.parametrize("path", ["/health", "/ready"])
async def test_probes_are_read_only_and_come_by_any_host(http: httpx.AsyncClient, path: str) -> None:
    for host in ("10.0.0.7:8000", "gateway.internal", "[::1]", "testserver", "no host at all!"):
        assert (await http.get(path, headers={"Host": host})).status_code == 200, host
    assert (await http.head(path)).status_code == 200
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        refused = await http.request(method, path)
        assert (refused.status_code, refused.headers["Allow"]) == (405, "GET"), method
    elsewhere = await http.post("/v1/mcp", headers={"Host": "gateway.internal"})
    assert elsewhere.status_code == 400, "calls come by our own name"


async def test_readiness_is_not_behind_pages(http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async def stuck(*_: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asgi, "_pages", stuck)
    async with asyncio.timeout(20):
        assert (await http.get("/ready")).status_code == 200


async def test_many_who_ask_share_one_check_and_it_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    check = readiness.database_states

    def counted() -> Any:
        nonlocal looks
        looks += 1
        return check()

    monkeypatch.setattr(readiness, "database_states", counted)
    now_s = 1_000.0
    checks = readiness.Readiness(monotonic=lambda: now_s)
    assert await asyncio.gather(*(checks.checks() for _ in range(30))) == [GOOD] * 30
    now_s += readiness.CACHE_S - 0.1
    assert (await checks.checks(), looks) == (GOOD, 1)
    now_s += 0.2
    assert (await checks.checks(), looks) == (GOOD, 2)


def test_a_schema_that_is_older_than_the_code_is_not_ready_and_a_good_one_is_looked_at_once(
    django_assert_num_queries: Any,
) -> None:
    recorder = MigrationRecorder(connection)
    last = recorder.migration_qs.filter(app="catalog").latest("id")
    recorder.record_unapplied("catalog", last.name)
    try:
        assert readiness.database_states() == ("ok", "failed")
    finally:
        recorder.record_applied("catalog", last.name)
    assert readiness.database_states() == ("ok", "ok")
    with django_assert_num_queries(1):
        assert readiness.database_states() == ("ok", "ok")


async def test_a_database_that_cannot_be_asked_is_not_ready(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answered = threading.Event(), threading.Event()

    def silent() -> Any:
        asked.set()
        answered.wait(30)
        return "ok", "ok"

    monkeypatch.setattr(readiness, "database_states", silent)
    monkeypatch.setattr(readiness, "DEADLINE_S", 1.0)
    answer = await http.get("/ready")
    answered.set()
    assert asked.is_set()
    assert (answer.status_code, answer.json()["status"]) == (503, "unavailable")
    assert answer.json()["checks"] == {**GOOD, "database": "failed", "migrations": "failed"}


async def test_a_process_that_cannot_commit_rows_is_not_ready(http: httpx.AsyncClient) -> None:
    outage = runtime.current().audit.outage
    outage.is_active = True
    answer = await http.get("/ready")
    assert (answer.status_code, answer.json()["checks"]["database"]) == (503, "failed")
    outage.is_active = False


@pytest.mark.skipif(connection.vendor != "postgresql", reason="a file has no standby")
def test_a_read_only_database_is_not_ready() -> None:
    from gateway.lib.bounded_connection import BoundedWrapper

    def ask() -> Any:
        entry = dict(connections["default"].settings_dict)
        options = f"{entry['OPTIONS']['options']} -c default_transaction_read_only=on"
        entry["OPTIONS"] = {name: value for name, value in entry["OPTIONS"].items() if name != "pool"}
        connections["default"] = BoundedWrapper(
            {**entry, GIVEN_OPTIONS: "", "OPTIONS": {**entry["OPTIONS"], "options": options}}, "default"
        )
        try:
            return readiness.database_states()
        finally:
            connections["default"].close()

    states: list[Any] = []
    thread = threading.Thread(target=lambda: states.append(ask()))
    thread.start()
    thread.join(30)
    assert states == [("failed", "ok")]
    assert readiness.database_states() == ("ok", "ok")


# --- coordination -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def replica() -> Iterator[str]:
    """The address of a Redis that answers everything and writes nothing, as after a failover."""
    port = free_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--replicaof", "127.0.0.1 9", "--bind", "127.0.0.1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    url = f"redis://127.0.0.1:{port}/0"
    try:
        with contextlib.closing(redis.Redis.from_url(url)) as client:
            deadline = time.monotonic() + 20
            while True:
                with contextlib.suppress(redis.ConnectionError):
                    if client.ping() and client.info("replication")["role"] == "slave":
                        break
                assert time.monotonic() < deadline
        yield url
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.one_back_end
@pytest.mark.skipif(shutil.which("redis-server") is None, reason="no redis-server on this machine")
async def test_a_redis_that_admits_nothing_is_degraded_and_the_process_ready(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with replica() as url:
        inner = RedisStore(url, lambda: "epoch", "gateway-test:")
        store = FallbackStore(inner, processes=1)
        monkeypatch.setattr(backend, "current", lambda: store)
        answer = await http.get("/ready")
        await asyncio.to_thread(store.stop)
        await store.aclose()
    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "checks": {**GOOD, "coordination": "degraded"}}


async def test_a_store_that_fails_loudly_is_degraded_too(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Away:
        async def admit(self, *_: Any) -> Any:
            raise CoordinationUnavailable("away")

    monkeypatch.setattr(backend, "current", lambda: Away())
    answer = await http.get("/ready")
    assert (answer.status_code, answer.json()["checks"]["coordination"]) == (200, "degraded")


# --- draining ---------------------------------------------------------------------------------------------------------


async def test_a_stopping_process_is_not_ready_but_alive(http: httpx.AsyncClient) -> None:
    assert (await http.get("/ready")).status_code == 200
    draining.begin()
    answer = await http.get("/ready")
    assert (answer.status_code, answer.json()) == (503, {"status": "draining", "checks": GOOD})
    assert (await http.get("/health")).status_code == 200


async def test_a_stopping_process_says_so_while_its_database_is_silent(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await http.get("/ready")
    monkeypatch.setattr(readiness.current(), "_cached_until_s", 0.0)
    monkeypatch.setattr(readiness, "_database_states", asyncio.Event().wait)
    draining.begin()
    async with asyncio.timeout(20):
        assert (await http.get("/ready")).json() == {"status": "draining", "checks": GOOD}


async def test_under_another_server_signals_are_left_alone() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        graceful_stop.begin_on_signals(delay_s=0, drain_s=1)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        # Another thread may set no handler.
        await sync_to_async(graceful_stop.begin_on_signals)(delay_s=0, drain_s=1)
    finally:
        signal.signal(signal.SIGTERM, before)
