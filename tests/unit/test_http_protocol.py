"""A connection may send so much, for so long, before a request is whole, and no more."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway import http_protocol
from tests.fakes.served_app import served

START = b"GET / HTTP/1.1\r\nHost: x\r\n"


HEADERS_SEEN: list[dict[bytes, bytes]] = []


ENDED: list[str] = []
LARGE = b"x" * 20_000_000


async def answers(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/waits":
        while (await receive()).get("more_body"):
            pass
    elif scope["path"] == "/until-they-leave":
        while (await receive())["type"] != "http.disconnect":
            pass
        ENDED.append(scope["query_string"].decode())
        return
    elif scope["path"] == "/large":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"20000000")]})
        await send({"type": "http.response.body", "body": LARGE})
        return
    elif scope["path"] != "/at-once":
        await asyncio.sleep(0.1)  # longer than the deadline of a slow answer below
    HEADERS_SEEN.append(dict(scope["headers"]))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """A server with the protocol, as the command line names it."""
    async with served(answers, timeout_keep_alive=1) as port:
        yield port


async def said(port: int, *parts: bytes, pause_s: float = 0.02) -> bytes:
    """All that the server says to a client that sends `parts` and never closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause_s)
        async with asyncio.timeout(60):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_requests_are_answered_on_one_connection(port: int) -> None:
    whole = START + b"X-A: " + b"a" * 60_000 + b"\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for request in (whole, whole[:20], whole[20:]):
        writer.write(request)
        await asyncio.sleep(0.02)
    writer.write(START + b"Connection: close\r\n\r\n")
    async with asyncio.timeout(60):
        assert (await reader.read()).count(b"200 OK") == 3
    writer.close()


@pytest.mark.parametrize("part", [b"a" * 16_384, b"b\r\nX-B: " * 2_000], ids=["one long header", "many headers"])
async def test_headers_without_end_are_431(port: int, part: bytes) -> None:
    answer = await said(port, START + b"X-A: ", *[part] * 8)
    assert answer in (
        b"",
        b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    )


@pytest.mark.parametrize(
    ("parts", "status"),
    [((), b""), ((START,), b"408"), ((START, b"X-A: "), b"408"), ((START + b"\r\n" + START,), b"200 OK")],
    ids=["nothing", "a part", "a part and more", "a request and a part"],
)
async def test_a_head_that_is_never_whole_is_given_up(
    port: int, parts: tuple[bytes, ...], status: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_S", 0.5)
    answer = await said(port, *parts)
    assert status in answer


async def test_a_slow_answer_is_no_slow_head(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_S", 0.05)
    assert b"200 OK" in await said(port, START + b"Connection: close\r\n\r\n")


@pytest.mark.parametrize(
    "rest",
    [b"\r\n", b"\r\n\r\n\r\n"],
    ids=["an empty line", "several"],
)
async def test_what_begins_no_request_keeps_no_connection_open(
    port: int, monkeypatch: pytest.MonkeyPatch, rest: bytes
) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_S", 1.5)
    answer = await said(port, START + b"\r\n", rest, pause_s=0.2)
    assert answer.count(b"200 OK") == 1, "and the server closed it: otherwise this would have timed out"
    answer = await said(port, START + b"\r\n", rest, START + b"\r\n", pause_s=0.2)
    assert answer.count(b"200 OK") == 2, "a request that comes in time is answered"


CHUNKED = b"POST %b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"


@pytest.mark.parametrize("path", [b"/waits", b"/at-once"])
async def test_trailers_are_no_headers(port: int, path: bytes) -> None:
    HEADERS_SEEN.clear()
    whole = CHUNKED % path + b"Authorization: Bearer x\r\nHost: y\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n"
    answer = await said(port, whole, START + b"Connection: close\r\n\r\n")
    assert answer.count(b"200 OK") == 2
    assert HEADERS_SEEN[0] == {b"host": b"x", b"transfer-encoding": b"chunked"}
    assert HEADERS_SEEN[1] == {b"host": b"x", b"connection": b"close"}


@pytest.mark.parametrize("path", [b"/waits", b"/at-once"])
@pytest.mark.parametrize("part", [b"a" * 16_384, b"A: b\r\n" * 3_000], ids=["one long trailer", "many trailers"])
async def test_trailers_without_end_close_the_connection(port: int, path: bytes, part: bytes) -> None:
    answer = await said(port, CHUNKED % path + b"A: ", *[part] * 8)
    assert answer.count(b"200 OK") == (path == b"/at-once") or answer == b"", "and nothing waits for more"


async def test_a_body_that_is_not_read_keeps_no_connection_open(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_S", 0.3)
    head = b"POST /at-once HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
    assert (await said(port, head, b"a", b"b", pause_s=0.1)).count(b"200 OK") == 1


async def test_a_long_head_and_a_long_body_are_both_taken(port: int) -> None:
    head = b"POST /waits HTTP/1.1\r\nHost: x\r\nX-A: %b\r\nConnection: close\r\nContent-Length: 300000\r\n\r\n"
    answer = await said(port, head % (b"a" * 60_000), *[b"b" * 30_000] * 10)
    assert answer.count(b"200 OK") == 1


async def test_who_closes_ends_all_that_was_asked_at_once(port: int) -> None:
    ENDED.clear()
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"".join(b"GET /until-they-leave?%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in range(2)))
    await writer.drain()
    await asyncio.sleep(0.05)
    writer.close()
    async with asyncio.timeout(60):
        while not ENDED:
            await asyncio.sleep(0.01)
    assert ENDED == ["0"], "and the one behind it never ran, or ended too"


async def test_who_reads_nothing_of_a_large_answer_is_given_up(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "UNREAD_TIMEOUT_S", 0.2)
    with socket.create_connection(("127.0.0.1", port)) as client:
        # Smaller, and reading what the kernel has from before the end would take minutes.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 128 * 1024)
        await asyncio.to_thread(client.sendall, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.sleep(0.5)
        client.settimeout(5)

        def rest() -> int:
            size = 0
            try:
                while part := client.recv(1_000_000):
                    size += len(part)
            except ConnectionError:
                return size
            return size

        assert await asyncio.to_thread(rest) < len(LARGE), "the connection was ended, and what was left forgotten"


async def test_who_reads_slowly_gets_all_of_it(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "UNREAD_TIMEOUT_S", 5.0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=65_536)
    writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    size = 0
    while part := await reader.read(2_000_000):
        size += len(part)
    assert size > len(LARGE)
    writer.close()


@pytest.mark.parametrize("protocol", [b"websocket", b"h2c", b"x" * 1_000])
async def test_an_offer_to_change_the_protocol_writes_no_log(
    port: int, protocol: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    offer = b"Connection: Upgrade, close\r\nUpgrade: " + protocol + b"\r\n\r\n"
    assert (await said(port, START + offer)).count(b"200 OK") == 1
    assert [each.message for each in caplog.records if each.name == "uvicorn.error"] == []


async def test_bodies_that_nothing_asks_for_have_a_bound_in_all(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "BUFFERED_BYTES", 300_000)
    monkeypatch.setattr(http_protocol.buffered, "bytes", 0)
    head = b"POST %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    large = head % (b"/", 200_000) + b"x" * 200_000
    small = head % (b"/waits", 60_000) + b"x" * 60_000
    refused: list[bytes] = []
    refuse = http_protocol.BoundedHttpProtocol._refuse

    def noting(connection: http_protocol.BoundedHttpProtocol, status: bytes) -> None:
        refused.append(status)
        refuse(connection, status)

    monkeypatch.setattr(http_protocol.BoundedHttpProtocol, "_refuse", noting)
    many = [asyncio.ensure_future(said(port, large)) for _ in range(16)]
    assert b"200 OK" in await said(port, small), "small ones are read all the same"
    await asyncio.gather(*many)
    assert 0 < len(refused) < len(many)
    assert set(refused) == {b"503 Service Unavailable\r\nretry-after: 2"}
    refused.clear()
    await said(port, large)
    assert refused == [], "and large ones again afterwards"
