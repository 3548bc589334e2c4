"""A tunnel between the gateway and a vendor, which passes bytes and ends of connections on and keeps what was sent.

It hides nothing of a vendor that dies: open connections are cut off, and new ones meanwhile too.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections import Counter
from collections.abc import Iterator

METHOD = re.compile(rb'"method":"([^"]+)"')


class WireTap:
    """Listens on `port`; `target_port` is where new connections lead, and may be changed at any time."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.port = 0
        self._sent: list[bytearray] = []
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def mcp_url(self) -> str:
        """The vendor's address for whoever goes through here."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def sent(self) -> bytes:
        """All that was sent to the vendor, one connection after the other."""
        return b"\n".join(bytes(each) for each in self._sent)

    def methods(self) -> Counter[str]:
        """How often the vendor was sent each JSON-RPC method."""
        return Counter(name.decode() for name in METHOD.findall(self.sent()))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kept = bytearray()
        self._sent.append(kept)
        try:
            vendor_reader, vendor_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, vendor_writer}
        ways = [
            asyncio.ensure_future(_pass_on(reader, vendor_writer, kept)),
            asyncio.ensure_future(_pass_on(vendor_reader, writer, bytearray())),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for each in (writer, vendor_writer):
            self._writers.discard(each)
            each.close()

    async def run(self, started: threading.Event, stop: asyncio.Event) -> None:
        """Listen until `stop`."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await stop.wait()
        server.close()
        for writer in self._writers:
            writer.transport.abort()
        # Tasks that are cut off end by themselves, and close what they hold.
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)
        await asyncio.sleep(0.01)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray) -> None:
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(65536):
            kept += chunk
            writer.write(chunk)
            await writer.drain()


@contextlib.contextmanager
def wire_tap(target_port: int) -> Iterator[WireTap]:
    """A tap that listens until the block ends, in a thread of its own."""
    tap, started = WireTap(target_port), threading.Event()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(tap.run(started, stop)), daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield tap
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
