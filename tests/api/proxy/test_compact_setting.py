"""The short list of tools as a setting of an agent: without a parameter, for its requests only."""

from __future__ import annotations

from typing import Any

import pytest

from oauth_ext.models import Client
from oauth_ext.services.service_client_changes import change_service_client
from proxy.protocol import compact_tools
from tests.api.proxy.conftest import Agent, access_token
from tests.api.proxy.items import both_eras, request
from tests.factories.tenant import Tenant, make_tenant
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

ALL = ["fake_fail", "fake_list", "fake_write"]
SHORT = ["search_tools", "describe_tool", "call_tool"]


async def choose(tenant: Tenant, lists_compactly: bool) -> None:
    await in_thread(
        lambda: change_service_client(
            actor=tenant.owner, client=tenant.client, changes={"lists_compactly": lists_compactly}
        )
    )


async def tools(era: str, agent: Agent, bearer: str, path: str = "/v1/mcp") -> list[str]:
    answer = await request(era, agent, bearer, "tools/list", path=path)
    return [each["name"] for each in answer.json()["result"]["tools"]]


@both_eras
async def test_the_next_request_has_the_list_of_the_setting(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor, era: str
) -> None:
    second = await in_thread(lambda: make_tenant(tenant.organization, tenant.owner, name="second bot"))
    assert await tools(era, agent, tenant.agent_key) == ALL
    await choose(tenant, True)
    assert await tools(era, agent, tenant.agent_key) == SHORT
    assert await tools(era, agent, second.agent_key) == ALL
    assert await tools(era, agent, other_tenant.agent_key) == []
    token = await in_thread(lambda: access_token(tenant))
    assert await tools(era, agent, token, "/v1/fake/mcp") == ALL
    await choose(tenant, False)
    assert await tools(era, agent, tenant.agent_key) == ALL


@both_eras
async def test_the_address_counts_before_the_setting(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, era: str
) -> None:
    for lists_compactly in (False, True):
        await choose(tenant, lists_compactly)
        assert await tools(era, agent, tenant.agent_key, "/v1/mcp?tools=all") == ALL
        assert await tools(era, agent, tenant.agent_key, "/v1/mcp?tools=search") == SHORT


@pytest.mark.parametrize("query", ["tools=all&tools=search", "tools=ALL", "tools=", "tools", "tools=all&tools=all"])
async def test_other_words_are_refused(agent: Agent, tenant: Tenant, vendor: FakeVendor, query: str) -> None:
    answer = await agent.rpc(tenant.agent_key, "tools/list", path=f"/v1/mcp?{query}")
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


@both_eras
async def test_a_tool_is_called_through_the_short_list(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, era: str
) -> None:
    params: dict[str, Any] = {"name": "call_tool", "arguments": {"name": "fake_list", "arguments": {}}}
    refused = await request(era, agent, tenant.agent_key, "tools/call", params)
    assert "error" in refused.json()
    await choose(tenant, True)
    await tools(era, agent, tenant.agent_key)
    answer = await request(era, agent, tenant.agent_key, "tools/call", params)
    assert answer.json()["result"]["content"]
    found = await request(
        era, agent, tenant.agent_key, "tools/call", {"name": "search_tools", "arguments": {"query": "list"}}
    )
    assert "fake_list" in found.text
    # The real names stay, for a client that knows them.
    direct = await request(era, agent, tenant.agent_key, "tools/call", {"name": "fake_list", "arguments": {}})
    assert direct.json()["result"]["content"]


async def test_initialize_says_how_tools_are_found(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    await choose(tenant, True)
    answer = await agent.rpc(tenant.agent_key, "initialize", asked)
    assert answer.json()["result"]["instructions"].endswith(compact_tools.INSTRUCTIONS)


def test_a_new_client_shows_all() -> None:
    assert Client._meta.get_field("lists_compactly").default is False
