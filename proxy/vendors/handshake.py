"""How every conversation with a vendor begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.protocol import jsonrpc, replies, versions
from proxy.protocol.item_kinds import CAPABILITIES

CLIENT_INFO = {"name": "mcp-gateway", "version": "1"}
# Empty capabilities: a vendor that keeps to them sends no requests that would have to be refused.
INITIALIZE_PARAMS: dict[str, Any] = {
    "protocolVersion": versions.NEWEST,
    "capabilities": {},
    "clientInfo": CLIENT_INFO,
}


def initialize_params(capabilities: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """`capabilities`: of the one caller that the session is for; None for a session that callers share."""
    return {**INITIALIZE_PARAMS, "capabilities": capabilities} if capabilities else INITIALIZE_PARAMS


_LOGGING = frozenset({"logging"})
_distinct: dict[frozenset[str], frozenset[str]] = {}  # at most sixteen
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


def declared_capabilities(raw_result: bytes) -> frozenset[str]:
    """Those that the gateway passes on, in a result of `initialize`; equal sets are one object."""
    found = replies.declared(raw_result, CAPABILITIES)
    return _distinct.setdefault(found, found)


def declares_logging(raw_result: bytes) -> bool:
    """In a result of `initialize`."""
    return bool(replies.declared(raw_result, _LOGGING))


def session_headers(protocol_version: str | None, session_id: str | None) -> dict[str, str]:
    """Headers of each request after `initialize`, next to the base headers."""
    headers = {"MCP-Protocol-Version": protocol_version, "Mcp-Session-Id": session_id}
    return {name: value for name, value in headers.items() if value is not None}
