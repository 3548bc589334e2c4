"""The HTTP side of the hot routes: methods, media types, origins, hosts and what browsers are told."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.test import Client as Browser

from gateway.coordination.rules import Rule
from gateway.lib import clock
from tests.api.proxy.conftest import Agent, access_token, headers
from tests.factories.tenant import Tenant, load_vendor
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
ROUTES = {
    "/v1/mcp": "POST",
    "/v1/mcp/": "POST",
    "/v1/fake/mcp": "POST",
    "/v1/fake/mcp/": "POST",
    "/v1/fake/cli": "POST",
    "/v1/fake/cli/schema": "GET",
}
LOOPBACK_ORIGINS = ("http://localhost:6274", "http://127.0.0.1", "https://localhost", "http://[::1]:8080")


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND")


async def test_one_method_for_each_route(agent: Agent, jwt: str, vendor: FakeVendor) -> None:
    for (path, allowed), method in itertools.product(ROUTES.items(), METHODS):
        nobody = await agent.http.request(method, path)
        assert nobody.status_code == 401, "whoever asks is asked who they are before anything else"
        assert nobody.headers["WWW-Authenticate"].startswith(
            'Bearer realm="mcp", resource_metadata="http://testserver/'
        )
        answer = await agent.http.request(method, path, headers=headers(jwt, {}))
        if method == allowed or (method, allowed) == ("HEAD", "GET"):
            assert answer.status_code in (200, 415), (path, method)
        else:
            assert (answer.status_code, answer.headers["Allow"]) == (405, allowed), (path, method)
            assert method == "HEAD" or answer.json()["error"]
    assert vendor.seen["tools/call"] == 0


CONTENT_TYPES = [
    ("application/json", 200),
    ("application/json; charset=utf-8", 200),
    ("application/json;charset=UTF-8;profile=x", 200),
    ("Application/JSON", 200),
    ("text/plain", 415),
    ("text/json", 415),
    ("application/jsonp", 415),
    ("application/problem+json", 415),
    ("multipart/form-data; boundary=x", 415),
    ("application/x-www-form-urlencoded", 415),
    ("", 415),
    (None, 415),
]


async def test_bodies_are_json_by_name(agent: Agent, tenant: Tenant) -> None:
    for content_type, status in CONTENT_TYPES:
        sent = headers(tenant.agent_key, {} if content_type is None else {"Content-Type": content_type})
        answer = await agent.http.post("/v1/mcp", content=PING, headers=sent)
        assert answer.status_code == status, content_type
        assert answer.headers["Content-Type"] == "application/json"


ACCEPTED = [
    (None, 200),
    ("", 200),
    ("application/json", 200),
    ("text/event-stream", 200),
    ("application/json, text/event-stream", 200),
    ("APPLICATION/JSON", 200),
    ("application/*", 200),
    ("*/*", 200),
    ("text/html, */*;q=0.1", 200),
    ("text/html", 406),
    ("application/xml", 406),
    ("image/*, text/html;level=1", 406),
]


async def test_answers_are_what_the_caller_reads(agent: Agent, tenant: Tenant) -> None:
    agent.http.headers.pop("Accept")
    for accept, status in ACCEPTED:
        sent = {"Content-Type": "application/json", "Authorization": f"Bearer {tenant.agent_key}"}
        said = sent if accept is None else sent | {"Accept": accept}
        answer = await agent.http.post("/v1/mcp", content=PING, headers=said)
        assert answer.status_code == status, accept
        assert answer.headers["Content-Type"] == "application/json"
        assert "jsonrpc" in answer.json() or answer.json()["error"] == "not_acceptable"


ALLOWED_HEADERS = {
    "authorization",
    "content-type",
    "accept",
    "mcp-session-id",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "last-event-id",
}


async def test_a_preflight_is_answered_without_a_bearer(agent: Agent) -> None:
    for path, origin in itertools.product(ROUTES, LOOPBACK_ORIGINS):
        asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        answer = await agent.http.options(path, headers=asked)
        assert (answer.status_code, answer.content) == (204, b"")
        assert answer.headers["Access-Control-Allow-Origin"] == origin
        more = ", DELETE" if path.strip("/").endswith("mcp") else ""  # ends a session
        assert answer.headers["Access-Control-Allow-Methods"] == f"{ROUTES[path]}{more}, OPTIONS"
        allowed = {name.strip().lower() for name in answer.headers["Access-Control-Allow-Headers"].split(",")}
        assert allowed >= ALLOWED_HEADERS
        assert "Access-Control-Allow-Credentials" not in answer.headers
        assert "Origin" in answer.headers["Vary"]


async def test_a_preflight_from_elsewhere_allows_nothing(agent: Agent) -> None:
    asked = {"Origin": "http://evil.example.com", "Access-Control-Request-Method": "POST"}
    answer = await agent.http.options("/v1/mcp", headers=asked)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


async def test_browsers_may_read_what_they_need_of_every_answer(agent: Agent, tenant: Tenant) -> None:
    origin = {"Origin": "http://localhost:6274"}
    for answer in (
        await agent.rpc(tenant.agent_key, "ping", **origin),
        await agent.rpc(None, "ping", **origin),
        await agent.rpc(tenant.agent_key, "ping", Accept="text/html", **origin),
    ):
        assert answer.headers["Access-Control-Allow-Origin"] == origin["Origin"]
        exposed = {name.strip().lower() for name in answer.headers["Access-Control-Expose-Headers"].split(",")}
        assert exposed >= {
            "www-authenticate",
            "mcp-session-id",
            "mcp-protocol-version",
            "retry-after",
            "x-auth-ms",
            "x-session-ms",
            "x-vendor-ms",
            "x-total-ms",
        }
    assert "Access-Control-Allow-Origin" not in (await agent.rpc(tenant.agent_key, "ping")).headers


async def test_an_operator_may_let_other_origins_in(agent: Agent, tenant: Tenant, settings: Any) -> None:
    settings.ALLOWED_ORIGINS = ["https://console.example.com"]
    for origin, status in {
        "https://console.example.com": 200,
        "http://console.example.com": 403,
        "https://console.example.com:8443": 403,
        "https://console.example.com.evil.example": 403,
        "https://other.example.com": 403,
    }.items():
        answer = await agent.rpc(tenant.agent_key, "ping", Origin=origin)
        assert answer.status_code == status
        assert answer.headers.get("Access-Control-Allow-Origin") == (origin if status == 200 else None)


async def test_a_foreign_origin_or_host_is_refused_on_every_route(agent: Agent, jwt: str, vendor: FakeVendor) -> None:
    for path in ROUTES:
        sent = headers(jwt, {"Origin": "http://evil.example.com", "Content-Type": "application/json"})
        answer = await agent.http.request(ROUTES[path], path, content=PING, headers=sent)
        assert answer.status_code == 403, path
        for host in ("evil.example", "testserver.evil.example", "testserver:80@evil.example", ""):
            answer = await agent.http.request(ROUTES[path], path, content=PING, headers=headers(jwt, {"Host": host}))
            said = "The Host header does not name this service." if "/cli" in path else "invalid_request"
            assert (answer.status_code, answer.json()["error"]) == (400, said), (path, host)
    assert sum(vendor.seen.values()) == 0


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource/v1/mcp",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-authorization-server",
    ],
)
def test_discovery_is_for_clients_of_any_version(db: None, path: str) -> None:
    answer = Browser().get(path, HTTP_MCP_PROTOCOL_VERSION="2026-07-28", HTTP_ORIGIN="http://evil.example.com")
    assert answer.status_code == 200
    assert answer["Access-Control-Allow-Origin"] == "*"


# The steps of a call that these answers never reach. X-Total-Ms may be any number.
TIMES = ("X-Auth-Ms", "X-Session-Ms", "X-Vendor-Ms")


@pytest.mark.parametrize("path", ["/v1/mcp", "/v1/fake/mcp", "/v1/fake/cli", "/v1/fake/cli/schema"])
@pytest.mark.parametrize(
    ("sent", "status"),
    [({"Content-Encoding": "gzip"}, 415), ({"Content-Length": "99999999"}, 413), ({"Host": "evil.example"}, 400)],
)
async def test_what_never_reaches_its_view_is_answered_in_its_shape_all_the_same(
    agent: Agent, path: str, sent: dict[str, str], status: int
) -> None:
    asked = {"Origin": LOOPBACK_ORIGINS[0], "Content-Type": "application/json", **sent}
    answer = await agent.http.post(path, content=PING, headers=asked)
    assert answer.status_code == status
    assert [answer.headers[name] for name in TIMES] == ["0", "0", "0"]
    assert answer.headers["X-Total-Ms"].isdecimal()
    assert answer.headers["Access-Control-Allow-Origin"] == LOOPBACK_ORIGINS[0]
    assert set(answer.json()) == ({"error"} if "/cli" in path else {"error", "error_description"})


async def test_what_is_refused_after_authentication_counts_as_a_request(
    agent: Agent, tenant: Tenant, jwt: str, other_tenant: Tenant, settings: Any
) -> None:
    settings.BACKSTOP = Rule("requests", limit=6, window_s=60)
    json_type = {"Content-Type": "application/json"}
    refused = [
        ("GET", "/v1/mcp", b"", {}, 405),
        ("POST", "/v1/mcp", PING, {"Content-Type": "text/plain"}, 415),
        ("POST", "/v1/mcp", PING, {**json_type, "Accept": "image/png"}, 406),
        ("POST", "/v1/nonesuch/mcp", PING, json_type, 404),
        ("POST", "/v1/fake/cli", b"[]", json_type, 400),
        ("PUT", "/v1/fake/cli", PING, json_type, 405),
    ]
    for method, path, content, sent, status in refused:
        answer = await agent.http.request(method, path, content=content, headers={**headers(jwt, {}), **sent})
        assert answer.status_code == status, (path, status)
    for method, path, content, sent, _ in refused:
        answer = await agent.http.request(method, path, content=content, headers={**headers(jwt, {}), **sent})
        assert answer.status_code == 429, path
        assert int(answer.headers["Retry-After"]) > 0
    elsewhere = await agent.rpc(other_tenant.agent_key, "ping")
    assert elsewhere.status_code == 200, "another caller has a window of its own"


async def test_a_token_without_the_vendors_scope_learns_so_from_its_first_request(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor
) -> None:
    await in_thread(lambda: load_vendor(vendor.url, slug="globex"))
    narrow = await in_thread(lambda: access_token(tenant, "mcp:globex"))
    for method in ("initialize", "ping", "tools/list", "resources/list"):
        answer = await agent.rpc(narrow, method, path="/v1/fake/mcp")
        assert answer.status_code == 403, method
        assert 'error="insufficient_scope", scope="mcp:fake mcp:globex"' in answer.headers["WWW-Authenticate"]
        assert (await agent.rpc(narrow, method)).status_code == 200, "the unified endpoint shows what it covers"
    assert sum(vendor.seen.values()) == 0


@pytest.mark.parametrize("method", METHODS)
async def test_liveness_is_read_only(agent: Agent, method: str) -> None:
    answer = await agent.http.request(method, "/health")
    if method in ("GET", "HEAD"):
        assert answer.status_code == 200
    else:
        assert (answer.status_code, answer.headers["Allow"]) == (405, "GET")


async def test_a_body_of_the_largest_size_is_read(agent: Agent, tenant: Tenant, settings: Any) -> None:
    sent = {"Content-Type": "application/json", **headers(tenant.agent_key, {})}
    largest = PING + b" " * (settings.MCP_BODY_BYTES - len(PING))
    assert (await agent.http.post("/v1/mcp", content=largest, headers=sent)).json()["result"] == {}
    over = await agent.http.post("/v1/mcp", content=largest + b" ", headers=sent)
    assert (over.status_code, over.json()["error"]) == (413, "body_too_large")


# A page may read these of any answer (Fetch, "CORS-safelisted response-header name"), or has no use for them.
READABLE = {"cache-control", "content-language", "content-length", "content-type", "expires", "last-modified", "pragma"}
NOT_FOR_PAGES = {"vary", "allow"}


async def test_every_header_that_answers_carry_is_exposed(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor, settings: Any
) -> None:
    """Of the answers to a page: of each route, and of each way to refuse, an endpoint with a day to go included."""
    settings.VENDOR_MCP_SUNSET = clock.now() + timedelta(days=400)
    origin = {"Origin": LOOPBACK_ORIGINS[0]}
    call = {"name": "fake_list", "arguments": {}}
    seen: set[str] = set()

    def note(answer: httpx.Response, status: int) -> None:
        assert answer.status_code == status
        assert answer.headers["Access-Control-Allow-Origin"] == LOOPBACK_ORIGINS[0]
        exposed = {name.strip().lower() for name in answer.headers["Access-Control-Expose-Headers"].split(",")}
        sent = {name for name in answer.headers if not name.startswith("access-control-")}
        assert sent - READABLE - NOT_FOR_PAGES <= exposed, status
        seen.update(sent)

    for path in ("/v1/mcp", "/v1/fake/mcp"):
        for method, params in {"initialize": {}, "tools/list": {}, "tools/call": call}.items():
            note(await agent.rpc(jwt, method, params, path=path, **origin), 200)
        note(await agent.rpc(None, "ping", path=path, **origin), 401)
        note(await agent.http.get(path, headers=headers(jwt, origin)), 405)
        note(await agent.http.post(path, content=PING, headers=headers(jwt, origin)), 415)
        note(await agent.http.options(path, headers=origin), 204)
    sent = headers(jwt, origin)
    note(await agent.http.post("/v1/fake/cli", json={"tool": "list"}, headers=sent), 200)
    note(await agent.http.post("/v1/nobody/cli", json={"tool": "list"}, headers=sent), 403)
    note(await agent.http.get("/v1/fake/cli/schema", headers=sent), 200)
    vendor.status, vendor.retry_after = 429, "7"
    note(await agent.http.post("/v1/fake/cli", json={"tool": "write"}, headers=sent), 502)
    settings.TOOL_CALLS = Rule("tools", limit=1, window_s=3600)
    note(await agent.rpc(jwt, "tools/call", call, **origin), 200)
    note(await agent.http.post("/v1/fake/cli", json={"tool": "list"}, headers=sent), 429)
    carried = {"x-auth-ms", "x-session-ms", "x-vendor-ms", "x-total-ms", "x-cache", "x-request-id", "retry-after"}
    assert carried | {"www-authenticate", "deprecation", "link", "sunset"} <= seen
    assert seen >= NOT_FOR_PAGES
