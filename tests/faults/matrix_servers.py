"""Rows of the fault matrix on our servers and those beside them: killed, paused, cut off, slow, full, misdated."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator

import httpx
import psutil
import psycopg

from gateway.supervisor.options import read_options
from gateway.supervisor.services import web_command
from tests.e2e import agent
from tests.e2e.gateway_process import Web
from tests.fakes.postgresql_server import as_server_user
from tests.faults.history import Ending
from tests.faults.matrix_stage import PROBE_INTERVAL_S, WRITING, Stage, until
from tests.faults.matrix_table import row
from tests.vendors.processes import ROOT, free_port

REDIS_BACK_S, POSTGRESQL_BACK_S = 10.0, 15.0
FAULT_S = 2.0
FULL_BYTES = "65536"


def only(found: Counter[str], *allowed: str) -> None:
    """No caller of the load saw anything else."""
    assert set(found) <= set(allowed), dict(found)
    assert found["200"] > 0, dict(found)


# --- Redis ------------------------------------------------------------------------------------------------------------


@row("Redis killed", "200 without RateLimit, then counters again")
def redis_killed(on: Stage) -> None:
    with on.load() as found:
        on.redis.kill()
        time.sleep(FAULT_S)
        answer = on.call()
        assert answer.ending is Ending.SUCCESS
        assert "RateLimit" not in answer.headers
        assert on.get(f"/api/orgs/{on.client.org_id}").status_code == 200, "sessions survive"
        on.redis.start()
        until(lambda: "RateLimit" in on.call().headers, REDIS_BACK_S, "counted by Redis again")
    only(found, "200")


@row("Redis paused", "200")
def redis_paused(on: Stage) -> None:
    with on.load() as found:
        with on.redis.hung():
            time.sleep(FAULT_S)
        until(lambda: "RateLimit" in on.call().headers, REDIS_BACK_S, "counted by Redis again")
    only(found, "200")


@row("Redis cut off", "200")
def redis_cut_off(on: Stage) -> None:
    with on.load() as found:
        with on.redis_relay.silent():
            time.sleep(FAULT_S)
        until(lambda: "RateLimit" in on.call().headers, REDIS_BACK_S, "counted by Redis again")
    only(found, "200")


@row("Redis slow by 2 s", "200, not slower by 2 s")
def redis_slow(on: Stage) -> None:
    on.redis_relay.delay_s = 2.0
    try:
        time.sleep(0.5)
        answers = [on.call() for _ in range(20)]
    finally:
        on.redis_relay.delay_s = 0.0
    assert {each.ending for each in answers} == {Ending.SUCCESS}
    assert sorted(each.took_s for each in answers)[10] < 1.0, "the circuit to Redis opens"
    until(lambda: "RateLimit" in on.call().headers, REDIS_BACK_S, "counted by Redis again")


@row("Redis flushed", "200, no revoked key is taken again")
def redis_flushed(on: Stage) -> None:
    org_id = on.client.org_id
    made = on.operator.run("create_service_client", org_id=org_id, name=f"revoked {time.monotonic_ns()}")
    with on.http() as http:
        assert agent.rpc(http, made["agent_key"], "ping").status_code == 200
        on.operator.run("revoke_agent_key", client_id=made["client_id"])
        assert agent.rpc(http, made["agent_key"], "ping").status_code == 401
        on.redis.ask("FLUSHALL")
        assert agent.rpc(http, made["agent_key"], "ping").status_code == 401
    assert on.call().ending is Ending.SUCCESS


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


def database_is_away(on: Stage) -> None:
    """Calls are refused with 503 and Retry-After on both routes, and /health is 200."""
    until(lambda: on.call(WRITING).ending is Ending.UNAVAILABLE, 10, "calls are refused")
    cli, mcp = on.both(WRITING)
    assert (cli.status, mcp.status) == (503, 503)
    assert (cli.headers["Retry-After"], mcp.headers["Retry-After"]) == ("5", "5")
    assert mcp.reason == "unavailable"
    assert on.get("/health").status_code == 200
    ready = on.get("/ready")
    assert (ready.status_code, ready.json()["checks"]["database"]) == (503, "failed")
    page = on.get(f"/api/orgs/{on.client.org_id}")
    assert (page.status_code, page.headers["Retry-After"]) == (503, "5")


@row("PostgreSQL killed", "503 with Retry-After, then 200 within 15 s")
def postgresql_killed(on: Stage) -> None:
    with on.load() as found:
        time.sleep(0.5)
        on.postgresql.kill()
        database_is_away(on)
        on.postgresql.start()
        on.serves_within(POSTGRESQL_BACK_S)
    only(found, "200", "503")


@row("PostgreSQL restarted", "503 at most, then 200 within 15 s")
def postgresql_restarted(on: Stage) -> None:
    with on.load() as found:
        time.sleep(0.5)
        on.postgresql.end()
        on.postgresql.start()
        on.serves_within(POSTGRESQL_BACK_S)
    only(found, "200", "503")


@row("PostgreSQL cut off", "503 with Retry-After, then 200 within 15 s")
def postgresql_cut_off(on: Stage) -> None:
    with on.load() as found:
        time.sleep(0.5)
        with on.database_relay.silent():
            until(lambda: on.call(WRITING).ending is Ending.UNAVAILABLE, 15, "calls are refused")
            assert on.get("/health").status_code == 200
        on.serves_within(POSTGRESQL_BACK_S)
    only(found, "200", "503")


@contextlib.contextmanager
def paused(root: psutil.Process) -> Iterator[None]:
    """The process and its children stop between two instructions."""
    stopped = [root, *root.children(recursive=True)]
    for process in stopped:
        process.suspend()
    try:
        yield
    finally:
        for process in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()


@row("PostgreSQL paused", "503, then 200 within 15 s")
def postgresql_paused(on: Stage) -> None:
    with on.load() as found:
        time.sleep(0.5)
        with paused(_postmaster(on)):
            until(lambda: on.call(WRITING).ending is Ending.UNAVAILABLE, 15, "calls are refused")
        on.serves_within(POSTGRESQL_BACK_S)
    only(found, "200", "503")


@row("PostgreSQL read-only", "503, and no 500")
def postgresql_read_only(on: Stage) -> None:
    name = on.made.database.name
    with psycopg.connect(on.postgresql.url, autocommit=True) as admin, on.load() as found:
        for value in ("on", "off"):
            admin.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = {value}'.encode())
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            if value == "on":
                until(lambda: on.call(WRITING).ending is Ending.UNAVAILABLE, 15, "calls are refused")
                assert on.get(f"/api/orgs/{on.client.org_id}").status_code in {200, 503}
        on.serves_within(POSTGRESQL_BACK_S)
    only(found, "200", "503")


@row("PostgreSQL has no connection left", "200 or 503 within 15 s, no deadlock")
def postgresql_exhausted(on: Stage) -> None:
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(psycopg.OperationalError):
            for _ in range(200):
                stack.enter_context(psycopg.connect(on.postgresql.url, connect_timeout=5))
        began_s = time.monotonic()
        answers = [on.get(f"/api/orgs/{on.client.org_id}").status_code for _ in range(3)]
        assert set(answers) <= {200, 503}, answers
        assert {each.ending for each in on.both()} <= {Ending.SUCCESS, Ending.UNAVAILABLE}
        assert time.monotonic() - began_s < 5 * POSTGRESQL_BACK_S
    on.serves_within(POSTGRESQL_BACK_S)


@row("PostgreSQL's disk full", "no 200 without a row, then 200 again")
def postgresql_full(on: Stage) -> None:
    """Its processes may write no file beyond a size, which PostgreSQL treats as a full disk."""
    with on.load() as found:
        time.sleep(0.5)
        _limit_files(on, FULL_BYTES)
        with contextlib.suppress(psycopg.Error), psycopg.connect(on.postgresql.url, connect_timeout=5) as filler:
            filler.execute("CREATE TABLE filler AS SELECT repeat('x', 1000) AS text FROM generate_series(1, 100000)")
        until(lambda: on.call(WRITING).ending is Ending.UNAVAILABLE, 20, "calls are refused")
        assert on.get("/health").status_code == 200
        if _postmaster_or_none(on) is not None:
            _limit_files(on, "unlimited")
        if _postmaster_or_none(on) is None:  # it has given up, as it does when its journal cannot be written
            on.postgresql.end()
            on.postgresql.start()
        on.serves_within(2 * POSTGRESQL_BACK_S)
    only(found, "200", "503")


def _postmaster(on: Stage) -> psutil.Process:
    assert on.postgresql._process is not None
    return psutil.Process(on.postgresql._process.pid)


def _postmaster_or_none(on: Stage) -> psutil.Process | None:
    process = on.postgresql._process
    return None if process is None or process.poll() is not None else psutil.Process(process.pid)


def _limit_files(on: Stage, size: str) -> None:
    """By PostgreSQL's own user, who may do so without rights of the system's."""
    root = _postmaster(on)
    for process in (root, *root.children(recursive=True)):
        command = ["prlimit", f"--pid={process.pid}", f"--fsize={size}:"]
        subprocess.run(as_server_user(command), check=False, capture_output=True, timeout=10)


# --- our own processes ------------------------------------------------------------------------------------------------


@row("gateway killed under load", "answered calls keep their rows")
def gateway_killed(on: Stage) -> None:
    with on.load() as found:
        time.sleep(1.0)
        on.web.kill()
        time.sleep(0.3)
        on.restart_web()
        on.serves_within(POSTGRESQL_BACK_S)
    only(found, "200", "no answer")


@row("gateway killed in the middle of a write", "a row with status unknown")
def gateway_killed_in_a_write(on: Stage) -> None:
    on.vendor.delay_s = 3.0
    asked, before = on.vendor.seen["tools/call"], sum(each.status == "unknown" for each in on.logged())

    def write() -> None:
        with contextlib.suppress(httpx.TransportError):
            on.call(WRITING)

    caller = threading.Thread(target=write, daemon=True)
    caller.start()
    until(lambda: on.vendor.seen["tools/call"] > asked, 10, "the vendor has the call")
    on.web.kill()
    caller.join(10)
    on.vendor.delay_s = 0.01
    assert sum(each.status == "unknown" for each in on.logged()) == before + 1
    on.restart_web()
    on.serves_within(POSTGRESQL_BACK_S)


@row("gateway paused for 2 s", "every call is answered afterwards")
def gateway_paused(on: Stage) -> None:
    with on.load() as found:
        time.sleep(0.5)
        with paused(psutil.Process(on.web.process.pid)):
            time.sleep(FAULT_S)
        on.serves_within(REDIS_BACK_S)
    only(found, "200", "503")


@row("gateway stopped in order, another beside it", "no call fails")
def gateway_stopped(on: Stage) -> None:
    on.vendor.delay_s = 1.0
    answers = []
    callers = [threading.Thread(target=lambda: answers.append(on.call()), daemon=True) for _ in range(6)]
    for caller in callers:
        caller.start()
    time.sleep(0.5)
    on.web.process.send_signal(signal.SIGTERM)
    for caller in callers:
        caller.join(20)
    on.vendor.delay_s = 0.01
    assert [each.ending for each in answers] == [Ending.SUCCESS] * 6, "calls under way are finished"
    on.web.process.wait(40)
    on.restart_web()
    on.serves_within(POSTGRESQL_BACK_S)


def _misdated_web(on: Stage, shift_s: int) -> contextlib.AbstractContextManager[Web]:
    @contextlib.contextmanager
    def started() -> Iterator[Web]:
        port = free_port()
        options = read_options({"PORT": str(port), "VAR": str(on.made.folder), "DEMO": "0"}, ROOT)
        command = [part.replace("gateway.asgi:", "tests.faults.shifted_app:") for part in web_command(options)]
        environment = {"CLOCK_SHIFT_S": str(shift_s)}
        with on.made._started("misdated", command, environment) as (process, log_path):
            web = Web(process, log_path, f"http://127.0.0.1:{port}")
            web.wait_until_ready()
            yield web

    return started()


@row("clocks of two hosts differ by 60 s", "200 on both")
def clocks_differ(on: Stage) -> None:
    for shift_s in (60, -60):
        with _misdated_web(on, shift_s) as web, on.http(web) as there, on.http() as here:
            assert on.call(client=there).ending is Ending.SUCCESS, "agent keys"
            session = there.get(f"/api/orgs/{on.client.org_id}", headers={"Cookie": on.cookie})
            assert session.status_code == 200, "sessions"
            assert agent.rpc(there, agent.access_token(there, on.client), "ping").status_code == 200
            if shift_s < 0:  # a token that is dated ahead by more than its leeway is not valid yet
                assert agent.rpc(here, agent.access_token(there, on.client), "ping").status_code == 200
            made = on.operator.run("create_service_client", org_id=on.client.org_id, name=f"doomed {shift_s}")
            assert agent.rpc(there, made["agent_key"], "ping").status_code == 200
            on.operator.run("delete_service_client", client_id=made["client_id"])
            until(lambda: agent.rpc(there, made["agent_key"], "ping").status_code == 401, 1.0, "the end of a key")  # noqa: B023


@row("worker and schedule killed", "calls go on; health turns unknown after 3 intervals")
def monitor_killed(on: Stage) -> None:
    until(lambda: on.health()["fake"] == "healthy", 30, "probes")
    on.worker.kill()
    on.beat.kill()
    try:
        with on.load(2) as found:
            until(lambda: on.health()["fake"] == "unknown", 3 * PROBE_INTERVAL_S + 10, "old probes are no news")
        only(found, "200")
    finally:
        on.worker.start()
        on.beat.start()
    until(lambda: on.health()["fake"] == "healthy", 60, "probes again")


@row("worker and schedule paused", "calls go on; probes go on afterwards")
def monitor_paused(on: Stage) -> None:
    until(lambda: on.health()["fake"] == "healthy", 60, "probes")
    with contextlib.ExitStack() as stack:
        for part in (on.worker, on.beat):
            assert part._process is not None
            stack.enter_context(paused(psutil.Process(part._process.pid)))
        with on.load(2) as found:
            until(lambda: on.health()["fake"] == "unknown", 3 * PROBE_INTERVAL_S + 10, "old probes are no news")
        only(found, "200")
    until(lambda: on.health()["fake"] == "healthy", 60, "probes again")


@row("worker and schedule cut off from Redis", "calls go on; probes go on afterwards")
def monitor_cut_off(on: Stage) -> None:
    until(lambda: on.health()["fake"] == "healthy", 60, "probes")
    with on.load(2) as found:
        with on.queue_relay.silent():
            until(lambda: on.health()["fake"] == "unknown", 3 * PROBE_INTERVAL_S + 10, "old probes are no news")
        until(lambda: on.health()["fake"] == "healthy", 60, "probes again")
    only(found, "200")
