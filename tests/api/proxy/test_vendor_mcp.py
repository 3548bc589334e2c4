"""POST /v1/:vendor/mcp: the same pipeline as the unified endpoint, for one vendor, with the signs of its end."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import pytest
from django.test import Client as Browser

from audit.models import RequestAuditEntry
from gateway.coordination.rules import Rule
from gateway.lib import clock
from tests.api.proxy.conftest import Agent, access_token, headers
from tests.factories.tenant import Tenant, connect, load_vendor, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor, running_vendor

PATH = "/v1/fake/mcp"
SUNSET = datetime(2028, 1, 31, tzinfo=UTC)


def deprecated_at(answer: httpx.Response) -> datetime:
    """The date in the header, as RFC 9745 writes it."""
    match = re.fullmatch(r"@(\d+)", answer.headers["Deprecation"])
    assert match is not None
    return datetime.fromtimestamp(int(match[1]), UTC)


async def every_kind_of_answer(agent: Agent, tenant: Tenant, jwt: str) -> dict[int, httpx.Response]:
    """One answer of each status that the endpoint has, by status."""
    answers = [
        await agent.rpc(jwt, "tools/list", path=PATH),
        await agent.rpc(tenant.agent_key, "ping", path=PATH),
        await agent.rpc(jwt, "ping", path="/v1/unknown/mcp"),
        await agent.http.get(PATH, headers=headers(jwt, {})),
        await agent.rpc(jwt, "ping", path=PATH, Accept="text/html"),
        await agent.http.post(PATH, content=b"x", headers={**headers(jwt, {}), "Content-Type": "text/plain"}),
        await agent.http.post(PATH, content=b"{", headers={**headers(jwt, {}), "Content-Type": "application/json"}),
        await agent.rpc(jwt, "ping", path=PATH, Origin="http://evil.example.com"),
    ]
    found = {answer.status_code: answer for answer in answers}
    assert sorted(found) == [200, 400, 401, 403, 404, 405, 406, 415]
    return found


async def test_every_answer_says_that_the_endpoint_is_deprecated(agent: Agent, tenant: Tenant, jwt: str) -> None:
    for answer in (await every_kind_of_answer(agent, tenant, jwt)).values():
        assert deprecated_at(answer) <= datetime.now(UTC)
        assert answer.headers["Link"] == (
            '<http://testserver/v1/mcp>; rel="successor-version", <http://testserver/docs/migrate>; rel="deprecation"'
        )
        assert "Sunset" not in answer.headers
    assert "Deprecation" not in (await agent.rpc(tenant.agent_key, "ping")).headers
    assert "Deprecation" not in (await agent.cli(jwt, "list")).headers


async def test_a_sunset_is_announced_and_kept(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor, settings: Any
) -> None:
    settings.VENDOR_MCP_SUNSET = SUNSET
    before = await every_kind_of_answer(agent, tenant, jwt)
    for answer in before.values():
        assert parsedate_to_datetime(answer.headers["Sunset"]) == SUNSET
        assert deprecated_at(answer) + timedelta(days=365) <= SUNSET
    settings.VENDOR_MCP_SUNSET = clock.now() - timedelta(seconds=1)
    asked = sum(vendor.seen.values())
    gone = await agent.rpc(jwt, "tools/list", path=PATH)
    assert (gone.status_code, gone.json()["error"]) == (410, "gone")
    assert "http://testserver/v1/mcp" in gone.json()["error_description"]
    assert 'rel="successor-version"' in gone.headers["Link"]
    assert (await agent.rpc(None, "tools/list", path=PATH)).status_code == 401
    assert (await agent.rpc(tenant.agent_key, "ping")).status_code == 200, "the unified endpoint stays"
    assert sum(vendor.seen.values()) == asked


def test_the_page_that_the_header_names(db: None, settings: Any) -> None:
    page = Browser().get("/docs/migrate")
    assert page.status_code == 200
    assert "http://testserver/v1/mcp" in page.content.decode()
    assert "answers 410" not in page.content.decode()
    settings.VENDOR_MCP_SUNSET = SUNSET
    assert "returns 410 from 31 Jan 2028 on" in Browser().get("/docs/migrate").content.decode()


async def test_it_shows_and_calls_the_tools_of_its_vendor_only(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor
) -> None:
    tool = {"name": "globex_read", "description": "Reads.", "inputSchema": {"type": "object"}}
    async with running_vendor(tools=[tool]) as other:
        await in_thread(lambda: load_vendor(other.url, slug="globex"))
        await in_thread(lambda: connect(tenant.organization, tenant.owner, "globex"))
        unified = await agent.rpc(tenant.agent_key, "tools/list")
        assert [each["name"] for each in unified.json()["result"]["tools"]][-1] == "globex_read"
        own = await agent.rpc(jwt, "tools/list", path=PATH)
        assert [each["name"] for each in own.json()["result"]["tools"]] == ["fake_fail", "fake_list", "fake_write"]
        named = (await agent.rpc(jwt, "initialize", path=PATH)).json()["result"]["instructions"]
        assert "Fake" in named
        assert "Globex" not in named
        foreign = await agent.rpc(jwt, "tools/call", {"name": "globex_read"}, path=PATH)
        assert foreign.json()["error"] == {"code": -32602, "message": "Unknown tool: globex_read"}
        assert other.seen["tools/call"] == 0


async def test_a_vendor_that_is_down_takes_no_other_one_with_it(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor
) -> None:
    """On the unified endpoint the others stay; at its own there is nothing left to show."""
    await in_thread(lambda: load_vendor("http://127.0.0.1:9/mcp", slug="globex"))
    await in_thread(lambda: connect(tenant.organization, tenant.owner, "globex"))
    unified = await agent.rpc(tenant.agent_key, "tools/list")
    assert unified.status_code == 200
    names = [each["name"] for each in unified.json()["result"]["tools"]]
    assert names == ["fake_fail", "fake_list", "fake_write"]
    down = {"gateway/unavailable": {"globex": "vendor_unavailable"}}
    assert unified.json()["result"]["_meta"] == down
    own = await agent.rpc(jwt, "tools/list", path="/v1/globex/mcp")
    assert own.json()["result"] == {"tools": [], "_meta": down}
    assert "_meta" not in (await agent.rpc(jwt, "tools/list", path=PATH)).json()["result"]


async def test_rules_limit_and_log_are_those_of_the_unified_endpoint(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor, settings: Any
) -> None:
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
    settings.TOOL_CALLS = Rule("tools", limit=3, window_s=3600)
    call = {"name": "fake_list", "arguments": {}}
    assert (await agent.rpc(jwt, "tools/call", call, path=PATH)).json()["result"]["structuredContent"] == {}
    refused = await agent.rpc(jwt, "tools/call", {"name": "fake_write"}, path=PATH)
    assert refused.json()["result"]["isError"] is True
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 200
    over = await agent.rpc(jwt, "tools/call", call, path=PATH)
    assert (over.status_code, over.json()["error"]) == (429, "rate_limited")
    rows = await in_thread(
        lambda: list(
            RequestAuditEntry.objects.order_by("timestamp", "id").values_list("source", "status", "error_code")
        )
    )
    # The row that counts a minute's refused calls bears the minute's beginning: it may stand before the others.
    rows.remove(("mcp", "denied", "rate_limited"))
    assert rows == [
        ("mcp", "success", ""),
        ("mcp", "denied", "tool_not_allowed"),
        ("mcp", "success", ""),
    ]


async def test_tokens_open_it_by_scope_and_audience(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    await in_thread(lambda: load_vendor("http://127.0.0.1:9/mcp", slug="globex"))
    own = await in_thread(lambda: access_token(tenant, scope="mcp:fake"))
    foreign = await in_thread(lambda: access_token(tenant, scope="mcp:globex"))
    call = {"name": "fake_list"}
    assert (await agent.rpc(own, "tools/call", call, path=PATH)).json()["result"]["structuredContent"] == {}
    refused = await agent.rpc(foreign, "tools/call", call, path=PATH)
    assert refused.status_code == 403
    challenge = refused.headers["WWW-Authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert 'scope="mcp:fake mcp:globex"' in challenge
    assert "oauth-protected-resource/v1/fake/mcp" in challenge
    assert vendor.seen["tools/call"] == 1


@pytest.mark.parametrize("path", ["/v1/fake/mcp/", "/v1/fake/mcp"])
async def test_both_spellings_of_the_address_are_served(agent: Agent, jwt: str, path: str) -> None:
    assert (await agent.rpc(jwt, "ping", path=path)).json()["result"] == {}
