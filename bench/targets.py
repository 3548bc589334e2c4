"""Pure: the measured targets, and the request bytes and marks that each connection uses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench import vendor
from bench.processes import HOST

DIRECT, PASS_THROUGH = "vendor direct", "pass-through"
MCP_KEY, MCP_JWT, CLI = "gateway mcp, key", "gateway mcp, jwt", "gateway cli, jwt"
MCP_WRITE = "gateway mcp, write"
# The short names of the command line.
NAMES: Mapping[str, str] = {
    "direct": DIRECT,
    "passthrough": PASS_THROUGH,
    "mcp-key": MCP_KEY,
    "mcp-jwt": MCP_JWT,
    "cli": CLI,
    "mcp-write": MCP_WRITE,
}
DEFAULT = ("direct", "passthrough", "mcp-key", "mcp-jwt", "cli")
GATEWAY = frozenset({MCP_KEY, MCP_JWT, CLI, MCP_WRITE})
# With a delay the two kinds of bearer differ by nothing that could be seen.
WITHOUT_DELAY_ONLY = frozenset({MCP_JWT, MCP_WRITE})
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


def mcp_requests(path: str, tool: str, headers: Sequence[Mapping[str, str]]) -> list[bytes]:
    """A tools/call for every site; the headers are used in turn, so that several callers share the load."""
    found = []
    for number, site in enumerate(sites()):
        message = {
            "jsonrpc": "2.0",
            "id": number + 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": {"site": site}},
        }
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


def gateway_requests(name: str, agent_keys: Sequence[str], tokens: Sequence[str]) -> list[bytes]:
    """Calls as the gateway wants them, on the route and with the bearers that `name` says."""
    bearers = agent_keys if name in {MCP_KEY, MCP_WRITE} else tokens
    headers = [{"Authorization": f"Bearer {bearer}"} for bearer in bearers]
    if name == CLI:
        return cli_requests(f"/v1/{VENDOR_SLUG}/cli", vendor.READ_TOOL.replace("_", "-"), headers)
    tool = vendor.WRITE_TOOL if name == MCP_WRITE else vendor.READ_TOOL
    return mcp_requests("/v1/mcp", f"{VENDOR_SLUG}_{tool}", headers)
