"""The allowlists and the mode of one service client, on every route: what it is shown is what it may call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from oauth_ext.services.service_client_allowlists import clear_client_allowlist, set_client_allowlist, set_tool_mode
from orgs.models import KnownTool
from proxy.control_plane.explanation import explain_access
from tests.api.proxy.conftest import Agent, access_token, headers
from tests.api.proxy.traces import rows
from tests.factories.tenant import Tenant, make_tenant, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor


def allow(tenant: Tenant, *tools: str) -> Callable[[], object]:
    whose: dict[str, Any] = {"actor": tenant.owner, "organization": tenant.organization, "client": tenant.client}
    return lambda: set_client_allowlist(**whose, vendor="fake", tools=tools)


def choose_mode(tenant: Tenant, mode: str) -> Callable[[], object]:
    whose: dict[str, Any] = {"actor": tenant.owner, "organization": tenant.organization, "client": tenant.client}
    return lambda: set_tool_mode(**whose, mode=mode)


async def shown(agent: Agent, tenant: Tenant) -> list[str]:
    """The tools in tools/list; the CLI's commands are the same ones."""
    answer = await agent.rpc(tenant.agent_key, "tools/list")
    names = [each["name"] for each in answer.json()["result"]["tools"]]
    token = await in_thread(lambda: access_token(tenant))
    schema = (await agent.http.get("/v1/fake/cli/schema", headers=headers(token, {}))).json()
    assert sorted(f"fake_{each['command']}" for each in schema["commands"]) == names
    own = await agent.rpc(token, "tools/list", path="/v1/fake/mcp")
    assert [each["name"] for each in own.json()["result"]["tools"]] == names
    return names


async def refusal(agent: Agent, tenant: Tenant, tool: str) -> str | None:
    """The text of a refused call, the same by MCP and CLI; None for a call that passes."""
    answer = await agent.call(tenant.agent_key, tool)
    token = await in_thread(lambda: access_token(tenant))
    by_cli = await agent.cli(token, tool.removeprefix("fake_"))
    result = answer.json()["result"]
    if not result.get("isError"):
        assert by_cli.status_code == 200
        return None
    assert by_cli.status_code == 403
    text: str = result["content"][0]["text"]
    assert by_cli.json()["error"] in text or text in by_cli.text
    return text


async def explained(tenant: Tenant, tool: str) -> tuple[str, str, str] | None:
    failing = (await in_thread(lambda: explain_access(tenant.client.subject, tool))).failing
    return failing and (failing.name, failing.detail, failing.remedy)


async def test_a_list_limits_one_client_on_every_route(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    second = await in_thread(lambda: make_tenant(tenant.organization, tenant.owner, name="second bot"))
    assert await shown(agent, tenant) == ["fake_fail", "fake_list", "fake_write"]
    await in_thread(allow(tenant, "fake_list"))
    assert await shown(agent, tenant) == ["fake_list"]
    assert await refusal(agent, tenant, "fake_list") is None
    vendor.seen.clear()
    text = await refusal(agent, tenant, "fake_write")
    assert text is not None
    assert "The service client build bot isn't allowed to call fake_write. An owner of Acme can allow it." in text
    assert vendor.seen["tools/call"] == 0
    refused = [row for row in await rows() if row.status == "denied"]
    assert {(row.error_code, row.tool) for row in refused} == {("tool_not_allowed", "fake_write")}
    assert await shown(agent, second) == ["fake_fail", "fake_list", "fake_write"]
    assert await refusal(agent, second, "fake_write") is None


async def test_an_empty_list_allows_none_and_a_cleared_one_all(agent: Agent, tenant: Tenant) -> None:
    await in_thread(allow(tenant))
    assert await shown(agent, tenant) == []
    assert await refusal(agent, tenant, "fake_list") is not None
    whose: dict[str, Any] = {"actor": tenant.owner, "organization": tenant.organization, "client": tenant.client}
    await in_thread(lambda: clear_client_allowlist(**whose, vendor="fake"))
    assert await shown(agent, tenant) == ["fake_fail", "fake_list", "fake_write"]


async def test_both_lists_count_and_the_refusal_names_the_one(agent: Agent, tenant: Tenant) -> None:
    await in_thread(allow(tenant, "fake_list", "fake_write"))
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list", "fake_fail"))
    assert await shown(agent, tenant) == ["fake_list"]
    by_role, by_own = await refusal(agent, tenant, "fake_write"), await refusal(agent, tenant, "fake_fail")
    assert by_role is not None
    assert "The role member isn't" in by_role
    assert by_own is not None
    assert "The service client build bot isn't" in by_own
    _, detail, _ = await explained(tenant, "fake_write") or ("", "", "")
    assert detail == "Members aren’t allowed to call fake_write."
    assert await explained(tenant, "fake_fail") == (
        "allowlist",
        "build bot isn’t allowed to call fake_fail.",
        "An owner of Acme can allow it.",
    )
    assert await explained(tenant, "fake_list") is None


async def test_read_only_allows_what_is_marked(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    await in_thread(choose_mode(tenant, "read_only"))
    odd = {"name": "fake_odd", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "true"}}
    vendor.tools = [*vendor.tools, odd]
    assert await shown(agent, tenant) == ["fake_fail", "fake_list"]
    assert await refusal(agent, tenant, "fake_odd") is not None
    vendor.seen.clear()
    text = await refusal(agent, tenant, "fake_write")
    assert text is not None
    assert "build bot can call only read-only tools, and fake_write is not marked as read-only." in text
    assert vendor.seen["tools/call"] == 0
    assert await refusal(agent, tenant, "fake_list") is None
    await in_thread(allow(tenant, "fake_list", "fake_write"))
    assert await shown(agent, tenant) == ["fake_list"]
    await in_thread(choose_mode(tenant, "all"))
    assert await shown(agent, tenant) == ["fake_list", "fake_write"]


@pytest.mark.parametrize(("definition", "passes"), [('{"annotations": {"readOnlyHint": true}}', True), ("{}", False)])
async def test_the_explanation_goes_by_the_mark_that_was_seen(tenant: Tenant, definition: str, passes: bool) -> None:
    await in_thread(choose_mode(tenant, "read_only"))
    known = {"organization": tenant.organization, "vendor": "fake", "tool": "fake_list", "seen_sha256": b"1"}
    await in_thread(lambda: KnownTool.objects.create(**known, seen_definition=definition))
    found = await explained(tenant, "fake_list")
    assert (found is None) is passes
    unseen = await explained(tenant, "fake_never_seen")
    assert unseen is not None
    assert unseen[1] == "build bot can only call read-only tools, and fake_never_seen isn’t marked read-only."
