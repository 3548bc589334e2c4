"""A proxy before several processes: each request to another one. A process of its own: `python -m bench.round_robin`.

Requests and answers pass as they came. Each round visits the processes in another order: in one fixed order, callers
that take turns would meet the same process each time whenever their number is a multiple of the number of processes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from typing import cast

import httptools
import uvloop

HOST = "127.0.0.1"


def rounds(ports: Sequence[int], chance: random.Random) -> Iterator[int]:
    """Pure but for `chance`: every port once in each round."""
    while True:
        yield from chance.sample(ports, len(ports))


class Ring:
    """The processes behind, with idle connections to each."""

    def __init__(self, ports: Sequence[int], chance: random.Random) -> None:
        self._next = rounds(ports, chance)
        self._idle: dict[int, deque[Behind]] = {port: deque() for port in ports}

    async def take(self) -> Behind:
        """A connection to the next process. Raises: OSError."""
        port = next(self._next)
        idle = self._idle[port]
        while idle:
            known = idle.pop()
            if known.transport is not None:
                return known
        made = Behind(idle)
        await asyncio.get_running_loop().create_connection(lambda: made, HOST, port)
        return made

    def close(self) -> None:
        """End the idle connections."""
        for idle in self._idle.values():
            for one in idle:
                one.close()


class Behind(asyncio.Protocol):
    """A connection to one process; also the callback of its parser. Back among the idle ones after each answer."""

    def __init__(self, idle: deque[Behind]) -> None:
        self.transport: asyncio.WriteTransport | None = None
        self._idle = idle
        self._front: Front | None = None

    def send(self, request: bytes, front: Front) -> None:
        """A whole request, whose answer goes to `front`."""
        self._front = front
        self._parser = httptools.HttpResponseParser(self)
        assert self.transport is not None
        self.transport.write(request)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready."""
        self.transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        """Pass on; the callback sees the end."""
        front = self._front
        if front is None:
            return
        front.write(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            front.close()

    def close(self) -> None:
        """End the connection."""
        if self.transport is not None:
            self.transport.close()

    def on_message_complete(self) -> None:
        """The answer is whole."""
        self._front = None
        self._idle.append(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Gone; so is an answer that was under way."""
        self.transport, front = None, self._front
        if front is not None:
            front.close()


class Front(asyncio.Protocol):
    """A client's connection; also the callback of its parser."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._parser = httptools.HttpRequestParser(self)
        self._parts: list[bytes] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready."""
        self._transport = cast(asyncio.WriteTransport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Gone."""
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Keep until the request is whole. A client has one request under way."""
        self._parts.append(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.close()

    def on_message_complete(self) -> None:
        """To the next process."""
        request, self._parts = b"".join(self._parts), []
        sending = asyncio.ensure_future(self._send(request))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    def write(self, data: bytes) -> None:
        """A part of the answer."""
        if self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        """No answer will come."""
        if self._transport is not None:
            self._transport.close()

    async def _send(self, request: bytes) -> None:
        try:
            behind = await self._ring.take()
        except OSError:
            self.close()
            return
        behind.send(request, self)


async def serve(ports: Sequence[int]) -> None:
    """Serve until the process ends; the first line on standard output is {"port"}."""
    ring = Ring(ports, random.Random(1))
    server = await asyncio.get_running_loop().create_server(lambda: Front(ring), HOST, 0, backlog=1024)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    try:
        await server.serve_forever()
    finally:
        ring.close()


def main() -> int:
    """Read the options and serve."""
    parser = argparse.ArgumentParser(prog="python -m bench.round_robin")
    parser.add_argument("ports", type=int, nargs="+", help="of the processes behind, on this computer")
    uvloop.run(serve(parser.parse_args().ports))
    return 0


if __name__ == "__main__":
    sys.exit(main())
