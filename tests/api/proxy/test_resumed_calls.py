"""Calls whose vendor closes its event streams before the answer: on every route they are answered as any other.

Spec: §4.14 (5) · protocol.md A.2, A.6
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import httpx
import pytest

from gateway.hot_path_request import HotPathRequest
from proxy import runtime
from proxy.request_context import RequestContext
from proxy.vendors import resumption
from proxy.vendors.response import VendorResponse
from proxy.vendors.resumption import PendingResponse
from tests.api.proxy.conftest import Agent
from tests.api.proxy.streams import streaming
from tests.api.proxy.test_progress import asked, messages_of
from tests.api.proxy.traces import busy_connections, rows, until
from tests.factories.tenant import Tenant, connect, load_vendor
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor
from tests.garbage import freed_without_collection

CUTS = 3


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumption, "SHORTEST_PAUSE_S", 0.0)


@pytest.fixture
def cutting(vendor: FakeVendor) -> FakeVendor:
    """The vendor, whose event streams end three times before the answer."""
    vendor.reply, vendor.cuts = "sse", CUTS
    return vendor


Call = Callable[[Agent, Tenant, str], Awaitable[httpx.Response]]


async def by_mcp(agent: Agent, tenant: Tenant, jwt: str) -> httpx.Response:
    return await agent.call(tenant.agent_key, "fake_list", site="hq")


async def by_vendor_endpoint(agent: Agent, tenant: Tenant, jwt: str) -> httpx.Response:
    return await agent.rpc(jwt, "tools/call", {"name": "fake_list", "arguments": {"site": "hq"}}, path="/v1/fake/mcp")


async def by_cli(agent: Agent, tenant: Tenant, jwt: str) -> httpx.Response:
    return await agent.cli(jwt, "list", {"site": "hq"})


async def writing(agent: Agent, tenant: Tenant, jwt: str) -> httpx.Response:
    return await agent.call(tenant.agent_key, "fake_write", site="hq")


async def with_progress(agent: Agent, tenant: Tenant, jwt: str) -> httpx.Response:
    return await agent.rpc(tenant.agent_key, "tools/call", asked("mine", site="hq"))


@pytest.mark.parametrize("call", [by_mcp, by_vendor_endpoint, by_cli, writing, with_progress])
async def test_a_call_is_answered_and_sent_once(
    agent: Agent, tenant: Tenant, jwt: str, cutting: FakeVendor, call: Call
) -> None:
    answer = await call(agent, tenant, jwt)
    assert answer.status_code == 200
    assert '{\\"site\\": \\"hq\\"}' in answer.text
    assert cutting.seen["tools/call"] == 1
    assert cutting.seen["GET"] == CUTS
    assert cutting.seen["notifications/cancelled"] == 0
    assert [row.status for row in await rows()][-1:] == ["success"]
    assert not runtime.current().pool.circuits.has_trouble


async def test_reports_of_all_streams_come_in_order_and_once(
    agent: Agent, tenant: Tenant, jwt: str, cutting: FakeVendor
) -> None:
    *notes, response = messages_of(await with_progress(agent, tenant, jwt))
    assert [(note["params"]["progressToken"], note["params"]["progress"]) for note in notes] == [
        ("mine", number) for number in range(1, CUTS + 2)
    ]
    assert response["result"]["structuredContent"] == {"site": "hq"}


async def test_each_caller_of_each_organization_gets_the_rest_of_its_own(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, cutting: FakeVendor
) -> None:
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    callers = [(each, number) for each in (tenant, other_tenant) for number in range(4)]
    answers = await asyncio.gather(
        *(
            agent.rpc(each.agent_key, "tools/call", asked(1, org=str(each.organization.id), caller=number))
            for each, number in callers
        )
    )
    for (each, number), answer in zip(callers, answers, strict=True):
        *notes, response = messages_of(answer)
        own = {"org": str(each.organization.id), "caller": number}
        assert [json.loads(note["params"]["message"]) for note in notes] == [own] * (CUTS + 1)
        assert response["result"]["structuredContent"] == own
    assert cutting.seen["initialize"] == 2
    assert cutting.seen["tools/call"] == len(callers)
    assert cutting.seen["GET"] == len(callers) * CUTS


@pytest.mark.parametrize(
    ("status", "reason"),
    [(405, "bad_vendor_response"), (401, "vendor_rejected_credentials"), (503, "vendor_unavailable")],
)
async def test_a_vendor_that_does_not_go_on_is_reported_on_every_route(
    agent: Agent, tenant: Tenant, jwt: str, cutting: FakeVendor, status: int, reason: str
) -> None:
    cutting.status_of_rest = status
    answer = await by_mcp(agent, tenant, jwt)
    assert answer.json()["error"]["data"]["vendor"] == "fake"
    *notes, last = messages_of(await with_progress(agent, tenant, jwt))
    assert [note["params"]["progress"] for note in notes] == [1]
    assert last["error"]["data"]["vendor"] == "fake"
    command = await by_cli(agent, tenant, jwt)
    assert command.status_code == 502
    assert "Www-Authenticate" not in {**answer.headers, **command.headers}
    assert [row.error_code for row in await rows()] == [reason] * 3
    assert cutting.seen["tools/call"] == cutting.seen["GET"] == 3


async def test_the_deadline_holds_over_all_streams(agent: Agent, tenant: Tenant, jwt: str, cutting: FakeVendor) -> None:
    await in_thread(lambda: load_vendor(cutting.url, timeout_s=1))
    cutting.cuts = 1_000_000_000
    answer = await by_cli(agent, tenant, jwt)
    assert (answer.status_code, answer.json()) == (502, {"error": "The vendor didn’t respond in time."})
    await until(lambda: cutting.seen["notifications/cancelled"])
    assert (cutting.seen["tools/call"], cutting.seen["notifications/cancelled"]) == (1, 1)
    await until(lambda: busy_connections() == 0)


async def test_who_leaves_between_two_streams_ends_the_call(
    agent: Agent, tenant: Tenant, jwt: str, cutting: FakeVendor
) -> None:
    cutting.retry_ms = 4_000
    async with streaming(tenant.agent_key, asked(1)) as stream:
        assert (await stream.read() or {})["params"]["progress"] == 1
        await until(lambda: busy_connections() == 0)
        await stream.leave()
    (row,) = await rows()
    assert (row.status, row.error_code) == ("error", "client_closed")
    await until(lambda: cutting.seen["notifications/cancelled"])
    call, cancelled = cutting.bodies[-2:]
    assert cancelled["params"] == {"requestId": call["id"]}
    assert cutting.seen["GET"] == 0


async def test_a_call_keeps_its_bulkhead_slot_between_two_streams(
    agent: Agent, tenant: Tenant, jwt: str, cutting: FakeVendor, settings: object
) -> None:
    settings.VENDOR_CALLS_PER_ORGANIZATION = 1  # type: ignore[attr-defined]
    answers = await asyncio.gather(*(agent.call(tenant.agent_key, "fake_write", caller=number) for number in range(3)))
    assert [answer.json()["result"]["structuredContent"] for answer in answers] == [{"caller": n} for n in range(3)]
    kinds = [kind for kind in cutting.order if kind in ("tools/call", "GET")]
    assert kinds == ["tools/call", *["GET"] * CUTS] * 3


@pytest.mark.parametrize("call", [by_mcp, by_cli, with_progress])
async def test_no_call_waits_for_garbage_collection(
    agent: Agent, tenant: Tenant, jwt: str, cutting: FakeVendor, call: Call
) -> None:
    await call(agent, tenant, jwt)
    with freed_without_collection(HotPathRequest, RequestContext, VendorResponse, PendingResponse):
        for _ in range(3):
            assert (await call(agent, tenant, jwt)).status_code == 200
        await until(lambda: busy_connections() == 0)
        for _ in range(5):  # the rest of a stream's generator is closed in a task of its own
            await asyncio.sleep(0)
