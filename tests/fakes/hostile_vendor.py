"""A vendor that misbehaves in one way at a time, over a real socket: one switch for each row of the fault matrix.

Besides the fault it speaks MCP, so that a call gets as far as the fault and the next one, without it, works again.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.raw_vendor import RawVendor, raw_vendor
from tests.fakes.vendor_faults import FAULTS, VendorRequest

TOOLS: list[dict[str, Any]] = [
    {"name": "fake_list", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "fake_write", "inputSchema": {"type": "object"}},
]


@dataclass
class HostileVendor:
    """Set `fault` to a name in FAULTS; it strikes every request of the methods in `strikes`."""

    raw: RawVendor
    fault: str = ""
    strikes: tuple[str, ...] = ("tools/call",)
    tools: Callable[[dict[str, Any]], dict[str, Any]] = lambda _: {"tools": TOOLS}
    seen: Counter[str] = field(default_factory=Counter)
    refusals: list[dict[str, Any]] = field(default_factory=list)
    lose_sessions: int = 0  # how many of the next calls are told that their session is unknown
    lost_status: str = "404 Not Found"

    @property
    def url(self) -> str:
        """Its address."""
        return self.raw.url

    async def serve(self, raw: RawVendor, writer: asyncio.StreamWriter) -> None:
        """Answer the request that has just come."""
        head, _, body = raw.requests[-1].partition(b"\r\n\r\n")
        raw.requests.clear()
        request = VendorRequest(self, writer, json.loads(body) if body else {})
        method = request.body.get("method", "answer" if body else head.split(b" ", 1)[0].decode())
        self.seen[method] += 1
        if method == "answer":
            self.refusals.append(request.body)
        if self.fault and method in self.strikes:
            await FAULTS[self.fault](request)
        elif method == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "h", "version": "1"}}
            await request.say(request.result(result=result), more="Mcp-Session-Id: s\r\n")
        elif method == "tools/list":
            await request.say(request.result(result=self.tools(request.body.get("params", {}))))
        elif method == "tools/call" and self.lose_sessions:
            self.lose_sessions -= 1
            gone = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Session not found"}}
            await request.say(gone, status=self.lost_status)
        elif method == "tools/call":
            await request.say(request.result())
        else:
            await request.reply(b"", status="202 Accepted")


@asynccontextmanager
async def hostile_vendor() -> AsyncIterator[HostileVendor]:
    """On a free port of 127.0.0.1 until the block ends."""
    found: list[HostileVendor] = []

    async def script(raw: RawVendor, writer: asyncio.StreamWriter) -> None:
        await found[0].serve(raw, writer)

    async with raw_vendor(script) as raw:
        found.append(HostileVendor(raw))
        yield found[0]
