"""A tool name belongs to the vendor with the longest prefix that begins it, also while that one cannot be asked.

Spec: D111, D164
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.api.proxy.conftest import Agent
from tests.factories.tenant import Tenant, connect, load_vendor
from tests.factories.threads import in_thread
from tests.fakes.vendor import TOOLS, FakeVendor, running_vendor

WRITE = {**TOOLS[1], "name": "write"}


@pytest.fixture
async def pro(vendor: FakeVendor, tenant: Tenant) -> AsyncIterator[FakeVendor]:
    """The vendor with the longer prefix; the one with the shorter prefix offers a name that looks like its tool."""
    vendor.tools = [*TOOLS, {**TOOLS[1], "name": "pro_write"}, {**TOOLS[1], "name": "fake_pro_other"}]
    async with running_vendor(tools=[WRITE]) as running:
        await in_thread(lambda: load_vendor(running.url, slug="fake-pro", prefix="fake_pro"))
        await in_thread(lambda: connect(tenant.organization, tenant.owner, "fake-pro"))
        yield running


async def listed(agent: Agent, bearer: str, path: str = "/v1/mcp") -> list[str]:
    answer = await agent.rpc(bearer, "tools/list", path=path)
    return [tool["name"] for tool in answer.json()["result"]["tools"]]


async def test_a_call_goes_to_the_owner_of_the_name(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, pro: FakeVendor
) -> None:
    assert await listed(agent, tenant.agent_key) == ["fake_fail", "fake_list", "fake_pro_write", "fake_write"]
    answer = await agent.call(tenant.agent_key, "fake_pro_write", text="for pro")
    assert answer.json()["result"]["structuredContent"] == {"text": "for pro"}
    assert (vendor.seen["tools/call"], pro.seen["tools/call"]) == (0, 1)


@pytest.mark.parametrize("trouble", ["down", "slow to list", "rejected"])
async def test_no_call_falls_through_while_the_owner_cannot_be_asked(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, pro: FakeVendor, trouble: str
) -> None:
    if trouble == "down":
        await in_thread(lambda: load_vendor("http://127.0.0.1:9/mcp", slug="fake-pro", prefix="fake_pro"))
    elif trouble == "slow to list":
        await in_thread(lambda: load_vendor(pro.url, slug="fake-pro", prefix="fake_pro", timeout_s=1))
        pro.list_delay_s = 30
    else:
        pro.api_key = "another"
    answer = await agent.call(tenant.agent_key, "fake_pro_write", text="for pro")
    assert answer.json()["error"]["data"]["vendor"] == "fake-pro"
    assert await listed(agent, tenant.agent_key) == ["fake_fail", "fake_list", "fake_write"]
    assert vendor.seen["tools/call"] == 0


async def test_a_name_stays_with_a_vendor_that_the_caller_may_not_use(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor, pro: FakeVendor
) -> None:
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    assert await listed(agent, other_tenant.agent_key) == ["fake_fail", "fake_list", "fake_write"]
    refused = (await agent.call(other_tenant.agent_key, "fake_pro_write", text="for pro")).json()["result"]
    assert refused["isError"]
    assert "not connected" in refused["content"][0]["text"]
    assert (await agent.call(other_tenant.agent_key, "fake_pro_other")).json()["result"]["isError"]
    assert vendor.seen["tools/call"] == pro.seen["tools/call"] == 0
    answer = await agent.call(other_tenant.agent_key, "fake__pro_write", text="for fake")
    assert answer.json()["result"]["structuredContent"] == {"text": "for fake"}
    assert vendor.seen["tools/call"] == 1


async def test_the_vendors_own_endpoint_has_all_its_tools(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, pro: FakeVendor, jwt: str
) -> None:
    names = await listed(agent, jwt, "/v1/fake/mcp")
    assert {"fake_pro_write", "fake_pro_other"} <= set(names)
    params = {"name": "fake_pro_write", "arguments": {"text": "for fake"}}
    answer = await agent.rpc(jwt, "tools/call", params, path="/v1/fake/mcp")
    assert answer.json()["result"]["structuredContent"] == {"text": "for fake"}
    assert (vendor.seen["tools/call"], pro.seen["tools/call"]) == (1, 0)
