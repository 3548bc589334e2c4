"""How every conversation with a vendor begins."""

from __future__ import annotations

from typing import Any

from proxy.protocol import versions

# Empty capabilities: a vendor that keeps to them sends no requests that would have to be refused.
INITIALIZE_PARAMS: dict[str, Any] = {
    "protocolVersion": versions.NEWEST,
    "capabilities": {},
    "clientInfo": {"name": "mcp-gateway", "version": "1"},
}


def base_headers() -> dict[str, str]:
    return {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "User-Agent": "mcp-gateway",
    }
