"""Pure: the answer to `initialize`."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from proxy.protocol import versions

SERVER_NAME: Final = "mcp-gateway"
TITLE: Final = "Vendor Tool Gateway"
DESCRIPTION: Final = "One MCP endpoint for the tools of every vendor your organization has connected."
ICON_PATH: Final = "/static/icon.svg"


def initialize_result(
    requested_version: object,
    *,
    capabilities: Mapping[str, Any],
    base_url: str,
    vendor_names: Sequence[str],
    gateway_version: str,
    why_none: str,
    how_to_find: str = "",
) -> dict[str, Any]:
    """`base_url` has no trailing slash; `why_none`: sentences for a caller without vendors; `how_to_find`: sentences
    for one whose list has not the vendors' tools. Spec: §4.15 · D109, D142"""
    return {
        "protocolVersion": versions.negotiate(requested_version),
        "capabilities": capabilities,
        # Newer members are sent to every version: older clients ignore them.
        "serverInfo": server_info(base_url, gateway_version),
        "instructions": instructions(vendor_names, why_none, how_to_find),
    }


def server_info(base_url: str, gateway_version: str) -> dict[str, Any]:
    return {
        **server_name(gateway_version),
        "description": DESCRIPTION,
        # Clients load icons only from the server's own origin.
        "icons": [{"src": f"{base_url}{ICON_PATH}", "mimeType": "image/svg+xml", "sizes": ["any"]}],
        "websiteUrl": base_url,
    }


def server_name(gateway_version: str) -> dict[str, Any]:
    return {"name": SERVER_NAME, "title": TITLE, "version": gateway_version}


def instructions(vendor_names: Sequence[str], why_none: str, how_to_find: str = "") -> str:
    if not vendor_names:
        return f"There are no tools yet. {why_none} Tools appear in tools/list as soon as this changes."
    return (
        f"This server offers the tools of these vendors: {', '.join(vendor_names)}. "
        f"The name of each tool starts with a prefix that stands for its vendor.{how_to_find and f' {how_to_find}'}"
    )
