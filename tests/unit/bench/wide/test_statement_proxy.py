"""The proxy that counts: bytes pass as they are, and encryption is declined."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bench.wide.statement_proxy import HOST, ClientSide
from bench.wide.statements import StatementCounts
from tests.unit.bench.wide.test_statements import START_UP, message

SSL_REQUEST = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")


class Echo:
    """A server that sends back what it gets."""

    def __init__(self) -> None:
        self.connections: set[asyncio.Task[None] | None] = set()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.add(asyncio.current_task())
        while data := await reader.read(1024):
            writer.write(data)
        await close(writer)


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    await writer.wait_closed()


@pytest.fixture
def counts() -> StatementCounts:
    return StatementCounts()


@pytest.fixture
async def port(counts: StatementCounts) -> AsyncIterator[int]:
    echo = Echo()
    server = await asyncio.start_server(echo, HOST, 0)
    address = (HOST, server.sockets[0].getsockname()[1])
    proxy = await asyncio.get_running_loop().create_server(lambda: ClientSide(address, counts), HOST, 0)
    yield proxy.sockets[0].getsockname()[1]
    await asyncio.gather(*(task for task in echo.connections if task is not None))
    for each in (proxy, server):
        each.close()
        await each.wait_closed()


async def test_statements_are_counted_and_bytes_pass_unchanged(port: int, counts: StatementCounts) -> None:
    reader, writer = await asyncio.open_connection(HOST, port)
    sent = START_UP + message(b"Q", b"SELECT 1\0")
    writer.write(sent)
    assert await reader.readexactly(len(sent)) == sent
    assert counts.take() == {"SELECT 1": 1}
    await close(writer)


async def test_encryption_is_declined_and_the_start_up_follows(port: int, counts: StatementCounts) -> None:
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(SSL_REQUEST)
    assert await reader.readexactly(1) == b"N"
    writer.write(START_UP)
    assert await reader.readexactly(len(START_UP)) == START_UP
    assert counts.take() == {}
    await close(writer)


async def test_a_server_that_is_away_ends_the_connection(counts: StatementCounts) -> None:
    gone = await asyncio.start_server(Echo(), HOST, 0)
    address = (HOST, gone.sockets[0].getsockname()[1])
    gone.close()
    await gone.wait_closed()
    proxy = await asyncio.get_running_loop().create_server(lambda: ClientSide(address, counts), HOST, 0)
    reader, writer = await asyncio.open_connection(HOST, proxy.sockets[0].getsockname()[1])
    assert await reader.read() == b""
    await close(writer)
    proxy.close()
    await proxy.wait_closed()
