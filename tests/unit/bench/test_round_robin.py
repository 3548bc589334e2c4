"""The proxy before several processes: shares, whole requests, and what becomes of a broken answer."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from itertools import islice

import pytest

from bench.round_robin import HOST, Front, Ring, rounds


def test_each_round_has_every_process_once() -> None:
    chosen = list(islice(rounds([1, 2, 3], random.Random(1)), 30))
    assert all(sorted(chosen[start : start + 3]) == [1, 2, 3] for start in range(0, 30, 3))
    assert len({tuple(chosen[start : start + 3]) for start in range(0, 30, 3)}) > 1


class Backend:
    """A server that answers with its name, or hangs up."""

    def __init__(self, name: bytes) -> None:
        self.name, self.hangs_up = name, False
        self.count = 0
        self.connections: set[asyncio.Task[None] | None] = set()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.add(asyncio.current_task())
        while await reader.readline():
            await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(4)
            self.count += 1
            if self.hangs_up:
                break
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + self.name + body)
        await close(writer)


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    await writer.wait_closed()


@pytest.fixture
async def backends() -> list[Backend]:
    return [Backend(b"a"), Backend(b"b")]


@pytest.fixture
async def proxy_port(backends: list[Backend]) -> AsyncIterator[int]:
    servers = [await asyncio.start_server(one, HOST, 0) for one in backends]
    ring = Ring([server.sockets[0].getsockname()[1] for server in servers], random.Random(1))
    proxy = await asyncio.get_running_loop().create_server(lambda: Front(ring), HOST, 0)
    yield proxy.sockets[0].getsockname()[1]
    ring.close()
    for server in [proxy, *servers]:
        server.close()
    await asyncio.gather(*(task for one in backends for task in one.connections if task is not None))


async def test_requests_of_one_connection_are_shared_out(backends: list[Backend], proxy_port: int) -> None:
    reader, writer = await asyncio.open_connection(HOST, proxy_port)
    answered: Counter[bytes] = Counter()
    for _ in range(6):
        # In two pieces: a request is passed on when it is whole.
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbo")
        await writer.drain()
        writer.write(b"dy")
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        body = await reader.readexactly(5)
        assert body[1:] == b"body"
        answered[body[:1]] += 1
    await close(writer)
    assert answered == {b"a": 3, b"b": 3}
    assert [one.count for one in backends] == [3, 3]


async def test_a_process_that_hangs_up_ends_the_clients_connection(backends: list[Backend], proxy_port: int) -> None:
    for one in backends:
        one.hangs_up = True
    reader, writer = await asyncio.open_connection(HOST, proxy_port)
    writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
    assert await reader.read() == b""
    await close(writer)
    assert sum(one.count for one in backends) == 1
