"""Requests of the modern revision as a well-behaved client sends them, and their parts one by one."""

from __future__ import annotations

from typing import Any

import httpx

from tests.api.proxy.conftest import Agent, headers
from tests.factories.tenant import Tenant

VERSION = "2026-07-28"
RESERVED = "io.modelcontextprotocol/"
PATHS = ["/v1/mcp", "/v1/fake/mcp"]
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def meta(**more: Any) -> dict[str, Any]:
    """The `_meta` of a client that can do nothing; `more` by the part of the key behind the reserved prefix."""
    own = {"protocolVersion": VERSION, "clientCapabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return {RESERVED + name: value for name, value in {**own, **more}.items() if value is not ...}


def said(method: str, params: dict[str, Any]) -> dict[str, str]:
    """The headers that repeat the body."""
    found = {"MCP-Protocol-Version": VERSION, "Mcp-Method": method}
    name = params.get(NAMED_BY.get(method, ""))
    return {**found, "Mcp-Name": name} if isinstance(name, str) else found


async def ask(
    agent: Agent, bearer: str | None, method: str, params: dict[str, Any] | None = None, **more: Any
) -> httpx.Response:
    """One request. `id`, `path`, `meta` and headers by name; a header that is None is left out."""
    own = {"_meta": more.pop("meta", None) or meta(), **(params or {})}
    body = {"jsonrpc": "2.0", "id": more.pop("id", "r-1"), "method": method, "params": own}
    path = more.pop("path", "/v1/mcp")
    sent = {name: value for name, value in {**said(method, own), **more}.items() if value is not None}
    return await agent.http.post(path, json=body, headers=headers(bearer, sent))


async def call(agent: Agent, bearer: str, tool: str, arguments: Any = None, **more: Any) -> httpx.Response:
    """One tools/call."""
    return await ask(agent, bearer, "tools/call", {"name": tool, "arguments": arguments or {}}, **more)


def error(answer: httpx.Response) -> tuple[int, int]:
    """Status and code, of an answer with the request's id."""
    body = answer.json()
    assert set(body) == {"jsonrpc", "id", "error"}, body
    assert body["id"] == "r-1"
    return answer.status_code, body["error"]["code"]


def bearer_of(tenant: Tenant, jwt: str, path: str) -> str:
    """The one that opens this endpoint."""
    return tenant.agent_key if path == "/v1/mcp" else jwt
