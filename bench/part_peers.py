"""The other ends of `bench.parts`, each in a process of its own: a server that answers at once, and a load of requests.

python -m bench.part_peers serve                 # prints its port
python -m bench.part_peers load PORT SECONDS     # prints the number of answers
"""

from __future__ import annotations

import asyncio
import sys

import uvloop

ANSWER = b'{"jsonrpc": "2.0", "id": 1, "result": {"text": "' + b"x" * 900 + b'"}}'
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER)
BODY = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list"}}'
REQUEST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
    len(BODY),
    BODY,
)
CONNECTIONS = 16


class Responder(asyncio.Protocol):
    """Answers each request that ends with the bench's body."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._received.endswith(BODY):
            self._received = b""
            self._transport.write(RESPONSE)  # type: ignore[attr-defined]


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Responder, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


async def load(port: int, seconds: float) -> int:
    """The number of requests that were answered within `seconds` on CONNECTIONS connections."""
    loop = asyncio.get_running_loop()
    ends_at_s = loop.time() + seconds

    async def one() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answered = 0
        while loop.time() < ends_at_s:
            writer.write(REQUEST)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            answered += 1
        writer.close()
        return answered

    return sum(await asyncio.gather(*[one() for _ in range(CONNECTIONS)]))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        uvloop.run(serve())
    else:
        sys.stdout.write(f"{uvloop.run(load(int(sys.argv[2]), float(sys.argv[3])))}\n")
