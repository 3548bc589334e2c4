"""Rows of the fault matrix that a vendor causes. Each raises AssertionError where an answer is not as documented."""

from __future__ import annotations

import contextlib
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil

from tests.api.proxy.hostile.answers import BAD, REJECTED, TIMEOUT, UNAVAILABLE
from tests.api.proxy.hostile.test_faults import ROWS
from tests.e2e import agent
from tests.e2e.shared_gateway import keyless_catalog
from tests.fakes.vendor_faults import MIB
from tests.faults.history import Ending
from tests.faults.matrix_stage import HOSTILE_TIMEOUT_S, WRITING, Answer, Stage, until
from tests.faults.matrix_table import row

# A circuit that a fault has opened lets a trial through after this time.
CIRCUIT_S = 15.0
MEMORY_BYTES = 32 * MIB
LATE_S = 3.0  # beyond a deadline, on a busy machine


def is_failed(cli: Answer, mcp: Answer, reason: str) -> None:
    """502 on the command; HTTP 200 with -32603 and the reason on MCP."""
    assert (cli.status, cli.ending) == (502, Ending.VENDOR_ERROR), cli
    assert (mcp.status, mcp.ending, mcp.reason) == (200, Ending.VENDOR_ERROR, reason), mcp
    assert mcp.body["error"]["code"] == -32603
    assert set(cli.body) == {"error"}


def recovers(on: Stage, vendor: str = "hostile") -> None:
    """The next calls of the hostile vendor work once its fault is over."""
    on.hostile.fault = ""
    until(lambda: on.call(vendor=vendor).ending is Ending.SUCCESS, CIRCUIT_S, "the vendor is called again")


def faults_of(on: Stage, reason: str, names: tuple[str, ...] = (), vendor: str = "hostile") -> None:
    """Each fault of the fake vendor that ends with `reason`, on both routes."""
    chosen = names or tuple(name for name, entry in ROWS.items() if entry.reason == reason)
    assert chosen
    for name in chosen:
        on.hostile.fault = name
        with ThreadPoolExecutor(2) as pool:
            cli = pool.submit(on.call, vendor=vendor, route="cli")
            mcp = pool.submit(on.call, vendor=vendor)
            is_failed(cli.result(), mcp.result(), reason)
        for answer in (cli.result(), mcp.result()):
            assert vendor == "patient" or answer.took_s < HOSTILE_TIMEOUT_S + LATE_S, (name, answer.took_s)
            assert "secret internals" not in str(answer.body)
        recovers(on, vendor)


@row("vendor down: refuses connections", "vendor_unavailable, 502")
def vendor_refuses(on: Stage) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}/mcp"
        url = on.hostile.url
        on.operator.run("load_catalog", text=keyless_catalog("hostile", nowhere))
        until(lambda: on.call(vendor="hostile").reason == UNAVAILABLE, 10, "the catalog is read again")
        cli, mcp = on.both(vendor="hostile")
        is_failed(cli, mcp, UNAVAILABLE)
        assert max(cli.took_s, mcp.took_s) < 1.0, (cli.took_s, mcp.took_s)
        with on.http() as http:
            listed = agent.rpc(http, on.client.agent_key, "tools/list").json()["result"]
        assert any(tool["name"] == "fake_list" for tool in listed["tools"]), "the others are listed"
        until(lambda: on.health()["hostile"] == "down", 30, "three failed probes")
        assert on.health()["fake"] == "healthy"
    entry = keyless_catalog("hostile", url)
    on.operator.run(
        "load_catalog", text=entry.replace("timeout_seconds = 20", f"timeout_seconds = {HOSTILE_TIMEOUT_S}")
    )
    recovers(on)


@row("vendor slow, half-open, endless stream", "vendor_timeout, 502 at the deadline")
def vendor_is_slow(on: Stage) -> None:
    faults_of(on, TIMEOUT)
    written = on.hostile.seen["tools/call"]
    on.hostile.fault = "never_answers"
    assert on.call(WRITING, vendor="hostile").reason == TIMEOUT
    assert on.hostile.seen["tools/call"] == written + 1, "a call that writes is never sent twice"
    recovers(on)


@row("vendor dies, 5xx, 429", "vendor_unavailable, 502")
def vendor_fails(on: Stage) -> None:
    faults_of(on, UNAVAILABLE, ("closes_at_once", "resets", "says_500", "says_503"))
    on.hostile.fault = "says_429"
    cli, mcp = on.both(vendor="hostile")
    is_failed(cli, mcp, UNAVAILABLE)
    assert cli.headers["Retry-After"] == "7"
    assert mcp.body["error"]["data"]["retryAfter"] == 7
    recovers(on)


@row("vendor answers garbage, too much, a bomb", "bad_vendor_response, 502")
def vendor_answers_garbage(on: Stage) -> None:
    process = psutil.Process(on.web.process.pid)
    before = process.memory_info().rss
    faults_of(on, BAD, vendor="patient")
    grown = process.memory_info().rss - before
    assert grown < MEMORY_BYTES, f"{grown / MIB:.0f} MiB more"


@row("vendor rejects the credential in mid-session", "vendor_rejected_credentials, 502")
def vendor_rejects(on: Stage) -> None:
    faults_of(on, REJECTED)
    on.hostile.fault = "says_401"
    asked = on.hostile.seen["tools/call"]
    assert on.call(vendor="hostile", route="cli").reason == "vendor rejected credentials"
    assert on.hostile.seen["tools/call"] <= asked + 1, "no loop of retries"
    recovers(on)


@row("vendor forgets its sessions", "200, sent once more")
def vendor_forgets(on: Stage) -> None:
    for status in (404, 400):
        on.vendor.lost_session_status = status
        for tool in ("fake_list", WRITING):
            assert on.call(tool).ending is Ending.SUCCESS, "a session to lose"
            on.vendor.forget_sessions()
            sent = on.vendor.seen["tools/call"]  # health probes begin sessions too, and call no tool
            assert on.call(tool).ending is Ending.SUCCESS
            assert on.vendor.seen["tools/call"] == sent + 2
    on.vendor.lost_session_status = 404


@row("vendor's own error and tool errors", "relayed; 422 on the command")
def vendor_says_no(on: Stage) -> None:
    cli, mcp = on.both("fake_fail")
    assert (cli.status, cli.body) == (422, {"error": "the thing broke"})
    assert (mcp.status, mcp.body["result"]["isError"]) == (200, True)


@row("client leaves in the middle of a call", "one row client_closed, the place is free")
def client_leaves(on: Stage) -> None:
    on.vendor.delay_s = 5.0
    request_id = f"matrix-left-{time.monotonic_ns()}"
    on.history.asks(request_id)
    params = {"name": "fake_list", "arguments": {"mark": request_id}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {**agent.bearer(on.client.agent_key), "X-Request-Id": request_id}
    with contextlib.suppress(httpx.ReadTimeout), httpx.Client(base_url=on.web.origin, trust_env=False) as http:
        http.post("/v1/mcp", json=body, headers=headers, timeout=httpx.Timeout(5.0, read=0.5))
        raise AssertionError("the call was answered")

    def row_is_there() -> bool:
        return any(row.request_id == request_id and row.error_code == "client_closed" for row in on.logged())

    until(row_is_there, 3.0, "the row of the call that was left")
    on.vendor.delay_s = 0.01
    assert on.call().ending is Ending.SUCCESS


@row("a slow vendor beside a good one", "the good one is not slower")
def slow_beside_good(on: Stage) -> None:
    on.hostile.fault = "never_answers"
    with ThreadPoolExecutor(40) as pool:
        waiting = [pool.submit(on.call, vendor="hostile") for _ in range(40)]
        good = [on.call() for _ in range(20)]
        assert {each.ending for each in good} == {Ending.SUCCESS}
        assert sorted(each.took_s for each in good)[-2] < 1.0
        assert {each.result().ending for each in waiting} <= {Ending.VENDOR_ERROR, Ending.UNAVAILABLE}
    recovers(on)


@row("many callers read the same", "the vendor is asked once")
def same_read(on: Stage) -> None:
    on.vendor.delay_s = 0.5
    asked, mark = on.vendor.seen["tools/call"], f"same {time.monotonic_ns()}"
    with ThreadPoolExecutor(10) as pool:
        answers = [pool.submit(on.call, route="cli", mark=mark) for _ in range(10)]
        assert {each.result().ending for each in answers} == {Ending.SUCCESS}
    on.vendor.delay_s = 0.01
    assert on.vendor.seen["tools/call"] == asked + 1
