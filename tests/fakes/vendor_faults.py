"""Faults of a hostile vendor, one function for each row of the fault matrix."""

from __future__ import annotations

import asyncio
import gzip
import json
import struct
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fakes.hostile_vendor import HostileVendor

MIB = 1024 * 1024
FOR_EVER_S = 3600.0


@dataclass
class VendorRequest:
    """One request and the way to answer it as one likes."""

    vendor: HostileVendor
    writer: asyncio.StreamWriter
    body: dict[str, Any]

    @property
    def id(self) -> Any:
        """The request's own id."""
        return self.body.get("id")

    def result(self, **more: Any) -> dict[str, Any]:
        """A proper response, with members changed."""
        return {"jsonrpc": "2.0", "id": self.id, "result": {"content": [{"type": "text", "text": "fine"}]}, **more}

    async def send(self, *parts: bytes, pause_s: float = 0.0) -> None:
        """Bytes on the wire; each part waits until the gateway takes it."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            await asyncio.sleep(pause_s)

    async def reply(
        self, body: bytes, *, status: str = "200 OK", kind: str = "application/json", more: str = ""
    ) -> None:
        """A whole HTTP answer."""
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
        await self.send(head.encode("latin-1") + body)

    async def say(self, message: object, **options: Any) -> None:
        """A whole HTTP answer with this JSON."""
        await self.reply(json.dumps(message).encode(), **options)

    async def begin(self, kind: str = "application/json", *, more: str = "") -> None:
        """The head of a chunked answer."""
        await self.send(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n{more}\r\n".encode())

    async def chunk(self, data: bytes) -> None:
        """One chunk; an empty one is the end."""
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def events(self, *messages: object) -> None:
        """Events of a stream that has begun."""
        await self.chunk(b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in messages))


Fault = Callable[[VendorRequest], Awaitable[None]]
FAULTS: dict[str, Fault] = {}


def fault(function: Fault) -> Fault:
    """Enter a fault into the table under its name."""
    FAULTS[function.__name__] = function
    return function


# --- no answer, or not all of it --------------------------------------------------------------------------------------


@fault
async def closes_at_once(request: VendorRequest) -> None:
    request.writer.close()


@fault
async def resets(request: VendorRequest) -> None:
    request.writer.transport.abort()


@fault
async def never_answers(request: VendorRequest) -> None:
    await asyncio.sleep(FOR_EVER_S)


@fault
async def half_a_head(request: VendorRequest) -> None:
    await request.send(b"HTTP/1.1 200 OK\r\nContent-Le")
    await asyncio.sleep(FOR_EVER_S)


@fault
async def half_a_body(request: VendorRequest) -> None:
    await request.send(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"jsonrpc":')
    await asyncio.sleep(FOR_EVER_S)


@fault
async def dies_in_the_body(request: VendorRequest) -> None:
    await request.send(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"jsonrpc":')
    request.writer.close()


@fault
async def drips(request: VendorRequest) -> None:
    await request.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        await request.send(b" ", pause_s=0.05)


@fault
async def only_comments(request: VendorRequest) -> None:
    await request.begin("text/event-stream")
    while True:
        await request.chunk(b": still here\n\n")
        await asyncio.sleep(0.05)


@fault
async def a_stream_that_says_nothing(request: VendorRequest) -> None:
    await request.begin("text/event-stream")
    await asyncio.sleep(FOR_EVER_S)


@fault
async def a_stream_that_ends(request: VendorRequest) -> None:
    await request.begin("text/event-stream")
    await request.events({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
    await request.chunk(b"")


@fault
async def interim_answers_for_ever(request: VendorRequest) -> None:
    while True:
        await request.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


# --- not what was agreed ----------------------------------------------------------------------------------------------


@fault
async def no_http(request: VendorRequest) -> None:
    await request.send(b"SSH-2.0-OpenSSH_9.6\r\n")


@fault
async def html(request: VendorRequest) -> None:
    await request.reply(b"<html><script>alert(1)</script>maintenance</html>", kind="text/html")


@fault
async def a_picture(request: VendorRequest) -> None:
    await request.reply(b"\x89PNG\r\n\x1a\n" + bytes(range(256)), kind="image/png")


@fault
async def broken_json(request: VendorRequest) -> None:
    await request.reply(json.dumps(request.result()).encode()[:-5])


@fault
async def nothing_at_all(request: VendorRequest) -> None:
    await request.reply(b"")


@fault
async def no_content(request: VendorRequest) -> None:
    await request.send(b"HTTP/1.1 204 No Content\r\n\r\n")


@fault
async def another_json_rpc(request: VendorRequest) -> None:
    await request.say(request.result(jsonrpc="1.0"))


@fault
async def a_wrong_id(request: VendorRequest) -> None:
    await request.say(request.result(id=987_654))


@fault
async def an_id_of_another_type(request: VendorRequest) -> None:
    await request.say(request.result(id=str(request.id)))


@fault
async def an_error_for_nobody(request: VendorRequest) -> None:
    await request.say({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "bad"}})


@fault
async def a_result_that_is_a_list(request: VendorRequest) -> None:
    await request.say(request.result(result=[1, 2, 3]))


@fault
async def neither_result_nor_error(request: VendorRequest) -> None:
    await request.say({"jsonrpc": "2.0", "id": request.id})


@fault
async def a_batch(request: VendorRequest) -> None:
    await request.say([request.result()])


@fault
async def no_utf_8(request: VendorRequest) -> None:
    await request.reply(json.dumps(request.result()).encode().replace(b"fine", b"\xff\xfe\xc3"))


@fault
async def deep_json(request: VendorRequest) -> None:
    deep = b'{"jsonrpc":"2.0","id":%d,"result":{"content":%b%b}}' % (request.id, b"[" * 100_000, b"]" * 100_000)
    await request.reply(deep)


@fault
async def two_lengths(request: VendorRequest) -> None:
    await request.reply(json.dumps(request.result()).encode(), more="Content-Length: 3\r\n")


@fault
async def another_coding(request: VendorRequest) -> None:
    await request.reply(json.dumps(request.result()).encode(), more="Content-Encoding: br\r\n")


@fault
async def half_a_gzip(request: VendorRequest) -> None:
    await request.reply(gzip.compress(json.dumps(request.result()).encode())[:-9], more="Content-Encoding: gzip\r\n")


# --- too much ---------------------------------------------------------------------------------------------------------


@fault
async def a_huge_length(request: VendorRequest) -> None:
    await request.send(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{")
    await asyncio.sleep(FOR_EVER_S)


@fault
async def an_endless_body(request: VendorRequest) -> None:
    await request.begin()
    await request.chunk(b'{"jsonrpc":"2.0","result":{"text":"')
    while True:
        await request.chunk(b"x" * 65_536)


@cache
def gzip_bomb() -> bytes:
    """64 MiB of one letter in 0.1 MiB.

    One MiB is compressed and repeated: the fake vendor shares its event loop with the gateway, and the tests of these
    faults measure the memory they take.
    """
    piece = b"x" * MIB
    packer = zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS)
    packed = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)  # refers to nothing before it
    checksum = 0
    for _ in range(64):
        checksum = zlib.crc32(piece, checksum)
    head = b"\x1f\x8b\x08" + bytes(7)
    end = zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS).flush()
    return head + packed * 64 + end + struct.pack("<II", checksum, 64 * MIB)


@fault
async def a_gzip_bomb(request: VendorRequest) -> None:
    await request.reply(gzip_bomb(), more="Content-Encoding: gzip\r\n")


@fault
async def an_endless_event(request: VendorRequest) -> None:
    await request.begin("text/event-stream")
    await request.chunk(b"data: ")
    while True:
        await request.chunk(b"x" * 65_536)


@fault
async def a_flood_of_events(request: VendorRequest) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 100}}
    flood = b"data: " + json.dumps(note).encode() + b"\n\n"
    await request.begin("text/event-stream")
    while True:
        await request.chunk(flood * 400)


@fault
async def a_flood_of_empty_lines(request: VendorRequest) -> None:
    await request.begin("text/event-stream")
    while True:
        await request.chunk(b"\n" * 65_536)


@fault
async def tiny_chunks(request: VendorRequest) -> None:
    await request.begin()
    while True:
        await request.send(b"1\r\n \r\n" * 10_000)


@fault
async def endless_headers(request: VendorRequest) -> None:
    await request.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await request.send(b"X-More: " + b"x" * 1_000 + b"\r\n")


# --- a status of its own ----------------------------------------------------------------------------------------------


def _status(status: str, more: str = "") -> Fault:
    async def answer(request: VendorRequest) -> None:
        await request.reply(b'{"error":"secret internals of the vendor"}', status=status, more=more)

    return answer


FAULTS |= {
    "says_401": _status("401 Unauthorized", "WWW-Authenticate: Bearer\r\n"),
    "says_403": _status("403 Forbidden"),
    "says_429": _status("429 Too Many Requests", "Retry-After: 7\r\n"),
    "says_429_in_other_digits": _status("429 Too Many Requests", "Retry-After: \xb2\r\n"),
    "says_429_for_ever": _status("429 Too Many Requests", f"Retry-After: {'9' * 5_000}\r\n"),
    "says_429_until_a_date": _status("429 Too Many Requests", "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n"),
    "says_500": _status("500 Internal Server Error"),
    "says_503": _status("503 Service Unavailable"),
    "says_418": _status("418 I'm a teapot"),
    "redirects": _status("307 Temporary Redirect", "Location: http://127.0.0.1:9/elsewhere\r\n"),
    "says_101": _status("101 Switching Protocols", "Upgrade: websocket\r\n"),
    "says_600": _status("600 What"),
}


# --- odd, but good ----------------------------------------------------------------------------------------------------


@fault
async def answers_twice(request: VendorRequest) -> None:
    await request.begin("text/event-stream")
    await request.events(request.result(), request.result(result={"content": [{"type": "text", "text": "second"}]}))
    await request.chunk(b"")


@fault
async def answers_others_first(request: VendorRequest) -> None:
    await request.begin("text/event-stream")
    await request.events(request.result(id=request.id + 1), request.result(id="x"), request.result())
    await request.chunk(b"")


@fault
async def asks_first(request: VendorRequest) -> None:
    await request.begin("text/event-stream")
    questions = ("roots/list", "sampling/createMessage", "elicitation/create", "ping")
    await request.events(*({"jsonrpc": "2.0", "id": f"q{name}", "method": name} for name in questions))
    while len(request.vendor.refusals) < len(questions):
        await asyncio.sleep(0.005)
    await request.events(request.result())
    await request.chunk(b"")


@fault
async def plain_text(request: VendorRequest) -> None:
    await request.say(request.result(), kind="text/plain")
