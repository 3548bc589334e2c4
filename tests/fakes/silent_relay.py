"""A relay before a server that can go silent, as a network does that loses packets: nothing is reset, nothing arrives.

New connections are still accepted, and what is sent on any of them is swallowed in both directions.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

PIECE_BYTES = 65_536


class Relay:
    """Listens on `port` and passes everything to `target` until it is silenced."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._is_silent = False
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0
        self.swallowed_bytes = 0
        self.delay_s = 0.0  # of each piece, in both directions together

    def lead_to(self, host: str, port: int) -> None:
        """New connections go there: as a name that names another server."""
        self._target = (host, port)

    def next_target(self) -> tuple[str, int]:
        """Where the next connection goes."""
        return self._target

    def silence(self) -> None:
        """From now on nothing passes."""
        self._is_silent = True

    def pass_again(self) -> None:
        """New connections work again, old ones without what was swallowed; those made meanwhile stay dead."""
        self._is_silent = False

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Silent inside the block."""
        self.silence()
        try:
            yield
        finally:
            self.pass_again()

    async def serve(self, started: threading.Event, ended: asyncio.Event) -> None:
        """Relay until `ended`, then close every connection."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await ended.wait()
        server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            if self._is_silent:
                while piece := await reader.read(PIECE_BYTES):
                    self.swallowed_bytes += len(piece)
                return
            there_reader, there_writer = await asyncio.open_connection(*self.next_target())
            self._writers.add(there_writer)
            ways = [asyncio.ensure_future(self._pass(*way)) for way in ((reader, there_writer), (there_reader, writer))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            there_writer.transport.abort()
            self._writers.discard(there_writer)
        except (OSError, asyncio.CancelledError):
            return  # one of the two sides, or the relay, has ended the connection
        finally:
            writer.transport.abort()
            self._writers.discard(writer)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(PIECE_BYTES):
                if self._is_silent:
                    self.swallowed_bytes += len(piece)
                    continue
                if self.delay_s:
                    await asyncio.sleep(self.delay_s / 2)
                writer.write(piece)
                await writer.drain()


@contextlib.contextmanager
def relay_to(host: str, port: int) -> Iterator[Relay]:
    """A relay in a thread of its own, closed at the end."""
    relay = Relay((host, port))
    with running(relay):
        yield relay


@contextlib.contextmanager
def running(relay: Relay) -> Iterator[None]:
    """It relays inside the block, in a thread of its own."""
    started = threading.Event()
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:  # it cancels what is left, and closes the loop
            runner.run(relay.serve(started, ended))

    thread = threading.Thread(target=run, name="silent-relay", daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(10)
