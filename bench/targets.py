"""Pure: the measured targets, and the request bytes and marks that each connection uses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench import vendor_answers as vendor
from bench.processes import HOST

DIRECT, PASS_THROUGH = "vendor direct", "pass-through"
MCP_KEY, MCP_JWT, CLI = "gateway mcp, key", "gateway mcp, jwt", "gateway cli, jwt"
MCP_WRITE, MCP_KEPT = "gateway mcp, write", "gateway mcp, cached"
MCP_STREAM, MCP_LIST = "gateway mcp, progress", "gateway tools/list"
# The short names of the command line.
NAMES: Mapping[str, str] = {
    "direct": DIRECT,
    "passthrough": PASS_THROUGH,
    "mcp-key": MCP_KEY,
    "mcp-jwt": MCP_JWT,
    "cli": CLI,
    "mcp-write": MCP_WRITE,
    "mcp-cached": MCP_KEPT,
    "mcp-progress": MCP_STREAM,
    "mcp-list": MCP_LIST,
}
DEFAULT = ("direct", "passthrough", "mcp-key", "mcp-jwt", "cli")
# Those that do what the pass-through does, so that there are bounds on their ratios.
BOUNDED = frozenset({MCP_KEY, MCP_JWT, CLI, MCP_WRITE})
GATEWAY = BOUNDED | {MCP_KEPT, MCP_STREAM, MCP_LIST}
# With a delay the two kinds of bearer differ by nothing that could be seen.
WITHOUT_DELAY_ONLY = frozenset({MCP_JWT, MCP_WRITE, MCP_KEPT, MCP_STREAM, MCP_LIST})
# The vendors of the organization whose tools are listed.
LISTED_VENDORS = 50
VENDOR_SLUG = "bench"
SITES = 64


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to send load to. `pid` is the measured process, None where there is none but the vendor."""

    name: str
    port: int
    pid: int | None
    requests: Sequence[bytes] = field(repr=False)
    marks: Sequence[bytes] = field(repr=False)


def sites() -> list[str]:
    """The arguments by which answers are told apart, one for each connection up to SITES."""
    return [f"site-{number:02d}" for number in range(SITES)]


def marks() -> list[bytes]:
    """The text that the answer to each site must hold."""
    return [vendor.marker(site).encode() for site in sites()]


def http_request(path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """One request over a connection that is kept."""
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {HOST}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        *(f"{name}: {value}" for name, value in headers.items()),
        f"Content-Length: {len(body)}",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def mcp_requests(
    path: str, tool: str, headers: Sequence[Mapping[str, str]], *, wants_progress: bool = False
) -> list[bytes]:
    """A tools/call for every site; the headers are used in turn, so that several callers share the load."""
    found = []
    for number, site in enumerate(sites()):
        message: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": number + 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": {"site": site}},
        }
        if wants_progress:
            message["params"]["_meta"] = {"progressToken": number + 1}
        chosen = {"MCP-Protocol-Version": vendor.PROTOCOL_VERSION, **headers[number % len(headers)]}
        found.append(http_request(path, chosen, json.dumps(message).encode()))
    return found


def cli_requests(path: str, tool: str, headers: Sequence[Mapping[str, str]]) -> list[bytes]:
    """A CLI call for every site."""
    return [
        http_request(path, headers[number % len(headers)], json.dumps({"tool": tool, "args": {"site": site}}).encode())
        for number, site in enumerate(sites())
    ]


def vendor_requests(key: str, session_id: str) -> list[bytes]:
    """Calls as the vendor itself wants them, for those who know its credential."""
    headers = {"X-Bench-Key": key, "Mcp-Session-Id": session_id}
    return mcp_requests("/mcp", vendor.READ_TOOL, [headers])


def listed_slug(number: int) -> str:
    """Of a vendor whose tools are listed."""
    return f"listed-{number}"


def list_requests(agent_keys: Sequence[str]) -> list[bytes]:
    """tools/list, with the keys in turn."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    headers = {"MCP-Protocol-Version": vendor.PROTOCOL_VERSION}
    return [http_request("/v1/mcp", {**headers, "Authorization": f"Bearer {key}"}, body) for key in agent_keys]


def list_mark() -> bytes:
    """The tool that only a list of all vendors has: every vendor has its tools in it, this one included."""
    prefix = listed_slug(LISTED_VENDORS - 1).replace("-", "_")
    return f'"{prefix}_{vendor.listed_tool(vendor.LIST_TOOLS - 1)}"'.encode()


def gateway_requests(name: str, agent_keys: Sequence[str], tokens: Sequence[str]) -> list[bytes]:
    """Calls as the gateway wants them, on the route and with the bearers that `name` says."""
    bearers = tokens if name in {MCP_JWT, CLI} else agent_keys
    headers = [{"Authorization": f"Bearer {bearer}"} for bearer in bearers]
    if name == CLI:
        return cli_requests(f"/v1/{VENDOR_SLUG}/cli", vendor.READ_TOOL.replace("_", "-"), headers)
    tool = _TOOLS.get(name, vendor.READ_TOOL)
    return mcp_requests("/v1/mcp", f"{VENDOR_SLUG}_{tool}", headers, wants_progress=name == MCP_STREAM)


_TOOLS = {MCP_WRITE: vendor.WRITE_TOOL, MCP_KEPT: vendor.KEPT_TOOL, MCP_STREAM: vendor.STREAM_TOOL}
