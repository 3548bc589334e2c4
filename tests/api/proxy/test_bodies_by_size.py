"""Bodies of 64 KiB and more are counted by their size, for the organization. Spec: D19, D20"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from django.conf import LazySettings

from gateway.coordination import backend
from gateway.coordination.rules import Rule
from proxy import runtime
from tests.api.proxy.conftest import Agent, headers
from tests.factories.tenant import Tenant, make_tenant
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

KIB = 1024
UNIT = 64 * KIB
LARGEST = 4 * 1024 * KIB
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fake_list","arguments":{}}}'


@pytest.fixture
def window(settings: LazySettings) -> Rule:
    """Room for three units."""
    settings.LARGE_BODIES = Rule("large-bodies", limit=3, window_s=60)
    return settings.LARGE_BODIES


async def post(agent: Agent, tenant: Tenant, size: int, message: bytes = PING, **more: Any) -> httpx.Response:
    """The message in a body of so many bytes, to `path` with `bearer`; without a declared length if it is `chunked`."""
    body = message.ljust(size)

    async def parts() -> AsyncIterator[bytes]:
        for begin in range(0, size, 100 * KIB):
            yield body[begin : begin + 100 * KIB]

    sent = {"Content-Type": "application/json", **headers(more.get("bearer", tenant.agent_key), {})}
    content = parts() if more.get("chunked") else body
    return await agent.http.post(more.get("path", "/v1/mcp"), content=content, headers=sent)


async def left(settings: LazySettings, tenant: Tenant) -> int:
    """Units that the organization's window still has."""
    key = f"org:{tenant.organization.id}"
    return await in_thread(lambda: backend.current().peek(settings.LARGE_BODIES, key).remaining)


@pytest.mark.parametrize("chunked", [False, True], ids=["declared", "chunked"])
@pytest.mark.parametrize("message", [PING, CALL], ids=["ping", "call"])
@pytest.mark.parametrize(("size", "units"), [(UNIT - 1, 0), (UNIT, 1), (UNIT + 1, 2), (LARGEST, 64)])
async def test_each_begun_64_kib_is_a_unit(
    agent: Agent,
    tenant: Tenant,
    other_tenant: Tenant,
    settings: LazySettings,
    size: int,
    units: int,
    message: bytes,
    chunked: bool,
) -> None:
    answer = await post(agent, tenant, size, message, chunked=chunked)
    assert (answer.status_code, "result" in answer.json()) == (200, True)
    limit = settings.LARGE_BODIES.limit
    assert limit == 256 * 16
    assert await left(settings, tenant) == limit - units
    assert await left(settings, other_tenant) == limit
    name = "tools" if message is CALL else "backstop"
    assert answer.headers["RateLimit-Policy"].startswith(f'"{name}";'), "requests are counted as ever"


async def test_a_full_window_refuses_large_bodies_of_the_organization_only(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, window: Rule, vendor: FakeVendor
) -> None:
    colleague = await in_thread(lambda: make_tenant(tenant.organization, tenant.owner, name="second bot"))
    assert (await post(agent, tenant, 2 * UNIT, CALL)).status_code == 200
    called = vendor.seen["tools/call"]
    for caller in (tenant, colleague):
        refused = await post(agent, caller, 2 * UNIT, CALL)
        assert (refused.status_code, refused.json()["error"]) == (429, "rate_limited")
        wait_s = int(refused.headers["Retry-After"])
        assert 0 < wait_s <= window.window_s + 1
        assert f"in {wait_s} s" in refused.json()["error_description"]
    assert vendor.seen["tools/call"] == called
    assert (await post(agent, other_tenant, 2 * UNIT)).status_code == 200
    assert (await post(agent, tenant, UNIT - 1)).status_code == 200
    assert (await post(agent, colleague, UNIT)).status_code == 200, "there was room for one more"
    assert (await post(agent, tenant, UNIT)).status_code == 429


async def test_a_refusal_says_in_bytes_what_is_left(agent: Agent, tenant: Tenant, window: Rule) -> None:
    await post(agent, tenant, 2 * UNIT)
    refused = await post(agent, tenant, 2 * UNIT)
    wait_s = refused.headers["Retry-After"]
    size, requests = refused.headers["RateLimit"].split(", ")
    assert size == f'"large-bodies";r={UNIT};t={wait_s}'
    assert requests.startswith('"backstop";r=59')
    size, requests = refused.headers["RateLimit-Policy"].split(", ")
    assert size == f'"large-bodies";q={3 * UNIT};qu="content-bytes";w=60'
    assert requests == '"backstop";q=600;w=60'
    assert refused.headers["X-RateLimit-Limit"] == "600"


async def test_the_cli_refuses_in_its_own_shape(agent: Agent, tenant: Tenant, jwt: str, window: Rule) -> None:
    body = json.dumps({"tool": "list", "args": {}}).encode()
    to_cli = {"path": "/v1/fake/cli", "bearer": jwt}
    assert (await post(agent, tenant, 3 * UNIT, body, **to_cli)).status_code == 200
    refused = await post(agent, tenant, 3 * UNIT, body, **to_cli)
    assert refused.status_code == 429
    assert list(refused.json()) == ["error"]
    assert "large requests" in refused.json()["error"]


async def test_a_body_larger_than_the_whole_window_is_served_when_the_window_is_empty(
    agent: Agent, tenant: Tenant, window: Rule
) -> None:
    assert (await post(agent, tenant, LARGEST)).status_code == 200
    assert (await post(agent, tenant, LARGEST)).status_code == 429
    assert (await post(agent, tenant, LARGEST + 1)).status_code == 413


async def test_what_cannot_be_parsed_has_been_counted(
    agent: Agent, tenant: Tenant, settings: LazySettings, window: Rule
) -> None:
    assert (await post(agent, tenant, 3 * UNIT, b"[[[[")).status_code == 400
    assert await left(settings, tenant) == 0
    assert (await post(agent, tenant, 3 * UNIT, b"[[[[")).status_code == 429


async def test_a_caller_past_its_own_limit_takes_nothing_from_the_organization(
    agent: Agent, tenant: Tenant, settings: LazySettings, window: Rule
) -> None:
    settings.BACKSTOP = Rule("requests", limit=1, window_s=60)
    assert (await agent.rpc(tenant.agent_key, "ping")).status_code == 200
    refused = await post(agent, tenant, UNIT)
    assert (refused.status_code, refused.headers["RateLimit-Policy"]) == (429, '"requests";q=1;w=60')
    assert await left(settings, tenant) == window.limit


async def test_a_small_body_asks_the_store_once(agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    store, asked = runtime.current().store, []
    admit = store.admit

    async def recording(*arguments: Any) -> Any:
        asked.append(arguments[0].name)
        return await admit(*arguments)

    async def charge(*arguments: Any) -> Any:
        raise AssertionError("a small body has no units")

    monkeypatch.setattr(store, "admit", recording)
    monkeypatch.setattr(store, "charge", charge)
    assert (await post(agent, tenant, UNIT - 1, CALL)).status_code == 200
    assert (await post(agent, tenant, UNIT - 1, CALL, chunked=True)).status_code == 200
    assert (await agent.rpc(tenant.agent_key, "ping")).status_code == 200
    assert asked == ["tools", "tools", "backstop"]
