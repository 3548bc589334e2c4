"""The hot path over ASGI, with a vendor on a real socket and two organizations."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from django.test import Client as Browser

from gateway.asgi import application
from gateway.coordination import backend
from proxy import caller_cache, freshness, runtime, shared_rows
from proxy.runtime import Runtime
from proxy.vendors.transport import VendorTransport
from tests.api.proxy.vendor_requests import LIMITS
from tests.factories.cast import Cast
from tests.factories.tenant import Tenant, make_connected_tenant, make_tenant
from tests.factories.vendor_pools import new_transport
from tests.fakes.vendor import FakeVendor, running_vendor


@pytest.fixture(autouse=True)
def _own_lists(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process knows only the lists that it fetched, unless the test asks for `shared_lists`."""
    if "shared_lists" not in request.fixturenames:
        monkeypatch.setattr(backend, "blob_store", lambda: None)


@pytest.fixture
def shared_lists() -> None:
    """Processes share tool lists if there is a Redis."""


class StandingClock:
    """The module `time` of a test, which stands still until the test moves it."""

    # Later than the clock of any machine, by which the store dates its connections: no connection is newer than a row.
    now_s = 1e9

    def monotonic(self) -> float:
        return self.now_s

    def time(self) -> float:
        return 0.0


@pytest.fixture
def caller_clock(monkeypatch: pytest.MonkeyPatch) -> StandingClock:
    """The time by which callers and their parts age."""
    made = StandingClock()
    for module in (caller_cache, shared_rows, freshness):
        monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
async def vendor() -> AsyncIterator[FakeVendor]:
    """A vendor that answers properly until the test says otherwise."""
    async with running_vendor() as running:
        yield running


@pytest.fixture
async def transport() -> AsyncIterator[VendorTransport]:
    """A transport of this loop, towards vendors at private addresses."""
    made = new_transport(limits=LIMITS)
    yield made
    await made.aclose()


@pytest.fixture
def tenant(vendor: FakeVendor, committed_cast: Cast) -> Tenant:
    """The first organization, connected to the vendor."""
    return make_connected_tenant(committed_cast.org, committed_cast.user("owner"), vendor.url)


@pytest.fixture
def other_tenant(tenant: Tenant, committed_cast: Cast) -> Tenant:
    """The second organization, connected to nothing."""
    return make_tenant(committed_cast.other_org, committed_cast.user("other_owner"), name="other bot")


@pytest.fixture
def jwt(tenant: Tenant) -> str:
    """An access token of the tenant's service client."""
    return access_token(tenant)


def access_token(tenant: Tenant, scope: str = "mcp:all") -> str:
    """Ask the token endpoint as a script would."""
    form = {
        "grant_type": "client_credentials",
        "client_id": tenant.client.client_id,
        "client_secret": tenant.client_secret,
        "scope": scope,
    }
    answer = Browser().post("/oauth/token", urlencode(form), content_type="application/x-www-form-urlencoded")
    assert answer.status_code == 200, answer.content
    token: str = answer.json()["access_token"]
    return token


class Agent:
    """An HTTP client of the hot path."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def rpc(
        self, bearer: str | None, method: str, params: dict[str, Any] | None = None, **more: Any
    ) -> httpx.Response:
        """One JSON-RPC request to the unified endpoint, or to `path`."""
        body = {"jsonrpc": "2.0", "id": more.pop("id", 1), "method": method, "params": params or {}}
        return await self.http.post(more.pop("path", "/v1/mcp"), json=body, headers=headers(bearer, more))

    async def call(self, bearer: str, tool: str, **arguments: Any) -> httpx.Response:
        """One tools/call."""
        return await self.rpc(bearer, "tools/call", {"name": tool, "arguments": arguments})

    async def cli(self, bearer: str | None, tool: Any, args: Any = None, vendor: str = "fake") -> httpx.Response:
        """One CLI call."""
        body = {"tool": tool} if args is None else {"tool": tool, "args": args}
        return await self.http.post(f"/v1/{vendor}/cli", json=body, headers=headers(bearer, {}))


def headers(bearer: str | None, more: dict[str, str]) -> dict[str, str]:
    """The headers of a well-behaved MCP client."""
    found = {"Accept": "application/json, text/event-stream", **more}
    return found if bearer is None else {"Authorization": f"Bearer {bearer}", **found}


@pytest.fixture
def served_by() -> Any:
    """The ASGI application that serves the client."""
    return application


@pytest.fixture
async def agent(tenant: Tenant, served_by: Any) -> AsyncIterator[Agent]:
    """A client; the loop's runtime is closed after the test."""
    transport = httpx.ASGITransport(app=served_by)
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as http:
        yield Agent(http)
    used = runtime._runtimes.get(asyncio.get_running_loop())
    await runtime.stop()
    if used is not None:
        await asyncio.to_thread(end_database_threads, used)


def end_database_threads(used: runtime.Runtime) -> None:
    """Wait for work that went on past its deadline: its rows must not appear while the tables are emptied."""
    database = used.caller_cache._database
    for threads in (database.db_threads, database.write_thread, used.tool_change_detector._threads):
        threads.shutdown(wait=True)


@pytest.fixture
async def other_process(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runtime]:
    """The state of another process: caches and connections of its own, over the same database and store."""
    with monkeypatch.context() as patch:
        patch.setattr(backend, "current", backend.current.__wrapped__)
        made = runtime._build()
    assert made.store is not backend.current()
    yield made
    await made.aclose()


@contextlib.contextmanager
def inside(process: Runtime) -> Iterator[None]:
    """Calls in this block are served by `process`."""
    loop = asyncio.get_running_loop()
    ours = runtime.current()
    runtime._runtimes[loop] = process
    try:
        yield
    finally:
        runtime._runtimes[loop] = ours
