"""The short way past ASGI's messages puts the same bytes on the wire, and stays out of what it does not know."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from gateway.uvicorn_fast_path import EXTENSION, FastPath
from tests.fakes.served_app import served
from tests.garbage import freed_without_collection

HEADERS = [(b"content-type", b"application/json"), (b"x-request-id", b"1"), (b"content-length", b"4")]
BROKEN = (b"x-broken", b"a\r\nset-cookie: b=c")


class App:
    """Takes the short way where it is open; says how it went."""

    def __init__(self) -> None:
        self.uses_fast_path = True
        self.headers = HEADERS
        self.bodies: list[bytes | None] = []
        self.answered: list[bool] = []
        self.received: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        fast_path: FastPath = scope["extensions"][EXTENSION]
        body = fast_path.take_body() if self.uses_fast_path else None
        self.bodies.append(body)
        while body is None:
            message = await receive()
            self.received.append(message)
            body = None if message.get("more_body") else b""
        if self.uses_fast_path:
            self.answered.append(fast_path.send_response(200, self.headers, b"done"))
            if self.answered[-1]:
                assert not fast_path.send_response(200, self.headers, b"done"), "nothing is answered twice"
                self.received.append(await receive())
                return
        await send({"type": "http.response.start", "status": 200, "headers": self.headers})
        await send({"type": "http.response.body", "body": b"done"})


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
async def port(app: App) -> AsyncIterator[int]:
    async with served(app, date_header=False) as port:
        yield port


def request(*, method: bytes = b"POST", more: bytes = b"", body: bytes = b"{}") -> bytes:
    head = b"%b / HTTP/1.1\r\nHost: x\r\n%bContent-Length: %d\r\n\r\n"
    return head % (method, more, len(body)) + body


async def said(port: int, *parts: bytes) -> bytes:
    """All that the server says until it closes: the last part asks for that."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for part in parts:
        writer.write(part)
        await asyncio.sleep(0.05)
    async with asyncio.timeout(60):
        answer = await reader.read()
    writer.close()
    return answer


LAST = request(more=b"Connection: close\r\n")


async def test_the_same_bytes_as_the_servers_own_way(app: App, port: int) -> None:
    short = await said(port, request(), LAST)
    assert app.bodies == [b"{}", b"{}"]
    assert app.answered == [True, False], "the last one closes the connection, which is the server's affair"
    assert app.received == [{"type": "http.disconnect"}], "whoever listens on learns that the answer is complete"
    app.uses_fast_path = False
    assert await said(port, request(), LAST) == short
    assert short.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert short.count(b"\r\n\r\ndone") == 2


async def test_pipelined_requests_are_answered_in_order(app: App, port: int) -> None:
    answer = await said(port, request() + request() + LAST)
    assert answer.count(b"done") == 3


async def test_a_body_that_has_not_come_is_waited_for(app: App, port: int) -> None:
    fast_path = request(body=b"[1, 2]")
    answer = await said(port, fast_path[:-3], fast_path[-3:], LAST)
    assert app.bodies[0] is None
    assert answer.count(b"done") == 2


async def test_a_client_that_waits_to_send_gets_100_continue(app: App, port: int) -> None:
    fast_path = request(more=b"Expect: 100-continue\r\n")
    answer = await said(port, fast_path[:-2], fast_path[-2:], LAST)
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


async def test_head_is_left_to_the_server(app: App, port: int) -> None:
    answer = await said(port, request(method=b"HEAD", body=b""), LAST)
    assert app.answered == [False, False]
    assert answer.count(b"done") == 1


async def test_a_line_break_in_a_header_never_leaves(app: App, port: int) -> None:
    app.headers = [*HEADERS, BROKEN]
    answer = await said(port, request(), LAST)
    assert app.answered == [False], "the server gave the connection up"
    assert answer == b""


async def test_an_answered_request_is_gone_without_garbage_collection(app: App, port: int) -> None:
    with freed_without_collection(FastPath, RequestResponseCycle):
        for uses_fast_path in (True, False):
            app.uses_fast_path = uses_fast_path
            await said(port, request() + request() + LAST)
        await asyncio.sleep(0)
