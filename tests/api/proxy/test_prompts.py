"""Prompts, completion and apps at both endpoints and in both revisions, and the addresses in results of tools."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp_types import _v2026_07_28 as schema

from tests.api.proxy.conftest import Agent
from tests.api.proxy.items import both_eras, request
from tests.api.proxy.modern import PATHS, bearer_of
from tests.api.proxy.traces import rows
from tests.factories.tenant import Tenant, connect, load_vendor, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.item_vendor import ItemVendor
from tests.fakes.vendor import TOOLS, running_vendor


@pytest.fixture
async def vendor() -> AsyncIterator[ItemVendor]:
    """The vendor of the tenant, with resources and prompts."""
    async with running_vendor(ItemVendor) as running:
        assert isinstance(running, ItemVendor)
        yield running


@both_eras
@pytest.mark.parametrize("path", PATHS)
async def test_prompts_are_listed_and_got(
    agent: Agent, tenant: Tenant, jwt: str, vendor: ItemVendor, era: str, path: str
) -> None:
    bearer = bearer_of(tenant, jwt, path)
    listed = (await request(era, agent, bearer, "prompts/list", path=path)).json()["result"]
    (prompt,) = listed["prompts"]
    assert prompt["name"] == ("fake_greet" if path == "/v1/mcp" else "greet")
    assert prompt["arguments"] == [{"name": "who", "required": True}]
    params = {"name": prompt["name"], "arguments": {"who": "Ann"}}
    answer = await request(era, agent, bearer, "prompts/get", params, path=path)
    assert answer.json()["result"]["messages"][0]["content"]["text"] == "Hello Ann"
    assert vendor.bodies[-1]["params"] == {"name": "greet", "arguments": {"who": "Ann"}}
    if era == "modern":
        schema.ListPromptsResult.model_validate(listed)
        schema.GetPromptResult.model_validate(answer.json()["result"])
        assert answer.json()["result"]["resultType"] == "complete"
        assert "ttlMs" not in answer.json()["result"]
    (row,) = await rows()
    assert (row.kind, row.item, row.tool, row.vendor, row.status) == ("prompt", "greet", "", "fake", "success")


@both_eras
@pytest.mark.parametrize("path", PATHS)
async def test_arguments_are_completed(
    agent: Agent, tenant: Tenant, jwt: str, vendor: ItemVendor, era: str, path: str
) -> None:
    is_unified, bearer = path == "/v1/mcp", bearer_of(tenant, jwt, path)
    prompt = {"type": "ref/prompt", "name": "fake_greet" if is_unified else "greet"}
    template = {"type": "ref/resource", "uri": "fake+test://thing/{id}" if is_unified else "test://thing/{id}"}
    argument = {"name": "who", "value": "A"}
    for ref, own in ((prompt, "greet"), (template, "test://thing/{id}")):
        params = {"ref": ref, "argument": argument, "context": {"arguments": {"a": "b"}}}
        answer = await request(era, agent, bearer, "completion/complete", params, path=path)
        assert answer.json()["result"]["completion"] == {"values": ["A!"], "hasMore": False}
        sent = vendor.bodies[-1]["params"]
        assert own in sent["ref"].values()
        assert (sent["argument"], sent["context"]) == (argument, {"arguments": {"a": "b"}})
    kept = [(row.kind, row.item, row.status) for row in await rows()]
    assert kept == [("completion", "greet", "success"), ("completion", "test://thing/{id}", "success")]


async def test_a_vendor_that_completes_nothing_is_not_asked(agent: Agent, tenant: Tenant, vendor: ItemVendor) -> None:
    vendor.capabilities = {"tools": {}, "prompts": {}}
    params = {"ref": {"type": "ref/prompt", "name": "fake_greet"}, "argument": {"name": "who", "value": ""}}
    answer = await agent.rpc(tenant.agent_key, "completion/complete", params)
    assert answer.json()["result"] == {"completion": {"values": [], "total": 0, "hasMore": False}}
    assert vendor.seen["completion/complete"] == 0


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("prompts/get", {}),
    ("prompts/get", {"name": "x" * 300}),
    ("prompts/get", {"name": "fake_greet", "arguments": []}),
    ("prompts/get", {"name": "fake_greet", "arguments": {"who": 1}}),
    ("prompts/get", {"name": "fake_greet", "arguments": {"who": "x" * 300 * 1024}}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "fake_greet"}}),
    ("completion/complete", {"ref": {"type": "ref/tool"}, "argument": {"name": "a", "value": "b"}}),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "fake+file:///../x"}, "argument": {"name": "a", "value": "b"}},
    ),
    ("prompts/get", {"name": "fake_nobody"}),
    ("prompts/get", {"name": "greet"}),
    ("prompts/get", {"name": "other_greet"}),
]


@pytest.mark.parametrize(("method", "params"), WRONG, ids=range(len(WRONG)))
@both_eras
async def test_requests_that_no_vendor_may_see(
    agent: Agent, tenant: Tenant, vendor: ItemVendor, era: str, method: str, params: dict[str, Any]
) -> None:
    answer = await request(era, agent, tenant.agent_key, method, params)
    assert (answer.status_code, answer.json()["error"]["code"]) == (200, -32602)
    assert vendor.seen[method] == 0
    (row,) = await rows()
    assert row.status == "denied"
    assert row.error_code in ("bad_arguments", "unknown_item")


async def test_a_prompt_of_ten_megabytes_goes_nowhere(agent: Agent, tenant: Tenant, vendor: ItemVendor) -> None:
    params = {"name": "fake_greet", "arguments": {"who": "x" * 10 * 1024 * 1024}}
    answer = await agent.rpc(tenant.agent_key, "prompts/get", params)
    assert answer.status_code == 413
    assert vendor.seen["prompts/get"] == 0


@both_eras
async def test_what_each_organization_is_told(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: ItemVendor, era: str
) -> None:
    method = "server/discover" if era == "modern" else "initialize"
    unchanged = {"listChanged": era == "modern"}  # no session, no stream

    async def announced(key: str) -> Any:
        answer = await request(era, agent, key, method, {"protocolVersion": "2025-11-25"})
        return answer.json()["result"]["capabilities"]

    everything = {"tools": unchanged, "prompts": unchanged, "resources": unchanged, "completions": {}}
    assert await announced(tenant.agent_key) == everything
    assert await announced(other_tenant.agent_key) == {"tools": unchanged}
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
    assert await announced(tenant.agent_key) == {"tools": unchanged}
    refused = await request(era, agent, tenant.agent_key, "prompts/get", {"name": "fake_greet"})
    assert refused.json()["error"]["data"]["reason"] == "item_not_allowed"
    assert vendor.seen["prompts/get"] == 0


async def test_one_prompt_name_at_two_vendors(agent: Agent, tenant: Tenant, vendor: ItemVendor) -> None:
    async with running_vendor(ItemVendor) as other:
        await in_thread(lambda: load_vendor(other.url, slug="other"))
        await in_thread(lambda: connect(tenant.organization, tenant.owner, "other"))
        listed = (await agent.rpc(tenant.agent_key, "prompts/list")).json()["result"]["prompts"]
        assert [each["name"] for each in listed] == ["fake_greet", "other_greet"]
        await agent.rpc(tenant.agent_key, "prompts/get", {"name": "other_greet"})
        assert (vendor.seen["prompts/get"], other.seen["prompts/get"]) == (0, 1)


async def test_a_vendor_that_is_down_hides_no_other(agent: Agent, tenant: Tenant, vendor: ItemVendor) -> None:
    async with running_vendor(ItemVendor, api_key="another") as other:
        await in_thread(lambda: load_vendor(other.url, slug="other"))
        await in_thread(lambda: connect(tenant.organization, tenant.owner, "other"))
        found = (await agent.rpc(tenant.agent_key, "prompts/list")).json()["result"]
        assert [each["name"] for each in found["prompts"]] == ["fake_greet"]
        assert found["_meta"] == {"gateway/unavailable": {"other": "vendor_rejected_credentials"}}


@pytest.mark.parametrize("path", PATHS)
async def test_pages_are_joined_and_odd_entries_left_out(
    agent: Agent, tenant: Tenant, jwt: str, vendor: ItemVendor, path: str
) -> None:
    vendor.page_size = 1
    odd: list[Any] = [
        {"name": "a", "description": "hid\u200bden", "_meta": {"io.modelcontextprotocol/x": 1, "own": 2}},
        *(7, {}, {"name": ""}, {"name": "a", "description": "the second"}, {"name": "b", "arguments": {}}),
    ]
    vendor.lists["prompts"] = odd
    bearer = bearer_of(tenant, jwt, path)
    found = (await agent.rpc(bearer, "prompts/list", path=path)).json()["result"]["prompts"]
    prefix = "fake_" if path == "/v1/mcp" else ""
    assert found == [
        {"name": prefix + "a", "description": "hidden", "_meta": {"own": 2}},
        {"name": prefix + "b"},
    ]
    assert vendor.seen["prompts/list"] == len(odd)
    await agent.rpc(bearer, "prompts/list", path=path)
    assert vendor.seen["prompts/list"] == len(odd), "the list is kept"


LINK = {"type": "resource_link", "uri": "test://static-text", "name": "Static text"}
EMBEDDED = {"type": "resource", "resource": {"uri": "file:///notes.md", "text": 'the text "resource" test://x'}}


@both_eras
@pytest.mark.parametrize("path", PATHS)
async def test_a_link_in_a_result_can_be_followed(
    agent: Agent, tenant: Tenant, jwt: str, vendor: ItemVendor, era: str, path: str
) -> None:
    blocks = [{"type": "text", "text": "see test://static-text"}, LINK, EMBEDDED]
    vendor.raw["tools/call"] = json.dumps({"content": blocks, "structuredContent": {"uri": "test://static-text"}})
    vendor.raw["prompts/get"] = json.dumps({"messages": [{"role": "user", "content": EMBEDDED}]})
    bearer, prefix = bearer_of(tenant, jwt, path), "fake+" if path == "/v1/mcp" else ""
    called = await request(era, agent, bearer, "tools/call", {"name": "fake_list", "arguments": {}}, path=path)
    result = called.json()["result"]
    assert (result["content"][0], result["structuredContent"]) == (blocks[0], {"uri": "test://static-text"})
    assert result["content"][1] == {**LINK, "uri": f"{prefix}test://static-text"}
    embedded = {**EMBEDDED, "resource": {**EMBEDDED["resource"], "uri": f"{prefix}file:///notes.md"}}  # type: ignore[dict-item]
    assert result["content"][2] == embedded
    name = "fake_greet" if path == "/v1/mcp" else "greet"
    got = await request(era, agent, bearer, "prompts/get", {"name": name}, path=path)
    assert got.json()["result"]["messages"][0]["content"] == embedded
    read = await request(era, agent, bearer, "resources/read", {"uri": result["content"][1]["uri"]}, path=path)
    assert read.json()["result"]["contents"][0]["text"] == "café"


@both_eras
@pytest.mark.parametrize("path", PATHS)
async def test_the_app_of_a_tool_opens(
    agent: Agent, tenant: Tenant, jwt: str, vendor: ItemVendor, era: str, path: str
) -> None:
    meta = {"ui": {"resourceUri": "ui://board/main", "visibility": ["model"]}, "ui/resourceUri": "ui://board/main"}
    vendor.tools = [{**TOOLS[0], "_meta": meta}, TOOLS[1]]
    html = "<!doctype html><script>1 < 2</script>"
    content = {
        "uri": "ui://board/main",
        "mimeType": "text/html;profile=mcp-app",
        "text": html,
        "_meta": {"ui": {"csp": {}}},
    }
    vendor.raw["resources/read"] = json.dumps({"contents": [content]})
    bearer = bearer_of(tenant, jwt, path)
    listed = (await request(era, agent, bearer, "tools/list", path=path)).json()["result"]["tools"]
    address = "ui://fake+board/main" if path == "/v1/mcp" else "ui://board/main"
    assert listed[0]["_meta"] == {"ui": {"resourceUri": address, "visibility": ["model"]}, "ui/resourceUri": address}
    read = await request(era, agent, bearer, "resources/read", {"uri": address}, path=path)
    assert read.json()["result"]["contents"] == [{**content, "uri": address}]
    assert vendor.bodies[-1]["params"] == {"uri": "ui://board/main"}


async def test_a_batch_may_ask_for_everything(agent: Agent, tenant: Tenant, vendor: ItemVendor) -> None:
    asked = [("resources/list", {}), ("resources/read", {"uri": "test://static-text"}), ("prompts/list", {})]
    body = [{"jsonrpc": "2.0", "id": place, "method": each, "params": own} for place, (each, own) in enumerate(asked)]
    answer = await agent.http.post("/v1/mcp", json=body, headers={"Authorization": f"Bearer {tenant.agent_key}"})
    assert [set(each) for each in answer.json()] == [{"jsonrpc", "id", "result"}] * 3


async def test_a_vendor_that_announces_a_change_is_asked_again(
    agent: Agent, tenant: Tenant, vendor: ItemVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.vendors.item_directory.REFETCH_AFTER_S", 0.0)
    await agent.rpc(tenant.agent_key, "prompts/list")
    vendor.lists["prompts"] = [{"name": "new"}]
    vendor.reply, vendor.steps = "sse", 1
    vendor.strays = [{"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}]
    params = {"name": "fake_list", "arguments": {}, "_meta": {"progressToken": 1}}
    await agent.rpc(tenant.agent_key, "tools/call", params)
    listed = (await agent.rpc(tenant.agent_key, "prompts/list")).json()["result"]["prompts"]
    assert [each["name"] for each in listed] == ["fake_new"]
