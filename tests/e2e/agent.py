"""Requests of an agent or a script to a web server: token requests, JSON-RPC and CLI calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx

MCP_HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}


@dataclass(frozen=True)
class ServiceClient:
    """A service client and its plain secrets; `org_id` is its organization's, `subject` what its tokens speak for."""

    org_id: str
    subject: str
    client_id: str
    client_secret: str = field(repr=False)
    agent_key: str = field(repr=False)


def bearer(token: str) -> dict[str, str]:
    """The headers of an MCP client with this token."""
    return {**MCP_HEADERS, "Authorization": f"Bearer {token}"}


def access_token(client: httpx.Client, service_client: ServiceClient, scope: str = "mcp:all") -> str:
    """A JWT from the token endpoint."""
    form = {
        "grant_type": "client_credentials",
        "client_id": service_client.client_id,
        "client_secret": service_client.client_secret,
        "scope": scope,
    }
    answer = client.post("/oauth/token", data=form)
    assert answer.status_code == 200, answer.text
    token: str = answer.json()["access_token"]
    return token


def rpc(client: httpx.Client, token: str, method: str, params: dict[str, Any] | None = None) -> httpx.Response:
    """One JSON-RPC request to the unified endpoint."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    return client.post("/v1/mcp", json=body, headers=bearer(token))


def call(client: httpx.Client, token: str, tool: str, **arguments: Any) -> httpx.Response:
    """One tools/call."""
    return rpc(client, token, "tools/call", {"name": tool, "arguments": arguments})


def cli(client: httpx.Client, token: str, vendor: str, tool: str, **arguments: Any) -> httpx.Response:
    """One CLI call."""
    body = {"tool": tool, "args": arguments}
    return client.post(f"/v1/{vendor}/cli", json=body, headers={"Authorization": f"Bearer {token}"})


def result(answer: httpx.Response) -> dict[str, Any]:
    """The result of a call that worked."""
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert "result" in body, body
    assert not body["result"].get("isError"), body
    found: dict[str, Any] = body["result"]
    return found
