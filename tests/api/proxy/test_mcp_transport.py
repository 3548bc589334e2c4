"""POST /v1/mcp at the wire: authentication first, then method, media types, versions, batches, JSON-RPC faults."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from audit.models import RequestAuditEntry
from credentials.models import Credential
from credentials.uses import record_credential_uses
from gateway import incoming_body
from gateway.coordination.rules import Rule
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib import clock
from orgs.services.tool_access import set_allowlist
from proxy import runtime
from tests.api.proxy.conftest import Agent, headers
from tests.factories.tenant import Tenant
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

CHALLENGE = (
    'Bearer realm="mcp", resource_metadata="http://testserver/.well-known/oauth-protected-resource/v1/mcp",'
    ' scope="mcp:all"'
)


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "PUT"])
async def test_without_a_bearer_every_method_gets_the_challenge(agent: Agent, method: str) -> None:
    answer = await agent.http.request(method, "/v1/mcp")
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == CHALLENGE
    assert "jsonrpc" not in answer.json()
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Auth-Ms"].isdigit()


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_with_a_bearer_other_methods_are_405(agent: Agent, tenant: Tenant, method: str) -> None:
    answer = await agent.http.request(method, "/v1/mcp", headers=headers(tenant.agent_key, {}))
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "bearer",
    [
        "wrong",
        "sk-abcdefgh",
        "cak_aaaaaaaaaaaa_" + "b" * 43,
        "gwt_aaaaaaaaaaaa_" + "b" * 43,
        "eyJhbGciOiJub25lIn0.e30.",
        "' OR 1=1 --",
        "a" * 7000,
    ],
)
async def test_a_wrong_bearer_is_invalid_token(agent: Agent, bearer: str) -> None:
    answer = await agent.rpc(bearer, "tools/list")
    assert answer.status_code == 401
    assert answer.json()["error"] == "invalid_token"
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]
    assert bearer not in answer.text


async def test_an_authorization_header_that_is_no_bearer_is_400(agent: Agent) -> None:
    answer = await agent.http.post("/v1/mcp", headers={"Authorization": "Basic abc"})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


async def test_a_token_in_the_query_string_is_not_read(agent: Agent, tenant: Tenant) -> None:
    answer = await agent.http.post(f"/v1/mcp?access_token={tenant.agent_key}", json={})
    assert answer.status_code == 401


async def test_two_authorization_headers_are_refused(agent: Agent, tenant: Tenant) -> None:
    twice = [("Authorization", f"Bearer {tenant.agent_key}"), ("Authorization", "Bearer other")]
    answer = await agent.http.post("/v1/mcp", json={}, headers=twice)
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("asked", "answered"),
    [(version, version) for version in ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")]
    + [("1999", "2025-03-26"), (None, "2025-03-26"), ("2026-07-28", "2025-03-26")],
)
async def test_initialize_echoes_known_versions(agent: Agent, tenant: Tenant, asked: str | None, answered: str) -> None:
    answer = await agent.rpc(tenant.agent_key, "initialize", {"protocolVersion": asked} if asked else {})
    result = answer.json()["result"]
    assert result["protocolVersion"] == answered
    assert result["capabilities"] == {"tools": {"listChanged": False}}
    assert {"name", "version", "title", "description", "icons", "websiteUrl"} <= set(result["serverInfo"])
    assert "Fake" in result["instructions"]
    assert "Mcp-Session-Id" not in answer.headers


async def test_ping_and_notifications_ask_no_vendor(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    assert (await agent.rpc(tenant.agent_key, "ping")).json()["result"] == {}
    body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answer = await agent.http.post("/v1/mcp", json=body, headers=headers(tenant.agent_key, {}))
    assert (answer.status_code, answer.content) == (202, b"")
    assert sum(vendor.seen.values()) == 0


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"{bad", 400, -32700),
        (b"", 400, -32700),
        (b"\xff\xfe", 400, -32700),
        (b'{"a":1,"a":2}', 400, -32700),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', 400, -32700),
        (b'"text"', 400, -32600),
        (b"[]", 400, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', 400, -32600),
        (b'{"id":1,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"resources/list"}', 200, -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"zz"}}', 200, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[1]}', 200, -32602),
    ],
)
async def test_json_rpc_faults(agent: Agent, tenant: Tenant, content: bytes, status: int, code: int) -> None:
    sent = {"Content-Type": "application/json", **headers(tenant.agent_key, {})}
    answer = await agent.http.post("/v1/mcp", content=content, headers=sent)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    ("depth", "status"), [(40, 200), (200, 400), (100_000, 400)], ids=["shallow", "deep", "absurd"]
)
async def test_depth_is_bounded(agent: Agent, tenant: Tenant, depth: int, status: int) -> None:
    params = b'{"name":"fake_list","arguments":{"x":' + b"[" * depth + b"]" * depth + b"}}"
    content = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + params + b"}"
    sent = {"Content-Type": "application/json", **headers(tenant.agent_key, {})}
    answer = await agent.http.post("/v1/mcp", content=content, headers=sent)
    assert answer.status_code == status


async def test_an_oversized_body_is_413_and_an_encoded_one_415(agent: Agent, tenant: Tenant) -> None:
    sent = {"Content-Type": "application/json", **headers(tenant.agent_key, {})}
    large = await agent.http.post("/v1/mcp", content=b" " * (4 * 1024 * 1024 + 1), headers=sent)
    assert large.status_code == 413
    encoded = await agent.http.post("/v1/mcp", content=b"x", headers={**sent, "Content-Encoding": "gzip"})
    assert encoded.status_code == 415

    async def endless() -> Any:
        for _ in range(80):
            yield b" " * 65536

    chunked = await agent.http.post("/v1/mcp", content=endless(), headers=sent)
    assert chunked.status_code == 413


@pytest.mark.parametrize("begun", [b"", b"{"], ids=["headers only", "one byte"])
async def test_a_body_that_does_not_come_is_408(
    agent: Agent, tenant: Tenant, begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incoming_body, "BODY_TIMEOUT_S", 0.05)

    async def stuck() -> Any:
        if begun:
            yield begun
        await asyncio.sleep(60)
        yield b""

    sent = {"Content-Type": "application/json", **headers(tenant.agent_key, {})}
    answer = await agent.http.post("/v1/mcp", content=stuck(), headers=sent)
    assert (answer.status_code, answer.headers["Connection"]) == (408, "close")


async def test_media_types(agent: Agent, tenant: Tenant) -> None:
    key = tenant.agent_key
    text = await agent.http.post("/v1/mcp", content=b"{}", headers={**headers(key, {}), "Content-Type": "text/plain"})
    assert text.status_code == 415
    assert (await agent.rpc(key, "ping", Accept="text/html")).status_code == 406
    for accept in ("application/json", "text/event-stream", "*/*", "application/json;q=0.5, text/html"):
        assert (await agent.rpc(key, "ping", Accept=accept)).status_code == 200


async def test_a_version_that_is_not_served_makes_newer_clients_fall_back(agent: Agent, tenant: Tenant) -> None:
    answer = await agent.rpc(tenant.agent_key, "server/discover", **{"MCP-Protocol-Version": "2026-01-01"})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["data"]["requested"]) == (-32602, "2026-01-01")
    assert error["data"]["supported"] == ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
    initialize = await agent.rpc(tenant.agent_key, "initialize", **{"MCP-Protocol-Version": "2026-07-28"})
    assert initialize.status_code == 200


def ping(message_id: int) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": message_id, "method": "ping"}


async def test_batches_where_the_version_has_them(agent: Agent, tenant: Tenant) -> None:
    key = tenant.agent_key
    both = await agent.http.post("/v1/mcp", json=[ping(1), ping(2)], headers=headers(key, {}))
    assert [one["id"] for one in both.json()] == [1, 2]
    mixed = [ping(1), {"jsonrpc": "2.0", "id": 2, "method": "initialize"}]
    inside = await agent.http.post("/v1/mcp", json=mixed, headers=headers(key, {}))
    assert inside.json()[1]["error"]["code"] == -32600
    only = [{"jsonrpc": "2.0", "method": "notifications/initialized"}]
    assert (await agent.http.post("/v1/mcp", json=only, headers=headers(key, {}))).status_code == 202
    newer = headers(key, {"MCP-Protocol-Version": "2025-11-25"})
    refused = await agent.http.post("/v1/mcp", json=[ping(1)], headers=newer)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32600)
    long = await agent.http.post("/v1/mcp", json=[ping(n) for n in range(21)], headers=headers(key, {}))
    assert (long.status_code, long.json()["error"]["code"]) == (400, -32600)


async def test_each_call_of_a_batch_is_recorded(agent: Agent, tenant: Tenant) -> None:
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "fake_list"}}
    batch = [{**call, "id": 1}, {**call, "id": 2}]
    answer = await agent.http.post("/v1/mcp", json=batch, headers=headers(tenant.agent_key, {}))
    assert [one["result"]["content"][0]["text"] for one in answer.json()] == ["{}", "{}"]
    assert await in_thread(lambda: RequestAuditEntry.objects.count()) == 2


async def test_preflight_needs_no_bearer_and_exposes_what_browsers_need(agent: Agent) -> None:
    origin = {"Origin": "http://localhost:6274", "Access-Control-Request-Method": "POST"}
    answer = await agent.http.options("/v1/mcp", headers=origin)
    assert answer.status_code == 204
    assert answer.headers["Access-Control-Allow-Origin"] == "http://localhost:6274"
    allowed = answer.headers["Access-Control-Allow-Headers"].lower()
    assert "authorization" in allowed
    assert "mcp-protocol-version" in allowed
    refused = await agent.http.post("/v1/mcp", headers={"Origin": "http://localhost:6274"})
    assert "WWW-Authenticate" in refused.headers["Access-Control-Expose-Headers"]


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://testserver", 200),
        ("http://127.0.0.1:5173", 200),
        ("http://evil.example.com", 403),
        ("null", 403),
        ("http://testserver.evil.example", 403),
        ("http://localhost.evil.example", 403),
        ("http://[", 403),
    ],
)
async def test_only_known_origins_may_call(agent: Agent, tenant: Tenant, origin: str, status: int) -> None:
    answer = await agent.rpc(tenant.agent_key, "ping", Origin=origin)
    assert answer.status_code == status


@pytest.mark.parametrize("host", ["evil.example", "a/#@b"])
async def test_a_foreign_host_is_400(agent: Agent, tenant: Tenant, host: str) -> None:
    assert (await agent.rpc(tenant.agent_key, "ping", Host=host)).status_code == 400


async def test_the_trailing_slash_is_served_the_same(agent: Agent, tenant: Tenant) -> None:
    assert (await agent.rpc(tenant.agent_key, "ping", path="/v1/mcp/")).json()["result"] == {}
    assert (await agent.rpc(tenant.agent_key, "ping", path="/v1/nothing/here/at/all")).status_code == 404


async def test_the_request_id_of_the_caller_is_kept_when_it_is_harmless(agent: Agent, tenant: Tenant) -> None:
    kept = await agent.rpc(tenant.agent_key, "ping", **{"X-Request-Id": "abc-1"})
    assert kept.headers["X-Request-Id"] == "abc-1"
    replaced = await agent.rpc(tenant.agent_key, "ping", **{"X-Request-Id": "a b\tc"})
    assert replaced.headers["X-Request-Id"] != "a b\tc"


async def test_the_list_follows_pages_and_names_vendors_that_fail(
    agent: Agent, tenant: Tenant, vendor: FakeVendor
) -> None:
    vendor.page_size = 2
    listed = await agent.rpc(tenant.agent_key, "tools/list")
    assert [tool["name"] for tool in listed.json()["result"]["tools"]] == ["fake_fail", "fake_list", "fake_write"]
    assert "nextCursor" not in listed.json()["result"]


async def test_a_vendor_that_is_down_does_not_fail_the_list(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    vendor.api_key = "another-key"
    listed = await agent.rpc(tenant.agent_key, "tools/list")
    assert listed.json()["result"] == {
        "tools": [],
        "_meta": {"gateway/unavailable": {"fake": "vendor_rejected_credentials"}},
    }


async def test_answers_say_how_much_of_the_limit_is_left(agent: Agent, tenant: Tenant) -> None:
    first = await agent.call(tenant.agent_key, "fake_list")
    assert first.headers["RateLimit-Policy"] == '"tools";q=5000;w=3600'
    assert first.headers["RateLimit"].startswith('"tools";r=4999;t=')
    assert first.headers["X-RateLimit-Remaining"] == "4999"
    listed = await agent.rpc(tenant.agent_key, "tools/list")
    assert listed.headers["RateLimit-Policy"] == '"backstop";q=600;w=60'
    assert "RateLimit" not in (await agent.rpc("wrong", "ping")).headers


async def test_a_full_window_is_429_on_every_route_and_leaves_one_row(
    agent: Agent, tenant: Tenant, jwt: str, settings: Any
) -> None:
    settings.TOOL_CALLS = Rule("tools", limit=3, window_s=3600)
    for _ in range(2):
        assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 200
    assert (await agent.cli(jwt, "list")).status_code == 200
    refused = [await agent.call(tenant.agent_key, "fake_list"), await agent.cli(jwt, "list")]
    assert [answer.status_code for answer in refused] == [429, 429]
    assert refused[0].json()["error"] == "rate_limited"
    assert list(refused[1].json()) == ["error"]
    assert all(0 < int(answer.headers["Retry-After"]) <= 3600 for answer in refused)
    assert (await agent.rpc(tenant.agent_key, "ping")).status_code == 200
    rows = await in_thread(lambda: list(RequestAuditEntry.objects.filter(error_code="rate_limited")))
    assert [row.status for row in rows] == ["denied"]


@pytest.mark.parametrize(
    "body",
    [b"{", b'{"x":1}', b'{"jsonrpc":"2.0","method":"notifications/initialized"}', b"[" + b" " * 70_000 + b"]"],
    ids=["no JSON", "no message", "notification", "large"],
)
async def test_what_is_no_call_is_counted_too(
    agent: Agent, tenant: Tenant, jwt: str, body: bytes, settings: Any
) -> None:
    settings.BACKSTOP = Rule("backstop", limit=2, window_s=60)
    sent = {"Content-Type": "application/json", **headers(tenant.agent_key, {})}
    codes = [(await agent.http.post("/v1/mcp", content=body, headers=sent)).status_code for _ in range(3)]
    assert codes[0] in (202, 400)
    assert codes[2] == 429
    other = {"Content-Type": "application/json", **headers(jwt, {})}
    assert (await agent.http.post("/v1/fake/cli", content=b"{", headers=other)).status_code == 429


async def test_a_large_call_is_answered(agent: Agent, tenant: Tenant) -> None:
    answer = await agent.call(tenant.agent_key, "fake_list", site="x" * 100_000)
    assert answer.json()["result"]["structuredContent"] == {"site": "x" * 100_000}


async def test_without_the_coordination_store_nothing_is_served(
    agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any) -> Any:
        raise CoordinationUnavailable("locked")

    monkeypatch.setattr(runtime.current().store, "admit", away)
    answer = await agent.call(tenant.agent_key, "fake_list")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")


async def test_last_use_is_recorded(agent: Agent, tenant: Tenant) -> None:
    await agent.call(tenant.agent_key, "fake_list")
    await runtime.current().caller_cache.flush_last_used()  # it is written behind the call's back
    await in_thread(tenant.client.refresh_from_db)
    assert tenant.client.last_used_at is not None


async def test_the_use_of_a_credential_is_recorded_once_a_minute(agent: Agent, tenant: Tenant) -> None:
    callers = runtime.current().caller_cache

    async def last_used() -> datetime | None:
        await callers.flush_last_used()
        return await in_thread(lambda: Credential.objects.get().last_used_at)

    assert await last_used() is None
    await agent.call(tenant.agent_key, "fake_no_such_tool")
    assert await last_used() is None
    with time_machine.travel(clock.now(), tick=False) as now:
        await agent.call(tenant.agent_key, "fake_list")
        assert await last_used() == clock.now()
        noted = clock.now()
        now.shift(timedelta(seconds=59))
        # As another process, which has not noted it.
        await in_thread(lambda: record_credential_uses([Credential.objects.get().pk], clock.now()))
        assert await last_used() == noted
        now.shift(timedelta(seconds=1))
        await in_thread(lambda: record_credential_uses([Credential.objects.get().pk], clock.now()))
        assert await last_used() == clock.now()


async def test_a_denied_call_uses_no_credential(agent: Agent, tenant: Tenant) -> None:
    await in_thread(
        lambda: set_allowlist(
            actor=tenant.owner, organization=tenant.organization, vendor="fake", role="member", tools=[]
        )
    )
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 200
    await runtime.current().caller_cache.flush_last_used()
    assert await in_thread(lambda: Credential.objects.get().last_used_at) is None


async def test_the_vendors_own_endpoint_takes_a_jwt_and_no_agent_key(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor
) -> None:
    answer = await agent.rpc(jwt, "tools/call", {"name": "fake_list"}, path="/v1/fake/mcp")
    assert answer.json()["result"]["content"][0]["text"] == "{}"
    assert answer.headers["Deprecation"].startswith("@")
    assert 'rel="successor-version"' in answer.headers["Link"]
    assert (await agent.rpc(tenant.agent_key, "ping", path="/v1/fake/mcp")).status_code == 401
    assert (await agent.rpc(jwt, "ping", path="/v1/unknown/mcp")).status_code == 404
