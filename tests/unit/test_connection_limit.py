"""The limit of connections, the share of an address, and the answer past the limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway import connection_limit, http_protocol
from gateway.asgi import application
from gateway.connection_limit import ConnectionLimit, ConnectionSlot
from tests.fakes.served_app import served


def limit_of(total: int, of_address: int) -> ConnectionLimit:
    made = ConnectionLimit()
    made.configure(total=total, of_address=of_address, is_proxy=lambda peer: peer == "proxy")
    return made


def test_one_address_has_its_share_and_a_proxy_all() -> None:
    tried = limit_of(4, 2)
    assert [tried.acquire("a") for _ in range(3)] == [
        ConnectionSlot.REGULAR,
        ConnectionSlot.REGULAR,
        ConnectionSlot.RESERVED,
    ]
    assert [tried.acquire("proxy") for _ in range(3)] == [
        ConnectionSlot.REGULAR,
        ConnectionSlot.REGULAR,
        ConnectionSlot.RESERVED,
    ]
    assert tried.acquire("b") is ConnectionSlot.RESERVED, "all are taken"
    tried.release("a", ConnectionSlot.REGULAR)
    assert tried.acquire("b") is ConnectionSlot.REGULAR


def test_the_reserve_has_an_end_for_one_and_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limit, "RESERVE", 3)
    monkeypatch.setattr(connection_limit, "RESERVE_OF_ADDRESS", 2)
    tried = limit_of(0, 0)
    assert [tried.acquire("a") for _ in range(3)] == [
        ConnectionSlot.RESERVED,
        ConnectionSlot.RESERVED,
        ConnectionSlot.NONE,
    ]
    assert [tried.acquire(peer) for peer in ("b", "c")] == [ConnectionSlot.RESERVED, ConnectionSlot.NONE]
    for peer, slot in (
        ("a", ConnectionSlot.RESERVED),
        ("a", ConnectionSlot.RESERVED),
        ("a", ConnectionSlot.NONE),
        ("b", ConnectionSlot.RESERVED),
    ):
        tried.release(peer, slot)
    assert tried._open[ConnectionSlot.RESERVED] == {}
    assert tried._count == {ConnectionSlot.REGULAR: 0, ConnectionSlot.RESERVED: 0}


@pytest.fixture
async def port(db: None, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """A server with room for two connections, and two in reserve."""
    monkeypatch.setattr(connection_limit, "RESERVE", 2)
    monkeypatch.setattr(http_protocol, "limit", limit_of(2, 2))
    async with served(application) as port:
        yield port


async def counted(connections: int) -> None:
    """The server knows of so many."""
    async with asyncio.timeout(60):
        while sum(http_protocol.limit._count.values()) != connections:
            await asyncio.sleep(0.01)


async def said(port: int, *parts: bytes) -> bytes:
    """All that the server says until it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.writelines(parts)
        async with asyncio.timeout(60):
            return await reader.read()
    finally:
        writer.close()


def request(path: str, **headers: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: testserver", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


async def test_past_the_limit_probes_are_answered_and_others_are_503(port: int) -> None:
    taken = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
    await counted(2)
    health = await said(port, request("/health"))
    assert b"200 OK" in health
    assert b"connection: close" in health.lower()
    for path, shape in (("/v1/mcp", b'"error_description"'), ("/v1/x/cli", b'{"error":"Too many'), ("/", b'"message"')):
        answer = await said(port, request(path))
        assert answer.startswith(b"HTTP/1.1 503"), path
        assert b"retry-after: 2" in answer.lower()
        assert shape in answer
    reserved = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
    await counted(4)
    assert await said(port) == http_protocol.OVERLOADED, "not even a head is read"
    for _, writer in (*taken, *reserved):
        writer.close()
        await writer.wait_closed()
    await counted(0)
    assert b"200 OK" in await said(port, request("/health", Connection="close"))


async def test_a_silent_connection_in_reserve_is_given_up_soon(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "limit", limit_of(0, 0))
    monkeypatch.setattr(http_protocol, "RESERVED_HEAD_TIMEOUT_S", 0.05)
    assert await said(port) == b""
    assert b"408" in await said(port, b"GET /health HTTP/1.1\r\n")


def test_the_bound_comes_from_the_settings(settings: Any) -> None:
    assert connection_limit.limit._total is not None
    assert connection_limit.limit._total <= settings.CONNECTIONS_PER_PROCESS
    assert 0 < connection_limit.limit._of_address <= settings.CONNECTIONS_PER_ADDRESS
