"""A vendor whose event streams end or break before the answer, byte by byte as the test says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.raw_vendor import RawVendor, raw_vendor

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EMPTY = b"Content-Length: 0\r\n\r\n"

Exchange = Callable[["CuttingVendor", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class CuttingVendor:
    """Each exchange of a call, its POST and then every GET, is answered by the next of `exchanges`, the last for ever.

    `gets` holds the headers of each GET, by lower-case name; `other_messages` every message that is neither a call nor
    part of the handshake.
    """

    raw: RawVendor
    exchanges: list[Exchange]
    call_id: Any = None
    calls: int = 0
    gets: list[dict[str, str]] = field(default_factory=list)
    other_messages: list[dict[str, Any]] = field(default_factory=list)
    handshake: Exchange | None = None  # instead of a proper one

    async def serve(self, raw: RawVendor, writer: asyncio.StreamWriter) -> None:
        """Answer the request that has just come."""
        head, _, body = raw.requests[-1].partition(b"\r\n\r\n")
        asked: dict[str, Any] = json.loads(body) if body else {}
        if head.startswith(b"GET "):
            lines = [line.partition(b": ") for line in head.split(b"\r\n")[1:]]
            self.gets.append({name.decode().lower(): value.decode("latin-1") for name, _, value in lines})
            await self._exchange(writer)
        elif asked.get("method") == "tools/call":
            self.calls += 1
            self.call_id = asked["id"]
            await self._exchange(writer)
        elif asked.get("method") == "initialize" and self.handshake is not None:
            await self.handshake(self, writer)
        elif asked.get("method") == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "c", "version": "1"}}
            text = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
            start = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s-1\r\n"
            writer.write(start + b"Content-Length: %d\r\n\r\n" % len(text) + text)
        else:
            if asked and asked.get("method") != "notifications/initialized":
                self.other_messages.append(asked)
            writer.write(b"HTTP/1.1 202 Accepted\r\n" + EMPTY)
        await writer.drain()

    async def _exchange(self, writer: asyncio.StreamWriter) -> None:
        exchange = self.exchanges.pop(0) if len(self.exchanges) > 1 else self.exchanges[0]
        await exchange(self, writer)


def event(data: bytes, event_id: str | None = None, *, retry_ms: int | None = None) -> bytes:
    """One event. `{id}` in it stands for the call's own id."""
    lines = [b"data: " + data]
    if event_id is not None:
        lines.append(b"id: " + event_id.encode())
    if retry_ms is not None:
        lines.append(b"retry: %d" % retry_ms)
    return b"\n".join(lines) + b"\n\n"


def mark(event_id: str, *, retry_ms: int | None = None) -> bytes:
    """An event that only hands out an id."""
    return event(b"", event_id, retry_ms=retry_ms)


def progress(step: int, event_id: str | None = None) -> bytes:
    """One report about the call."""
    params = b'"params":{"progressToken":{id},"progress":%d}' % step
    return event(b'{"jsonrpc":"2.0","method":"notifications/progress",%b}' % params, event_id)


ANSWER = event(b'{"jsonrpc":"2.0","id":{id},"result":{"content":[]}}')


def ends(*events: bytes) -> Exchange:
    """An event stream with these events that ends as it should."""
    return _stream(events, lambda writer: writer.write(b"0\r\n\r\n"))


def breaks(*events: bytes) -> Exchange:
    """An event stream with these events whose connection ends in the middle of the next."""
    return _stream((*events, b"id: never\nda"), lambda writer: writer.close())


def stays(*events: bytes) -> Exchange:
    """An event stream with these events that says nothing more."""
    return _stream(events, lambda writer: None)


def says(status: str, more: bytes = b"") -> Exchange:
    """A whole answer with this status and an empty body."""

    async def answer(vendor: CuttingVendor, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 %b\r\n%b" % (status.encode(), more) + EMPTY)

    return answer


async def hangs_up(vendor: CuttingVendor, writer: asyncio.StreamWriter) -> None:
    """No answer at all."""
    writer.transport.abort()


def _stream(events: tuple[bytes, ...], end: Callable[[asyncio.StreamWriter], None]) -> Exchange:
    async def answer(vendor: CuttingVendor, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM)
        for each in events:
            data = each.replace(b"{id}", json.dumps(vendor.call_id).encode())
            writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            await writer.drain()
        end(writer)

    return answer


@asynccontextmanager
async def cutting_vendor(*exchanges: Exchange) -> AsyncIterator[CuttingVendor]:
    """The vendor on a free port of 127.0.0.1."""
    found: list[CuttingVendor] = []

    async def script(raw: RawVendor, writer: asyncio.StreamWriter) -> None:
        await found[0].serve(raw, writer)

    async with raw_vendor(script) as raw:
        found.append(CuttingVendor(raw, list(exchanges)))
        yield found[0]
