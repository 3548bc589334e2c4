"""`/v1/mcp?tools=search`: three tools in place of all, under the same rights and with the same rows in the log."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from django.conf import LazySettings

from audit.models import RequestAuditEntry
from gateway.coordination.rules import Rule
from proxy.protocol import compact_tools, tool_search
from proxy.protocol.tool_search import SearchIndex
from tests.api.proxy.conftest import Agent
from tests.api.proxy.modern import ask
from tests.factories.tenant import Tenant, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

PATH = "/v1/mcp?tools=search"
WORDS_OF_A_DEVICE = [
    {
        "name": "fake_reboot_device",
        "description": "Restarts a computer of a customer.",
        "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    },
    {"name": "fake_list", "description": "Lists things.", "inputSchema": {"type": "object"}},
]


@pytest.fixture(autouse=True)
def _tools(vendor: FakeVendor) -> None:
    vendor.tools = [*WORDS_OF_A_DEVICE, *(each for each in vendor.tools if each["name"] != "fake_list")]


async def compact(agent: Agent, bearer: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """The answer to one call."""
    answer = await agent.rpc(bearer, "tools/call", {"name": tool, "arguments": arguments}, path=PATH)
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


async def text_of(agent: Agent, bearer: str, tool: str, **arguments: Any) -> Any:
    """The text of a result without error, read as JSON."""
    result = (await compact(agent, bearer, tool, **arguments))["result"]
    assert not result.get("isError"), result
    return json.loads(result["content"][0]["text"])


async def refused(agent: Agent, bearer: str, tool: str, **arguments: Any) -> str:
    result = (await compact(agent, bearer, tool, **arguments))["result"]
    assert result["isError"] is True
    text: str = result["content"][0]["text"]
    return text


async def test_three_tools_are_listed_and_no_vendor_is_asked(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    answer = await agent.rpc(tenant.agent_key, "tools/list", path=PATH)
    assert [tool["name"] for tool in answer.json()["result"]["tools"]] == ["search_tools", "describe_tool", "call_tool"]
    assert len(answer.content) < 3_000
    assert not vendor.seen
    full = await agent.rpc(tenant.agent_key, "tools/list", path="/v1/mcp?other=1&xtools=search")
    assert len(full.json()["result"]["tools"]) == len(vendor.tools)


async def test_initialize_says_how_tools_are_found(agent: Agent, tenant: Tenant) -> None:
    asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    compact, full = [
        (await agent.rpc(tenant.agent_key, "initialize", asked, path=path)).json()["result"]["instructions"]
        for path in (PATH, "/v1/mcp")
    ]
    assert compact == f"{full} {compact_tools.INSTRUCTIONS}"


async def test_a_tool_is_found_read_and_called(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    found = await text_of(agent, tenant.agent_key, "search_tools", query="which machines can I reboot", limit=1)
    assert found == {
        "tools": [
            {
                "name": "fake_reboot_device",
                "vendor": "fake",
                "description": "Restarts a computer of a customer.",
                "requiredArguments": ["id"],
                "readOnly": False,
            }
        ]
    }
    described = await text_of(agent, tenant.agent_key, "describe_tool", name="fake_reboot_device")
    listed = (await agent.rpc(tenant.agent_key, "tools/list")).json()["result"]["tools"]
    assert described in listed
    assert not await RequestAuditEntry.objects.aexists(), "nothing has been called"

    direct = await agent.call(tenant.agent_key, "fake_list", limit=3)
    wrapped = await compact(agent, tenant.agent_key, "call_tool", name="fake_list", arguments={"limit": 3})
    assert wrapped == direct.json()
    bare = await compact(agent, tenant.agent_key, "fake_list", limit=3)
    assert bare == direct.json(), "real names stay callable"
    rows = [(row.tool, row.vendor, row.status) async for row in RequestAuditEntry.objects.all()]
    assert rows == [("fake_list", "fake", "success")] * 3


async def test_others_find_nothing(agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor) -> None:
    assert (await text_of(agent, other_tenant.agent_key, "search_tools", query="reboot"))["tools"] == []
    assert "no tool with this name" in await refused(agent, other_tenant.agent_key, "describe_tool", name="fake_list")
    called = await compact(agent, other_tenant.agent_key, "call_tool", name="fake_list")
    assert called["result"]["isError"] is True
    assert not vendor.seen


async def test_tools_that_the_caller_may_not_call_are_not_found(
    agent: Agent, tenant: Tenant, vendor: FakeVendor
) -> None:
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
    assert (await text_of(agent, tenant.agent_key, "search_tools", query="reboot device"))["tools"] == []
    found = (await text_of(agent, tenant.agent_key, "search_tools", query="list things"))["tools"]
    assert [tool["name"] for tool in found] == ["fake_list"]
    assert "no tool with" in await refused(agent, tenant.agent_key, "describe_tool", name="fake_reboot_device")
    refusal = await compact(agent, tenant.agent_key, "call_tool", name="fake_reboot_device", arguments={"id": "1"})
    assert refusal["result"]["isError"] is True
    assert vendor.seen["tools/call"] == 0


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("search_tools", {}, "query"),
        ("search_tools", {"query": ""}, "1 to 500"),
        ("search_tools", {"query": "x" * 100_000}, "1 to 500"),
        ("search_tools", {"query": 5}, "str"),
        ("search_tools", {"query": "x", "limit": 0}, "1 to 20"),
        ("search_tools", {"query": "x", "limit": 21}, "1 to 20"),
        ("search_tools", {"query": "x", "other": 1}, "other"),
        ("describe_tool", {"name": "nothing"}, "no tool"),
        ("describe_tool", {}, "name"),
        ("call_tool", {}, "needs arguments"),
        ("call_tool", {"name": "search_tools", "arguments": {"query": "x"}}, "needs arguments"),
        ("call_tool", {"name": "call_tool", "arguments": {"name": "fake_list"}}, "needs arguments"),
        ("call_tool", {"name": "fake_list", "arguments": []}, "needs arguments"),
        ("call_tool", {"name": "fake_list", "more": 1}, "needs arguments"),
    ],
)
async def test_wrong_arguments_are_told_to_the_model(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, tool: str, arguments: dict[str, Any], words: str
) -> None:
    assert words in await refused(agent, tenant.agent_key, tool, **arguments)
    assert vendor.seen["tools/call"] == 0


@pytest.mark.parametrize("name", [None, 5, {}, ["search_tools"], {"name": "search_tools"}])
async def test_a_name_that_is_no_text_is_refused(agent: Agent, tenant: Tenant, vendor: FakeVendor, name: Any) -> None:
    for answer in (
        await agent.rpc(tenant.agent_key, "tools/call", {"name": name, "arguments": {}}, path=PATH),
        await ask(agent, tenant.agent_key, "tools/call", {"name": name, "arguments": {}}, path=PATH),
    ):
        assert answer.status_code == 200
        assert answer.json()["error"]["code"] == -32602
    assert vendor.seen["tools/call"] == 0


async def test_a_request_that_meets_an_internal_error_counts(
    agent: Agent, tenant: Tenant, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(params: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("of this test")

    settings.BACKSTOP = Rule("backstop", limit=1, window_s=3600)
    monkeypatch.setattr(compact_tools, "unwrapped", fail)
    asked = {"name": "search_tools", "arguments": {"query": "reboot"}}
    answers = [await agent.rpc(tenant.agent_key, "tools/call", asked, path=PATH) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [500, 429]


@pytest.mark.parametrize("query", ["tools=", "tools=some", "tools=search&tools=search", "tools=Search", "tools"])
async def test_other_values_are_refused(agent: Agent, tenant: Tenant, vendor: FakeVendor, query: str) -> None:
    answer = await agent.rpc(tenant.agent_key, "tools/list", path=f"/v1/mcp?{query}")
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert (await agent.rpc("gw_wrong", "tools/list", path=PATH)).status_code == 401
    assert not vendor.seen


async def test_a_search_of_one_vendor(agent: Agent, tenant: Tenant) -> None:
    found = await text_of(agent, tenant.agent_key, "search_tools", query="reboot", vendor="fake")
    assert [tool["name"] for tool in found["tools"]] == ["fake_reboot_device"]
    nothing = await text_of(agent, tenant.agent_key, "search_tools", query="reboot", vendor="unknown")
    assert nothing["tools"] == []
    assert nothing["hint"]


async def test_a_vendor_that_is_away_is_named(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    vendor.hang_s = 60.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("django.conf.settings.TOOL_LIST_DEADLINE_S", 0.05)
        found = await text_of(agent, tenant.agent_key, "search_tools", query="reboot")
    vendor.hang_s = 0.0
    assert list(found["unavailable"]) == ["fake"]


@pytest.mark.parametrize(("tools", "thread"), [(2, "MainThread"), (600, "long-work_0")])
async def test_a_search_in_large_lists_leaves_the_event_loop_free(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch, tools: int, thread: str
) -> None:
    words = " ".join(tool_search._SAME)[:400]
    vendor.tools = [
        {"name": f"fake_{n}", "description": words, "inputSchema": {"type": "object"}} for n in range(tools)
    ]
    ranked, seen = tool_search.ranked, []

    def noted(indexes: Sequence[SearchIndex], query: str) -> Iterator[tuple[int, str]]:
        seen.append(threading.current_thread().name)
        return ranked(indexes, query)

    monkeypatch.setattr(tool_search, "ranked", noted)
    found = await text_of(agent, tenant.agent_key, "search_tools", query="create a ticket", limit=2)
    assert len(found["tools"]) == 2
    assert seen == [thread]


ODD_SCHEMAS: list[Any] = [
    {"type": "object", "required": 5},
    {"type": "object", "required": True},
    {"type": "object", "required": {"a": 1}, "properties": {"": None}},
    {"type": 7, "required": [5, None, "id", ["x"]]},
]


@pytest.mark.parametrize("schema", ODD_SCHEMAS)
async def test_an_odd_schema_takes_no_tool_away(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, schema: dict[str, Any]
) -> None:
    vendor.tools = [*vendor.tools, {"name": "fake_odd_device", "description": "Restarts oddly.", "inputSchema": schema}]
    found = (await text_of(agent, tenant.agent_key, "search_tools", query="restart a device"))["tools"]
    assert {tool["name"] for tool in found} == {"fake_reboot_device", "fake_odd_device"}
    required = next(tool["requiredArguments"] for tool in found if tool["name"] == "fake_odd_device")
    assert required == (["id"] if schema["type"] == 7 else [])


async def test_a_list_that_cannot_be_searched_is_named(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*definitions: Any) -> SearchIndex:
        raise RuntimeError("of this test")

    monkeypatch.setattr(tool_search, "index_of", fail)
    found = await text_of(agent, tenant.agent_key, "search_tools", query="restart")
    assert (found["tools"], found["unavailable"]) == ([], {"fake": "internal_error"})


async def test_a_search_counts_as_a_request(agent: Agent, tenant: Tenant, settings: LazySettings) -> None:
    settings.BACKSTOP = Rule("backstop", limit=1, window_s=3600)
    asked = {"name": "search_tools", "arguments": {"query": "reboot"}}
    answers = [await agent.rpc(tenant.agent_key, "tools/call", asked, path=PATH) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]


async def test_the_modern_revision_has_them_too(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    listed = (await ask(agent, tenant.agent_key, "tools/list", path=PATH)).json()["result"]
    assert [tool["name"] for tool in listed["tools"]] == ["search_tools", "describe_tool", "call_tool"]
    assert listed["resultType"] == "complete"
    assert not vendor.seen
    discovered = (await ask(agent, tenant.agent_key, "server/discover", path=PATH)).json()["result"]
    assert discovered["instructions"].endswith(compact_tools.INSTRUCTIONS)
    asked = {"name": "search_tools", "arguments": {"query": "reboot"}}
    found = (await ask(agent, tenant.agent_key, "tools/call", asked, path=PATH)).json()["result"]
    assert found["resultType"] == "complete"
    assert "fake_reboot_device" in found["content"][0]["text"]
    inner = {"name": "call_tool", "arguments": {"name": "fake_list", "arguments": {}}}
    called = (await ask(agent, tenant.agent_key, "tools/call", inner, path=PATH)).json()["result"]
    assert (called["resultType"], called.get("isError", False)) == ("complete", False)
    rows = [(row.tool, row.status) async for row in RequestAuditEntry.objects.all()]
    assert rows == [("fake_list", "success")]
