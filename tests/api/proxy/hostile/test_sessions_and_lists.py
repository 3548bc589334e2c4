"""Sessions that the vendor forgets, and lists of tools that are endless, broken or different every time.

Spec: §4.14 (3), §7 · D104, D105
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.conf import LazySettings

from tests.api.proxy.conftest import Agent
from tests.api.proxy.hostile.answers import BAD, UNAVAILABLE, Row, assert_refused, both, rows, troubled_circuits, warm
from tests.factories.tenant import Tenant
from tests.fakes.hostile_vendor import HostileVendor
from tests.fakes.vendor_faults import FAULTS, MIB

# --- sessions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["404 Not Found", "400 Bad Request"])
async def test_a_lost_session_is_opened_again_and_nobody_notices(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor, status: str
) -> None:
    for route in ("mcp", "cli"):
        await warm(agent, tenant, jwt)
        hostile.seen.clear()
        hostile.lose_sessions, hostile.lost_status = 1, status
        answer = await (agent.cli(jwt, "write") if route == "cli" else agent.call(tenant.agent_key, "fake_write"))
        assert (answer.status_code, "fine" in answer.text) == (200, True)
        assert hostile.seen == {"tools/call": 2, "initialize": 1, "notifications/initialized": 1}
        assert [each.status for each in await rows()] == ["success"]


async def test_a_vendor_that_forgets_every_session_is_asked_twice_and_no_more(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor
) -> None:
    await warm(agent, tenant, jwt)
    hostile.seen.clear()
    hostile.lose_sessions = 1_000
    assert_refused(await agent.call(tenant.agent_key, "fake_write"), await agent.cli(jwt, "write"), Row(UNAVAILABLE))
    assert hostile.seen["tools/call"] == 4
    assert troubled_circuits() == set()


# --- lists of tools ---------------------------------------------------------------------------------------------------


def _tool(name: object, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def _endless(params: dict[str, Any]) -> dict[str, Any]:
    number = int(params.get("cursor", 0))
    return {"tools": [_tool(f"fake_{number}")], "nextCursor": str(number + 1)}


def _deep(depth: int) -> Any:
    schema: Any = {}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


BAD_LISTS = {
    "endless": _endless,
    "in a circle": lambda _: {"tools": [], "nextCursor": "again"},
    "too large": lambda params: {
        "tools": [_tool(f"fake_{params.get('cursor')}", description="x" * 2 * MIB)],
        "nextCursor": f"{params.get('cursor', '')}1",
    },
    "no list": lambda _: {"tools": {"fake_list": {}}},
    "nothing": lambda _: {},
    "a cursor that is no text": lambda _: {"tools": [], "nextCursor": 7},
}


@pytest.mark.parametrize("name", BAD_LISTS)
async def test_a_list_that_cannot_be_used(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor, name: str
) -> None:
    hostile.tools = BAD_LISTS[name]
    assert_refused(*await both(agent, tenant, jwt), Row(BAD))
    assert {each.error_code for each in await rows()} == {BAD}
    assert hostile.seen["tools/list"] <= 400
    listed = (await agent.rpc(tenant.agent_key, "tools/list")).json()["result"]
    assert listed == {"tools": [], "_meta": {"gateway/unavailable": {"fake": BAD}}}
    schema = await agent.http.get("/v1/fake/cli/schema", headers={"Authorization": f"Bearer {jwt}"})
    assert (schema.status_code, list(schema.json())) == (502, ["error"])


async def test_a_list_full_of_nonsense_keeps_what_can_be_used(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor
) -> None:
    nonsense = [
        None,
        7,
        "tool",
        [],
        {},
        _tool(None),
        _tool(""),
        _tool("fake_write"),  # said twice
        _tool("x" * 100_000),
        _tool("fake_\x00\u202eevil\n"),
        _tool("fäke_ünïcode"),
        _tool("fake_schema", inputSchema="none"),
        _tool("fake_deep", inputSchema=_deep(200)),
        _tool("fake_wrong", description=7, title=[], annotations="x", outputSchema={"type": "array"}),
    ]
    hostile.tools = lambda _: {"tools": [_tool("fake_write"), *nonsense]}
    for answer in await both(agent, tenant, jwt):
        assert answer.status_code == 200
        assert "fine" in answer.text
    listed = (await agent.rpc(tenant.agent_key, "tools/list")).json()["result"]["tools"]
    names = [each["name"] for each in listed]
    assert len(names) == len(set(names)) == 3, "what no allowlist can hold is left out"
    assert all(len(name) <= 64 and name.isascii() and name.replace("-", "_").isidentifier() for name in names)
    assert {"fake_write", "fake_wrong"} <= set(names)
    assert all(each["description"] for each in listed)
    schema = await agent.http.get("/v1/fake/cli/schema", headers={"Authorization": f"Bearer {jwt}"})
    assert len(schema.json()["commands"]) == 3


async def test_a_list_that_changes_all_the_time(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor, settings: LazySettings
) -> None:
    settings.TOOL_LIST_TTL_S = 0.0

    def other(_: object) -> dict[str, Any]:
        return {"tools": [_tool("fake_write"), _tool(f"fake_{hostile.seen['tools/list']}")]}

    hostile.tools = other
    for _ in range(5):
        for answer in await both(agent, tenant, jwt):
            assert answer.status_code == 200
        names = {each["name"] for each in (await agent.rpc(tenant.agent_key, "tools/list")).json()["result"]["tools"]}
        assert len(names) == 2
        assert "fake_write" in names


async def test_an_error_with_a_huge_text_is_cut_for_commands(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuses(asked: Any) -> None:
        error = {"code": -32000, "message": "é" * 100_000}
        await asked.say({"jsonrpc": "2.0", "id": asked.id, "error": error})

    monkeypatch.setitem(FAULTS, "refuses", refuses)
    await warm(agent, tenant, jwt)
    hostile.fault = "refuses"
    mcp, cli = await both(agent, tenant, jwt)
    assert mcp.json()["error"]["code"] == -32000, "relayed as it is"
    assert cli.status_code == 502
    assert len(cli.json()["error"].encode()) < 5 * 1024
    assert {(each.status, each.error_code) for each in await rows()} == {("error", "vendor_error")}
    assert json.loads(cli.content)["error"].startswith("The vendor returned an error: é")
