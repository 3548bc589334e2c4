"""The answer to tools/list is joined once for equal lists and rights, and sent in slices."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from gateway import hot_path_app
from gateway.lib import body_budgets
from proxy import runtime
from proxy.calls import list_tools
from tests.api.proxy.conftest import Agent
from tests.api.proxy.traces import until
from tests.factories.tenant import Tenant, connect, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.vendor import TOOLS, FakeVendor

MORE = [
    {"name": f"fake_tool_{number:04}", "description": "x" * 1_000, "inputSchema": {"type": "object"}}
    for number in range(1_200)
]


HEAD_AND_END_BYTES = len(b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}')


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of vendors of each answer that was joined."""
    seen: list[int] = []
    build = list_tools._build

    def recording(context: Any, listed: Any) -> Any:
        seen.append(len(listed))
        return build(context, listed)

    monkeypatch.setattr(list_tools, "_build", recording)
    return seen


@pytest.fixture
def slices(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The bytes of each slice, and those that the tenant's organization holds in the budget meanwhile."""
    seen: list[tuple[int, int]] = []
    send_slices = hot_path_app._send_slices

    async def recording(part: bytes, send: Any) -> None:
        async def sending(message: MutableMapping[str, Any]) -> None:
            seen.append((len(message["body"]), body_budgets.vendors().held_by(tenant.organization.id)))
            await send(message)

        await send_slices(part, sending)

    monkeypatch.setattr(hot_path_app, "_send_slices", recording)
    return seen


async def names(agent: Agent, bearer: str, **more: Any) -> list[str]:
    return [tool["name"] for tool in (await agent.rpc(bearer, "tools/list", **more)).json()["result"]["tools"]]


async def test_equal_lists_of_two_organizations_are_joined_once(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, jwt: str, vendor: FakeVendor, built: list[int]
) -> None:
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    every = sorted(tool["name"] for tool in TOOLS)
    for bearer in (tenant.agent_key, other_tenant.agent_key, jwt, tenant.agent_key):
        assert await names(agent, bearer) == every
    assert built == [1]
    assert await names(agent, jwt, path="/v1/fake/mcp") == every
    assert built == [1], "no other vendor's prefix begins with this one's"


async def test_other_rights_are_another_answer(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor, built: list[int]
) -> None:
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    every = sorted(tool["name"] for tool in TOOLS)
    assert await names(agent, tenant.agent_key) == every
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
    for _ in range(2):
        assert await names(agent, tenant.agent_key) == ["fake_list"]
        assert await names(agent, other_tenant.agent_key) == every
    await in_thread(lambda: restrict_tools(tenant.organization))
    assert await names(agent, tenant.agent_key) == []
    assert built == [1, 1, 1]


async def test_another_list_is_another_answer(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor, built: list[int]
) -> None:
    """One organization has fetched the vendor's new list, the other has not."""
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    assert await names(agent, tenant.agent_key) == sorted(tool["name"] for tool in TOOLS)
    vendor.tools = TOOLS[:1]
    assert await names(agent, other_tenant.agent_key) == ["fake_list"]
    assert await names(agent, tenant.agent_key) == sorted(tool["name"] for tool in TOOLS)
    assert built == [1, 1]


async def test_a_large_answer_is_sent_in_slices_of_one_body(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, built: list[int], slices: list[tuple[int, int]]
) -> None:
    """Only the slice on its way is counted for the caller."""
    vendor.tools, vendor.page_size = [*TOOLS, *MORE], 2_000
    answers = [await agent.rpc(tenant.agent_key, "tools/list") for _ in range(2)]
    assert built == [1]
    assert answers[0].content == answers[1].content
    assert answers[0].headers["Content-Length"] == str(len(answers[0].content))
    listed = [tool["name"] for tool in answers[0].json()["result"]["tools"]]
    assert listed == sorted(tool["name"] for tool in vendor.tools)
    assert sum(size for size, _ in slices) == 2 * len(answers[0].content) > 2_400_000
    limit = hot_path_app.SLICE_BYTES
    assert max(size for size, _ in slices) <= limit
    assert {held for _, held in slices} == {limit}
    assert body_budgets.vendors().held_by(tenant.organization.id) == 0


async def test_an_answer_that_is_not_kept_counts_whole_until_it_is_sent(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor, slices: list[tuple[int, int]]
) -> None:
    vendor.tools, vendor.page_size = [*TOOLS, *MORE], 2_000
    runtime.current().list_bodies._kept._max_bytes = 3_000
    answer = await agent.rpc(tenant.agent_key, "tools/list")
    shared_bytes = len(answer.content) - HEAD_AND_END_BYTES
    assert {held for _, held in slices} == {hot_path_app.SLICE_BYTES + shared_bytes}
    assert body_budgets.vendors().held == 0
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    slices.clear()
    assert (await agent.rpc(other_tenant.agent_key, "tools/list")).content == answer.content
    assert {held for _, held in slices} == {0}, "it is the other organization's"
    assert body_budgets.vendors().held == 0


async def test_an_answer_that_leaves_the_cache_counts_until_its_readers_have_it(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, slices: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor.tools, vendor.page_size = [*TOOLS, *MORE], 2_000
    size_bytes = len((await agent.rpc(tenant.agent_key, "tools/list")).content)
    may_go_on, send_slices, waiting = asyncio.Event(), hot_path_app._send_slices, 0

    async def slow(part: bytes, send: Any) -> None:
        nonlocal waiting
        waiting += 1
        await may_go_on.wait()
        await send_slices(part, send)

    monkeypatch.setattr(hot_path_app, "_send_slices", slow)
    budget, limit = body_budgets.vendors(), hot_path_app.SLICE_BYTES
    readers = [asyncio.ensure_future(agent.rpc(tenant.agent_key, "tools/list")) for _ in range(3)]
    await until(lambda: waiting == 3)
    assert budget.held == 3 * limit
    kept = runtime.current().list_bodies._kept
    for key in list(kept):
        kept.pop(key)
    assert budget.held == 3 * limit + size_bytes - HEAD_AND_END_BYTES, "once for all of its readers"
    readers[0].cancel()
    await asyncio.wait(readers[:1])
    may_go_on.set()
    assert [len((await each).content) for each in readers[1:]] == [size_bytes] * 2
    assert budget.held == 0


async def test_a_list_in_a_batch_is_the_same(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    alone = (await agent.rpc(tenant.agent_key, "tools/list")).json()["result"]
    batch = [{"jsonrpc": "2.0", "id": number, "method": "tools/list"} for number in (1, 2)]
    headers = {"Authorization": f"Bearer {tenant.agent_key}", "MCP-Protocol-Version": "2025-03-26"}
    answers = (await agent.http.post("/v1/mcp", json=batch, headers=headers)).json()
    assert [each["result"] for each in answers] == [alone, alone]


async def test_kept_answers_are_bounded(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    """The organization that built most loses its least recently used one."""
    bodies = runtime.current().list_bodies
    bodies._kept._max_bytes = 3_000
    for tools in (["fake_list"], ["fake_write"], ["fake_fail"], ["fake_list"]):
        await in_thread(lambda tools=tools: restrict_tools(tenant.organization, *tools))
        assert await names(agent, tenant.agent_key) == tools
        assert 0 < bodies._kept.size_bytes <= 3_000
    assert len(bodies._kept) == 2
