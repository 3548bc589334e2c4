"""A stop of a web process: what balancers, callers and connections see, and what the log keeps of calls cut off."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from http.client import HTTPResponse
from typing import Any

import aiohttp
import pytest
import uvicorn

from gateway import graceful_stop
from tests.e2e import agent
from tests.e2e.agent import ServiceClient
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Deployment, Web, deployment
from tests.e2e.shared_gateway import keyless_catalog
from tests.fakes.patient_vendor import PatientVendor
from tests.fakes.vendor import running_vendor

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")
DEADLINE_S = 60.0
LONG_S = 120.0  # longer than any stop here
READING = "fake_list"


@pytest.fixture(scope="module")
def made(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployment(template, tmp_path_factory.mktemp("stops") / "var") as made:
        yield made


@pytest.fixture
async def vendor() -> AsyncIterator[PatientVendor]:
    async with running_vendor(PatientVendor, api_key=None, reply="sse", steps=1) as vendor:
        assert isinstance(vendor, PatientVendor)
        yield vendor


@pytest.fixture
def service_client(made: Deployment, vendor: PatientVendor) -> ServiceClient:
    text = keyless_catalog("fake", vendor.url).replace("timeout_seconds = 20", "timeout_seconds = 200")
    with made.operator() as operator:
        operator.run("load_catalog", text=text)
        org_id = operator.run("create_organization", name="Patient")
        operator.run("connect_vendor", org_id=org_id, vendor="fake", fields={})
        return ServiceClient(org_id=org_id, **operator.run("create_service_client", org_id=org_id, name="patient bot"))


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    timeout = aiohttp.ClientTimeout(total=DEADLINE_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        yield session


async def call(
    http: aiohttp.ClientSession, web: Web, who: ServiceClient, takes_s: float, token: str | None = None
) -> tuple[int, str, str]:
    """Status, Connection header and body of one call."""
    params: dict[str, Any] = {"name": READING, "arguments": {"takes_s": takes_s}}
    if token is not None:
        params["_meta"] = {"progressToken": token}
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    async with http.post(web.mcp_url, json=body, headers=agent.bearer(who.agent_key)) as answer:
        return answer.status, answer.headers.get("Connection", ""), await answer.text()


async def ready(http: aiohttp.ClientSession, web: Web) -> tuple[int, str]:
    async with http.get(f"{web.origin}/ready", headers={"Host": "10.0.0.7"}) as answer:
        return answer.status, (await answer.json())["status"]


async def until(condition: Any) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not await condition():
            await asyncio.sleep(0.02)


async def ended(web: Web) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.to_thread(web.process.wait)


def is_open(web: Web) -> bool:
    """Whether the port accepts connections."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", web.port)) == 0


def error_codes(made: Deployment, who: ServiceClient) -> list[tuple[str, str]]:
    found = made.database.select(
        f"SELECT status, error_code FROM audit_requestauditentry WHERE user_id = '{who.subject}' ORDER BY id"
    )
    return [(str(status), str(code)) for status, code in found]


async def test_a_stop_in_its_steps(
    made: Deployment, vendor: PatientVendor, service_client: ServiceClient, http: aiohttp.ClientSession
) -> None:
    """Two signals: the second one changes nothing."""
    with made.web(DRAIN_DELAY_SECONDS="3", DRAIN_SECONDS="30") as web:
        idle = socket.create_connection(("127.0.0.1", web.port), timeout=DEADLINE_S)
        idle.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = HTTPResponse(idle)
        answer.begin()
        assert (answer.status, json.loads(answer.read())["status"]) == (200, "ok")
        assert (await call(http, web, service_client, 0))[:2] == (200, ""), "connections are kept"
        under_way = asyncio.ensure_future(call(http, web, service_client, 5))

        async def has_call() -> bool:
            return vendor.under_way > 0

        await until(has_call)
        web.process.send_signal(signal.SIGTERM)
        web.process.send_signal(signal.SIGTERM)

        async def is_draining() -> bool:
            return await ready(http, web) == (503, "draining")

        await until(is_draining)
        assert (await call(http, web, service_client, 0))[:2] == (200, "close"), "it serves while balancers ask"

        async def is_closed() -> bool:
            return not await asyncio.to_thread(is_open, web)

        await until(is_closed)
        assert not under_way.done(), "the call goes on after the listener has closed"
        assert idle.recv(65_536) == b"", "the end of the connection, and no reset"
        idle.close()
        status, connection, body = await under_way
        assert (status, connection) == (200, "close")
        assert json.loads(body)["result"]["structuredContent"] == {"takes_s": 5}
        await ended(web)
    assert error_codes(made, service_client) == [("success", "")] * 3


async def test_calls_that_take_too_long_are_told(
    made: Deployment, vendor: PatientVendor, service_client: ServiceClient, http: aiohttp.ClientSession
) -> None:
    with made.web(DRAIN_DELAY_SECONDS="0", DRAIN_SECONDS="1") as web:
        waiting = asyncio.ensure_future(call(http, web, service_client, LONG_S))
        vendor_pause = vendor.pace = asyncio.Semaphore(0)
        stream = asyncio.ensure_future(call(http, web, service_client, 0, token="mine"))

        async def have_begun() -> bool:
            return vendor.under_way > 0 and vendor.seen["tools/call"] == 2

        await until(have_begun)
        web.process.send_signal(signal.SIGTERM)
        status, _, body = await waiting
        assert (status, json.loads(body)["error"]) == (503, "unavailable")
        status, _, text = await stream
        messages = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
        assert status == 200
        assert messages[0]["method"] == "notifications/progress"
        assert (messages[-1]["id"], messages[-1]["error"]["data"]) == (7, {"reason": "unavailable"})
        await ended(web)
        vendor_pause.release()
    assert error_codes(made, service_client) == [("error", "gateway_stopped")] * 2


@pytest.mark.skipif("REDIS_URL" not in os.environ, reason="several web processes of one port need Redis")
async def test_of_several_processes_none_accepts_connections_while_calls_finish(
    made: Deployment, vendor: PatientVendor, service_client: ServiceClient, http: aiohttp.ClientSession
) -> None:
    with made.web(processes=2, WEB_PROCESSES="2") as web:
        under_way = asyncio.ensure_future(call(http, web, service_client, 3))

        async def has_call() -> bool:
            return vendor.under_way > 0

        await until(has_call)
        web.process.send_signal(signal.SIGTERM)

        async def is_closed() -> bool:
            return not await asyncio.to_thread(is_open, web)

        await until(is_closed)
        assert not under_way.done()
        assert (await under_way)[0] == 200
        await ended(web)


async def test_connections_that_wait_to_be_accepted_are_served() -> None:
    """The kernel would reset them when the listener closes."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    protocol = "gateway.http_protocol:BoundedHttpProtocol"
    server = uvicorn.Server(uvicorn.Config(application, port=0, http=protocol, lifespan="off", log_config=None))
    serving = asyncio.ensure_future(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    address = server.servers[0].sockets[0].getsockname()
    # The event loop does not run meanwhile, so none of them is accepted.
    clients = [socket.create_connection(address, timeout=DEADLINE_S) for _ in range(20)]
    for each in clients:
        each.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
    await graceful_stop.close_listeners(server)
    answers = await asyncio.gather(*(asyncio.to_thread(each.recv, 65_536) for each in clients))
    assert all(answer.startswith(b"HTTP/1.1 200 ") for answer in answers)
    with socket.socket() as late:
        assert late.connect_ex(address) != 0
    for each in clients:
        each.close()
    server.should_exit = True
    await serving
