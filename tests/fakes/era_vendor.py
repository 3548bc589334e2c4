"""A vendor that speaks one revision of MCP at a time, and may change over between two requests."""

from __future__ import annotations

import json
from asyncio import StreamWriter
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.raw_vendor import RawVendor, raw_vendor

OURS = "2026-07-28"
META = "io.modelcontextprotocol/"
TOOLS = [{"name": "write", "inputSchema": {"type": "object"}}]
UNSUPPORTED_MODERN = {"code": -32022, "message": "Unsupported protocol version", "data": {"supported": [OURS]}}
UNSUPPORTED_EARLIER = {"code": -32600, "message": "Bad Request: Unsupported protocol version: 2026-07-28"}

Answer = Callable[[StreamWriter, dict[str, Any]], Awaitable[None]]


@dataclass
class EraVendor:
    """`seen` counts requests by method, `ran` those that a tool ran for. `answers`: what to say to a method instead."""

    raw: RawVendor
    era: str = "modern"  # or "earlier"
    has_sessions: bool = True
    seen: Counter[str] = field(default_factory=Counter)
    ran: int = 0
    headers: dict[str, str] = field(default_factory=dict)  # of the last call, by lower-case name
    params: dict[str, Any] = field(default_factory=dict)
    heads: list[bytes] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    asks: dict[str, Any] = field(default_factory=dict)  # for a test
    result: dict[str, Any] = field(default_factory=lambda: {"content": [{"type": "text", "text": "ran"}]})

    @property
    def url(self) -> str:
        return self.raw.url

    async def serve(self, raw: RawVendor, writer: StreamWriter) -> None:
        """Answer the request that has just come."""
        head, _, body = raw.requests[-1].partition(b"\r\n\r\n")
        asked = json.loads(body) if body else {"method": head.split(b" ", 1)[0].decode()}
        method, lines = asked["method"], [line.partition(b": ") for line in head.split(b"\r\n")[1:]]
        headers = {name.decode().lower(): value.decode("latin-1") for name, _, value in lines}
        self.seen[method] += 1
        if method == "tools/call":
            self.headers, self.params = headers, asked["params"]
        if method in self.answers:
            await self.answers[method](writer, asked)
            return
        is_modern = headers.get("mcp-protocol-version") == OURS
        if "id" not in asked:
            say(writer, 202, b"")
        elif self.era == "modern":
            self._modern(writer, asked, is_modern)
        elif is_modern:
            refuse(writer, UNSUPPORTED_EARLIER)
        else:
            self._earlier(writer, asked, headers)
        await writer.drain()

    def _modern(self, writer: StreamWriter, asked: dict[str, Any], is_modern: bool) -> None:
        meta = asked["params"].get("_meta", {})
        if not is_modern or meta.get(f"{META}protocolVersion") != OURS:
            refuse(writer, UNSUPPORTED_MODERN)
        elif asked["method"] == "server/discover":
            answer(writer, asked, {"resultType": "complete", "supportedVersions": [OURS], "capabilities": {}})
        elif asked["method"] == "tools/list":
            answer(writer, asked, {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": TOOLS})
        else:
            self.ran += 1
            answer(writer, asked, {"resultType": "complete", **self.result})

    def _earlier(self, writer: StreamWriter, asked: dict[str, Any], headers: dict[str, str]) -> None:
        if asked["method"] == "initialize":
            made = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "e", "version": "1"}}
            answer(writer, asked, made, b"Mcp-Session-Id: s\r\n" if self.has_sessions else b"")
        elif self.has_sessions and "mcp-session-id" not in headers:
            refuse(writer, {"code": -32600, "message": "Bad Request: Missing session ID"})
        elif asked["method"] == "tools/list":
            answer(writer, asked, {"tools": TOOLS})
        else:
            self.ran += 1
            answer(writer, asked, self.result)


def say(writer: StreamWriter, status: int, body: bytes, more: bytes = b"Content-Type: application/json\r\n") -> None:
    writer.write(b"HTTP/1.1 %d Status\r\n%bContent-Length: %d\r\n\r\n%b" % (status, more, len(body), body))


def answer(writer: StreamWriter, asked: dict[str, Any], result: dict[str, Any], more: bytes = b"") -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
    say(writer, 200, body, b"Content-Type: application/json\r\n" + more)


def refuse(writer: StreamWriter, error: dict[str, Any], *, status: int = 400, message_id: Any = None) -> None:
    say(writer, status, json.dumps({"jsonrpc": "2.0", "id": message_id, "error": error}).encode())


def says(status: int, body: bytes, more: bytes = b"Content-Type: application/json\r\n") -> Answer:
    """These bytes, whatever was asked."""

    async def reply(writer: StreamWriter, asked: dict[str, Any]) -> None:
        say(writer, status, body, more)
        await writer.drain()

    return reply


@asynccontextmanager
async def era_vendor(era: str = "modern") -> AsyncIterator[EraVendor]:
    """The vendor on a free port of 127.0.0.1."""
    found: list[EraVendor] = []

    async def script(raw: RawVendor, writer: StreamWriter) -> None:
        await found[0].serve(raw, writer)

    async with raw_vendor(script) as raw:
        found.append(EraVendor(raw, era))
        yield found[0]
