"""A proxy before PostgreSQL that counts the statements passing it. A process of its own.

`python -m bench.wide.statement_proxy HOST PORT`: the first line on standard output is {"port"}. Each line on standard
input is answered with the statements since the last one, {name: count}.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import cast

import uvloop

from bench.wide.statements import StatementCounts, StatementReader, Uses

HOST = "127.0.0.1"
# A request for TLS or GSSAPI comes before the start-up, and is declined by one byte.
ENCRYPTION_REQUESTS = frozenset({80877103, 80877104})
NO_ENCRYPTION = b"N"


class ServerSide(asyncio.Protocol):
    """The connection to the server."""

    def __init__(self, client: ClientSide) -> None:
        self._client = client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._client.serve_by(cast(asyncio.Transport, transport))

    def data_received(self, data: bytes) -> None:
        self._client.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._client.close()


class ClientSide(asyncio.Protocol):
    """A client's connection. Nothing that could be counted is encrypted: the proxy declines."""

    def __init__(self, server: tuple[str, int], counts: StatementCounts) -> None:
        self._address, self._counts = server, counts
        self._reader, self._uses = StatementReader(), Uses()
        self._client: asyncio.Transport | None = None
        self._server: asyncio.Transport | None = None
        self._early: list[bytes] = []
        self._connecting: asyncio.Task[object] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._client = cast(asyncio.Transport, transport)
        loop = asyncio.get_running_loop()
        self._connecting = loop.create_task(self._connect(loop))

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            await loop.create_connection(lambda: ServerSide(self), *self._address)
        except OSError:
            self.close()

    def serve_by(self, server: asyncio.Transport) -> None:
        """Connected: bytes that came before go on now."""
        self._server = server
        for data in self._early:
            server.write(data)
        self._early.clear()
        if self._client is None:
            server.close()

    def data_received(self, data: bytes) -> None:
        if len(data) == 8 and int.from_bytes(data[4:], "big") in ENCRYPTION_REQUESTS:
            self.write(NO_ENCRYPTION)
            return
        self._counts.add(self._uses.add(self._reader.feed(data)))
        if self._server is None:
            self._early.append(data)
        else:
            self._server.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._client = None
        if self._server is not None:
            self._server.close()

    def write(self, data: bytes) -> None:
        if self._client is not None:
            self._client.write(data)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


async def serve(server: tuple[str, int]) -> None:
    """Serve until standard input ends."""
    loop, counts = asyncio.get_running_loop(), StatementCounts()
    listening = await loop.create_server(lambda: ClientSide(server, counts), HOST, 0, backlog=128)
    print(json.dumps({"port": listening.sockets[0].getsockname()[1]}), flush=True)
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while await lines.readline():
        print(json.dumps(counts.take()), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.wide.statement_proxy")
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    options = parser.parse_args()
    uvloop.run(serve((options.host, options.port)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
