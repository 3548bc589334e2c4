"""Large bodies of callers: parsed by turns, each on the account of its organization, and never in the loop."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from gateway.lib import body_budgets, strict_json
from proxy.protocol import jsonrpc
from proxy.vendors import fair_scheduler
from proxy.views import body as body_view
from tests.api.proxy.conftest import Agent, headers
from tests.api.proxy.traces import until
from tests.factories.tenant import Tenant
from tests.fakes.vendor import FakeVendor

LARGE_PING = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"pad":"' + b"x" * 100_000 + b'"}}'


async def send(agent: Agent, bearer: str, content: bytes = LARGE_PING) -> Any:
    sent = {"Content-Type": "application/json", **headers(bearer, {})}
    return await agent.http.post("/v1/mcp", content=content, headers=sent)


async def test_organizations_alternate(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One organization's three bodies stand in line before another's one comes: that is parsed second."""
    for each in (tenant, other_tenant):
        assert (await agent.rpc(each.agent_key, "ping")).status_code == 200
    may_go_on, parsed = threading.Event(), []
    real = strict_json.loads

    def loads(body: bytes, **options: Any) -> object:
        assert may_go_on.wait(10)
        assert threading.current_thread() is not threading.main_thread()
        document = real(body, **options)
        parsed.append(document["id"])  # type: ignore[index]
        return document

    monkeypatch.setattr(body_view.strict_json, "loads", loads)
    bodies = [LARGE_PING.replace(b'"id":1', b'"id":%d' % number) for number in range(1, 5)]
    scheduler = fair_scheduler._of_loop(fair_scheduler._thread_schedulers)
    waiting = []
    for number, body in enumerate(bodies):
        bearer = (other_tenant if number == 3 else tenant).agent_key
        waiting.append(asyncio.ensure_future(send(agent, bearer, body)))
        await until(lambda: scheduler._is_busy and len(scheduler._line) == number)  # noqa: B023
    assert (await agent.http.get("/health")).status_code == 200, "the loop is free meanwhile"
    may_go_on.set()
    assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [200] * 4
    assert parsed == [1, 4, 2, 3]


async def test_a_slot_that_does_not_come_is_503(agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_view, "BODY_SLOT_WAIT_S", 0.01)
    async with fair_scheduler._of_loop(fair_scheduler._thread_schedulers).slot("another organization"):
        answer = await send(agent, tenant.agent_key)
    assert (answer.status_code, answer.json()["error"]) == (503, "overloaded")
    assert int(answer.headers["Retry-After"]) > 0
    monkeypatch.undo()
    assert (await send(agent, tenant.agent_key)).json()["result"] == {}


async def test_an_absurd_structure_is_a_parse_error(agent: Agent, tenant: Tenant) -> None:
    absurd = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"pad":[' + b"[]," * 1_300_000 + b"1]}}"
    answer = await send(agent, tenant.agent_key, absurd)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)
    assert "objects and arrays" in answer.json()["error"]["message"]


async def test_the_entries_of_a_large_batch_are_measured_beside_the_loop(
    agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []
    real = strict_json.entry_sizes

    def entry_sizes(body: bytes) -> list[int]:
        threads.append(threading.current_thread())
        return real(body)

    monkeypatch.setattr(strict_json, "entry_sizes", entry_sizes)
    answer = await send(agent, tenant.agent_key, b"[%b]" % LARGE_PING)
    assert [each["result"] for each in answer.json()] == [{}]
    assert threads
    assert threading.main_thread() not in threads


async def test_the_answers_of_a_batch_are_bounded_together(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests after too many bytes are refused and not run; the answers before count until they have left."""
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 200  # with the usual bounds
    vendor.seen.clear()
    settings.VENDOR_REPLY_BYTES = 100_000
    held: list[int] = []

    def held_now(bodies: Any, *arguments: Any, **options: Any) -> Any:
        held.append(body_budgets.vendors().held_by(tenant.organization.id))
        return real(bodies, *arguments, **options)

    real = jsonrpc.batch_bytes
    monkeypatch.setattr(jsonrpc, "batch_bytes", held_now)
    call = {"jsonrpc": "2.0", "method": "tools/call"}
    large = {"name": "fake_list", "arguments": {"pad": "x" * 30_000}}  # the vendor sends it back twice
    batch = [call | {"id": number, "params": large} for number in (1, 2, 3)] + [
        {"jsonrpc": "2.0", "id": 4, "method": "ping"}
    ]
    answer = await agent.http.post("/v1/mcp", json=batch, headers=headers(tenant.agent_key, {}))
    first, second, *refused = answer.json()
    for each in (first, second):
        assert each["result"]["structuredContent"] == large["arguments"]
    assert [(each["id"], each["error"]["data"]["reason"]) for each in refused] == [(3, "overloaded"), (4, "overloaded")]
    assert vendor.seen["tools/call"] == 2
    assert held[0] >= 120_000
    assert body_budgets.vendors().held == 0
