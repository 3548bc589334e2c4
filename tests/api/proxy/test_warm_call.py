"""A warm call costs one vendor request and the audit's commit. No query, no thread, no hop off the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import httpx
import psycopg
import pytest
from asgiref.sync import SyncToAsync, sync_to_async
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from audit.call_record import CallRecord
from audit.postgresql_connection import PostgreSQLAuditConnection
from audit.sqlite_connection import SQLiteAuditConnection
from gateway.coordination import epochs
from gateway.hot_path_request import HotPathRequest
from gateway.lib.loop_reader import ReadingConnection
from proxy import outbox_relay, runtime
from proxy.request_context import RequestContext
from proxy.vendors.response import VendorResponse
from tests.api.proxy.conftest import Agent, headers
from tests.factories.tenant import Tenant
from tests.fakes.vendor import FakeVendor
from tests.garbage import freed_soon_without_collection

WATCHED: tuple[tuple[str, Any, str], ...] = (
    ("query", CursorWrapper, "execute"),
    ("query", CursorWrapper, "executemany"),
    ("query", ReadingConnection, "ask"),
    ("connection", BaseDatabaseWrapper, "connect"),
    ("connection", sqlite3, "connect"),
    ("connection", psycopg.Connection, "connect"),
    ("thread", threading.Thread, "start"),
    ("hop", asyncio.BaseEventLoop, "run_in_executor"),
    ("sync_to_async", SyncToAsync, "__call__"),
)
AUDIT_COMMITS: tuple[tuple[Any, str], ...] = (
    (SQLiteAuditConnection, "commit"),
    (PostgreSQLAuditConnection, "commit"),
    (PostgreSQLAuditConnection, "start_commit"),
)
KINDS = {kind for kind, _, _ in WATCHED}


@pytest.fixture(autouse=True)
def _no_relay_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The relay of the outbox asks the database each second of its own accord, which is not the call's work."""
    monkeypatch.setattr(outbox_relay, "EVERY_S", 3_600.0)


async def warmed(cold_call: Awaitable[httpx.Response]) -> None:
    """The call has worked, and what it left to be done behind its back is done."""
    assert (await cold_call).status_code == 200
    await runtime.current().caller_cache.flush_last_used()
    await runtime.current().tool_change_detector.settled()


@contextlib.contextmanager
def watched() -> Iterator[Counter[str]]:
    """How often each of WATCHED was called inside the block, in any thread."""
    seen: Counter[str] = Counter()

    def recording(kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*args: Any, **kwargs: Any) -> Any:
            seen[kind] += 1
            return original(*args, **kwargs)

        return recorded

    with pytest.MonkeyPatch.context() as patch:
        for kind, owner, name in WATCHED:
            patch.setattr(owner, name, recording(kind, getattr(owner, name)))
        yield seen


@contextlib.contextmanager
def batches_sent() -> Iterator[list[int]]:
    """The number of records in each batch that is sent to the audit's database inside the block."""
    sizes: list[int] = []

    def recording(original: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(sink: Any, records: Sequence[CallRecord]) -> Any:
            sizes.append(len(records))
            return original(sink, records)

        return recorded

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in AUDIT_COMMITS:
            patch.setattr(owner, name, recording(getattr(owner, name)))
        yield sizes


Call = Callable[[Agent, Tenant, str], Awaitable[httpx.Response]]


async def by_agent_key(agent: Agent, tenant: Tenant, jwt: str) -> httpx.Response:
    return await agent.call(tenant.agent_key, "fake_list", site="hq")


async def by_jwt(agent: Agent, tenant: Tenant, jwt: str) -> httpx.Response:
    return await agent.call(jwt, "fake_list", site="hq")


async def by_cli(agent: Agent, tenant: Tenant, jwt: str) -> httpx.Response:
    """Never the same arguments: an answer that is kept costs no vendor request at all."""
    return await agent.cli(jwt, "fake_list", {"site": uuid.uuid4().hex})


async def by_vendor_endpoint(agent: Agent, tenant: Tenant, jwt: str) -> httpx.Response:
    return await agent.rpc(jwt, "tools/call", {"name": "fake_list", "arguments": {}}, path="/v1/fake/mcp")


async def writing(agent: Agent, tenant: Tenant, jwt: str) -> httpx.Response:
    return await agent.call(tenant.agent_key, "fake_write")


@pytest.mark.parametrize("reply", ["json", "sse"])
@pytest.mark.parametrize(
    ("call", "rows"),
    [(by_agent_key, 1), (by_jwt, 1), (by_cli, 1), (by_vendor_endpoint, 1), (writing, 2)],
    ids=["agent key", "JWT", "CLI", "vendor's own endpoint", "writing tool"],
)
async def test_a_warm_call(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor, call: Call, rows: int, reply: str
) -> None:
    vendor.reply = reply
    await warmed(call(agent, tenant, jwt))
    vendor.seen.clear()
    with watched() as seen, batches_sent() as sizes:
        for _ in range(5):
            assert (await call(agent, tenant, jwt)).status_code == 200
    assert seen == Counter()
    assert vendor.seen == {"tools/call": 5}
    # One row, and before a writing call one more that says it began. Alone, each is a commit of its own.
    assert sizes == [1] * 5 * rows


async def with_progress(agent: Agent, tenant: Tenant, jwt: str) -> httpx.Response:
    params = {"name": "fake_list", "arguments": {}, "_meta": {"progressToken": 1}}
    return await agent.rpc(jwt, "tools/call", params)


async def in_a_batch(agent: Agent, tenant: Tenant, jwt: str) -> httpx.Response:
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "fake_list", "arguments": {}}}
    batch = [{**call, "id": number} for number in range(3)]
    return await agent.http.post("/v1/mcp", json=batch, headers=headers(jwt, {}))


async def listing(agent: Agent, tenant: Tenant, jwt: str) -> httpx.Response:
    return await agent.rpc(jwt, "tools/list", {})


async def nobody(agent: Agent, tenant: Tenant, jwt: str) -> httpx.Response:
    return await agent.call("x" * 40, "fake_list")


async def unknown_tool(agent: Agent, tenant: Tenant, jwt: str) -> httpx.Response:
    return await agent.call(jwt, "fake_nothing")


async def unknown_command(agent: Agent, tenant: Tenant, jwt: str) -> httpx.Response:
    return await agent.cli(jwt, "nothing", {})


@pytest.mark.parametrize(
    ("call", "status"),
    [
        *((call, 200) for call in (by_agent_key, by_jwt, by_cli, by_vendor_endpoint, writing)),
        *((call, 200) for call in (with_progress, in_a_batch, listing, unknown_tool)),
        (nobody, 401),
        (unknown_command, 403),
    ],
)
async def test_no_call_waits_for_garbage_collection(
    agent: Agent, tenant: Tenant, jwt: str, call: Call, status: int
) -> None:
    assert (await call(agent, tenant, jwt)).status_code == status
    async with freed_soon_without_collection(HotPathRequest, RequestContext, VendorResponse):
        for _ in range(3):
            assert (await call(agent, tenant, jwt)).status_code == status


async def test_a_read_that_was_asked_before_costs_its_row_only(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor
) -> None:
    await warmed(agent.cli(jwt, "fake_list", {"site": "hq"}))
    vendor.seen.clear()
    with watched() as seen, batches_sent() as sizes:
        for _ in range(5):
            assert (await agent.cli(jwt, "fake_list", {"site": "hq"})).headers["X-Cache"] == "HIT"
    assert seen == Counter()
    assert vendor.seen == {}
    assert sizes == [1] * 5


async def test_many_warm_calls_at_once_share_commits(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    calls = 40
    await warmed(agent.call(tenant.agent_key, "fake_list"))
    with watched() as seen, batches_sent() as sizes:
        answers = await asyncio.gather(*(agent.call(tenant.agent_key, "fake_list") for _ in range(calls)))
    assert {answer.status_code for answer in answers} == {200}
    # More connections to the vendor are opened, which is the transport's business; nothing else may happen.
    assert seen == Counter()
    assert sum(sizes) == calls
    assert len(sizes) < calls


async def test_the_watch_sees_what_a_cold_call_does(agent: Agent, tenant: Tenant) -> None:
    with watched() as seen:
        await warmed(agent.call(tenant.agent_key, "fake_list"))
        await sync_to_async(int)()
    assert set(seen) == KINDS


async def test_a_changed_caller_is_cold_once(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    await warmed(agent.call(tenant.agent_key, "fake_list"))
    runtime.current().store.bump_epochs([epochs.subject(tenant.client.subject)])
    with watched() as cold:
        await warmed(agent.call(tenant.agent_key, "fake_list"))
    with watched() as warm:
        await agent.call(tenant.agent_key, "fake_list")
    assert cold["query"] > 0
    assert warm == Counter()
