"""A vendor at the level of bytes: what it sends, when it closes, and what it was sent, over a real socket."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@dataclass
class RawVendor:
    """`requests` holds the raw bytes of every whole request, `connections` how many were made."""

    port: int = 0
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    scheme: str = "http"

    @property
    def url(self) -> str:
        """Its address."""
        return f"{self.scheme}://127.0.0.1:{self.port}/mcp"


Script = Callable[[RawVendor, asyncio.StreamWriter], Awaitable[None]]


def says(*parts: bytes, then_close: bool = False, pause_s: float = 0.0) -> Script:
    """Answer every request with these parts."""

    async def script(vendor: RawVendor, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause_s)
        if then_close:
            writer.close()

    return script


@asynccontextmanager
async def raw_vendor(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawVendor]:
    """A vendor on a free port of 127.0.0.1 that runs `script` after each request."""
    vendor = RawVendor(scheme="https" if tls else "http")
    writers: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        vendor.connections += 1
        writers.add(writer)
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(_length(head))
                vendor.requests.append(head + body)
                await script(vendor, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            writers.discard(writer)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    vendor.port = server.sockets[0].getsockname()[1]
    try:
        yield vendor
    finally:
        server.close()
        for writer in list(writers):
            writer.transport.abort()
        await asyncio.sleep(0.01)


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0
