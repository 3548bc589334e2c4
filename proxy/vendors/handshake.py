"""How every conversation with a vendor begins."""

from __future__ import annotations

from typing import Any

from proxy.protocol import jsonrpc, replies, versions

CLIENT_INFO = {"name": "mcp-gateway", "version": "1"}
# Empty capabilities: a vendor that keeps to them sends no requests that would have to be refused.
INITIALIZE_PARAMS: dict[str, Any] = {
    "protocolVersion": versions.NEWEST,
    "capabilities": {},
    "clientInfo": CLIENT_INFO,
}
INITIALIZED = jsonrpc.notification("notifications/initialized")


def base_headers() -> dict[str, str]:
    return {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "User-Agent": "mcp-gateway",
    }


def spoken_version(raw_result: bytes) -> str | None:
    """The protocol version in a result of `initialize`; None if the gateway does not speak it, or without one."""
    version = replies.protocol_version(raw_result)
    return version if version in versions.NEWEST_FIRST else None


def session_headers(protocol_version: str | None, session_id: str | None) -> dict[str, str]:
    """Headers of each request after `initialize`, next to the base headers."""
    headers = {"MCP-Protocol-Version": protocol_version, "Mcp-Session-Id": session_id}
    return {name: value for name, value in headers.items() if value is not None}
