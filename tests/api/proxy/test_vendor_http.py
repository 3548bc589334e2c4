"""The HTTP client towards vendors, against peers that behave well, badly and with intent."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator

import pytest

from proxy.outcomes import VendorFault
from proxy.vendors import fair_scheduler
from proxy.vendors.errors import VendorProblem
from proxy.vendors.http1 import Connection, Limits
from proxy.vendors.response import VendorResponse
from proxy.vendors.transport import VendorTransport
from tests.api.proxy.traces import until
from tests.api.proxy.vendor_requests import slots_taken
from tests.factories.vendor_pools import new_transport
from tests.fakes.raw_vendor import OK, RawVendor, Script, raw_vendor, says
from tests.garbage import freed_without_collection

LIMITS = Limits(connect_s=5.0, chunk_s=0.3, body_bytes=100_000)
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


@pytest.fixture
async def transport() -> AsyncIterator[VendorTransport]:
    """A transport with small limits."""
    made = new_transport(limits=LIMITS)
    yield made
    await made.aclose()


async def ask(transport: VendorTransport, vendor: RawVendor, *, within_s: float = 2.0, body: bytes = b"{}") -> bytes:
    """The body of one POST."""
    deadline = asyncio.get_running_loop().time() + within_s
    async with transport.request("POST", vendor.url, {"X-Key": "k"}, body, deadline=deadline) as answer:
        return await answer.body()


async def fault_of(transport: VendorTransport, script: Script, *, within_s: float = 2.0) -> VendorProblem:
    """How one POST fails, and that the connection is not used again."""
    async with raw_vendor(script) as vendor:
        with pytest.raises(VendorProblem) as caught:
            await ask(transport, vendor, within_s=within_s)
        assert len(vendor.requests) == 1, "nothing is ever sent twice"
        assert kept(transport) == 0
    return caught.value


def kept(transport: VendorTransport) -> int:
    return sum(len(each._idle) for each in transport._by_origin.values())


def is_unused(transport: VendorTransport) -> bool:
    return all(each.is_unused for each in transport._by_origin.values())


async def test_a_request_is_what_was_asked_for(transport: VendorTransport) -> None:
    async with raw_vendor(says(OK)) as vendor:
        assert await ask(transport, vendor, body=b'{"a":1}') == b"{}"
        assert vendor.requests == [
            b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept-Encoding: gzip\r\nX-Key: k\r\n"
            b'Content-Length: 7\r\n\r\n{"a":1}' % vendor.port
        ]
        deadline = asyncio.get_running_loop().time() + 1
        async with transport.request("DELETE", vendor.url + "?a=b c", {}, None, deadline=deadline) as answer:
            assert answer.status == 200
        assert vendor.requests[1].startswith(b"DELETE /mcp?a=b%20c HTTP/1.1\r\n")
        assert b"Content-Length" not in vendor.requests[1]
        assert vendor.connections == 1, "the connection is used again"


@pytest.mark.parametrize(
    "parts",
    [
        (JSON + b"Content-Length: 4\r\n\r\nbody",),
        tuple(bytes([one]) for one in JSON + b"Content-Length: 4\r\n\r\nbody"),
        (JSON + b"Transfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n", b"2;x=y\r\nd", b"y\r\n0\r\nTrailer: t\r\n\r\n"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + JSON + b"Content-Length: 4\r\n\r\nbody",),
        (
            b"HTTP/1.1 102 Processing\r\nX: y\r\n\r\n",
            b"HTTP/1.1 103 Early\r\n\r\n",
            JSON + b"Content-Length: 4\r\n\r\nbody",
        ),
        (
            JSON + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n18\r\n",
            gzip.compress(b"body"),
            b"\r\n0\r\n\r\n",
        ),
        (JSON + b"Content-Encoding: identity\r\nContent-Length: 4\r\n\r\nbody",),
    ],
    ids=["whole", "byte by byte", "chunked", "100", "102 and 103", "gzip", "identity"],
)
async def test_forms_of_a_proper_answer(transport: VendorTransport, parts: tuple[bytes, ...]) -> None:
    async with raw_vendor(says(*parts)) as vendor:
        assert [await ask(transport, vendor), await ask(transport, vendor)] == [b"body", b"body"]
        assert (vendor.connections, len(vendor.requests)) == (1, 2)


@pytest.mark.parametrize(
    "head",
    [
        JSON + b"Connection: close\r\nContent-Length: 4\r\n\r\n",
        JSON + b"\r\n",
        b"HTTP/1.0 200 OK\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\n",
    ],
    ids=["connection: close", "until the end", "1.0 until the end", "1.0 with length"],
)
async def test_answers_after_which_the_connection_is_gone(transport: VendorTransport, head: bytes) -> None:
    async with raw_vendor(says(head + b"body", then_close=True)) as vendor:
        assert [await ask(transport, vendor), await ask(transport, vendor)] == [b"body", b"body"]
        assert vendor.connections == 2


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified", b"202 Accepted"])
async def test_answers_without_a_body(transport: VendorTransport, status: bytes) -> None:
    length = b"Content-Length: 0\r\n" if status.startswith(b"202") else b""
    async with raw_vendor(says(b"HTTP/1.1 " + status + b"\r\n" + length + b"\r\n")) as vendor:
        assert await ask(transport, vendor) == b""
        assert kept(transport) == 1


BAD_ANSWERS = {
    "html": b"<html>\r\n\r\n",
    "other protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "http/2": b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "http/0.9": b"HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n",
    "no such status": b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
    "status zero": b"HTTP/1.1 000 Odd\r\nContent-Length: 0\r\n\r\n",
    "bare line feeds": b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    "folded header": JSON + b"A: b\r\n c\r\nContent-Length: 0\r\n\r\n",
    "space before the colon": JSON + b"Content-Length : 0\r\n\r\n",
    "nul in a header": JSON + b"A: \0\r\nContent-Length: 0\r\n\r\n",
    "two lengths": JSON + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "equal lengths": JSON + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "length and chunks": JSON + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": JSON + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
    "negative length": JSON + b"Content-Length: -1\r\n\r\n",
    "length of words": JSON + b"Content-Length: two\r\n\r\n",
    "length beyond all bounds": JSON + b"Content-Length: 99999999999999999999999\r\n\r\n",
    "too large by its own word": JSON + b"Content-Length: 100001\r\n\r\n",
    "gzip as transfer coding": JSON + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunks in http/1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bad chunk size": JSON + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "endless chunk size": JSON + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 17 + b"\r\n{}",
    "chunk longer than said": JSON + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
    "changed protocol": b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nxx",
    "content coding never offered": JSON + b"Content-Encoding: br\r\nContent-Length: 2\r\n\r\n{}",
    "two content codings": JSON + b"Content-Encoding: gzip\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n{}",
    "gzip that is none": JSON + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    "gzip cut off": JSON + b"Content-Encoding: gzip\r\nContent-Length: 10\r\n\r\n" + gzip.compress(b"{}")[:10],
    "something behind the gzip": JSON
    + b"Content-Encoding: gzip\r\nContent-Length: 24\r\n\r\n"
    + gzip.compress(b"{}")
    + b"xx",
    "large header": JSON + b"A: " + b"a" * 40_000 + b"\r\nContent-Length: 2\r\n\r\n{}",
    "many headers": JSON + b"A: b\r\n" * 8_000 + b"Content-Length: 2\r\n\r\n{}",
    "endless interim answers": b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000,
    "endless header": JSON + b"A: " + b"a" * 200_000,
    "endless chunk extension": JSON + b"Transfer-Encoding: chunked\r\n\r\n2;" + b"a" * 200_000,
    "endless trailer": JSON + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nA: " + b"a" * 900_000,
    "too large in chunks": JSON + b"Transfer-Encoding: chunked\r\n\r\n" + (b"2710\r\n" + b"a" * 10_000 + b"\r\n") * 11,
    "too large until the end": JSON + b"\r\n" + b"a" * 100_001,
}


@pytest.mark.parametrize("answer", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
async def test_an_unusable_answer_is_refused(transport: VendorTransport, answer: bytes) -> None:
    problem = await fault_of(transport, says(answer))
    assert problem.fault is VendorFault.BAD_RESPONSE
    assert "127.0.0.1" not in problem.detail


async def test_a_gzip_bomb_ends_at_the_cap(transport: VendorTransport) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    head = JSON + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    assert len(bomb) < LIMITS.body_bytes
    problem = await fault_of(transport, says(head, bomb))
    assert problem.detail == "The vendor sent an unusable response: it is too large."


async def test_raw_deflate_under_the_name_of_gzip_is_refused(transport: VendorTransport) -> None:
    body = zlib.compress(b"{}")
    head = JSON + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    assert (await fault_of(transport, says(head + body))).fault is VendorFault.BAD_RESPONSE


@pytest.mark.parametrize(
    ("sent", "fault"),
    [
        (b"", VendorFault.UNAVAILABLE),
        (b"HTTP/1.1 20", VendorFault.UNAVAILABLE),
        (JSON + b"Content-Length: 10\r\n\r\n{}", VendorFault.BAD_RESPONSE),
        (JSON + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", VendorFault.BAD_RESPONSE),
        (STREAM + b"Transfer-Encoding: chunked\r\n\r\n2\r\n: \r\n", VendorFault.BAD_RESPONSE),
    ],
    ids=["at once", "in the head", "short of its length", "between chunks", "in a stream"],
)
async def test_a_vendor_that_closes_early(transport: VendorTransport, sent: bytes, fault: VendorFault) -> None:
    assert (await fault_of(transport, says(sent, then_close=True))).fault is fault


@pytest.mark.parametrize(
    "parts",
    [
        (b"",),
        (b"HTTP/1.1 200",),
        (b"HTTP/1.1 100 Continue\r\n\r\n",),
        tuple(b"%c" % one for one in JSON * 100),
        (JSON + b"Content-Length: 10\r\n\r\n{}",),
        (JSON + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",),
        (STREAM + b"Transfer-Encoding: chunked\r\n\r\n", *[b"2\r\n:\n\r\n"] * 2_000),
    ],
    ids=[
        "silence",
        "half a head",
        "interim only",
        "drop by drop",
        "half a body",
        "half the chunks",
        "stream of comments",
    ],
)
async def test_nothing_outlasts_the_deadline(transport: VendorTransport, parts: tuple[bytes, ...]) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    problem = await fault_of(transport, says(*parts, pause_s=0.02), within_s=0.6)
    assert problem.fault is VendorFault.TIMEOUT
    assert loop.time() - began < 10


async def test_a_body_that_stops_is_given_up_before_the_deadline(transport: VendorTransport) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    problem = await fault_of(transport, says(JSON + b"Content-Length: 10\r\n\r\n{}"), within_s=30)
    assert problem.fault is VendorFault.TIMEOUT
    assert LIMITS.chunk_s <= loop.time() - began < 20


async def test_a_slow_body_that_goes_on_is_waited_for() -> None:
    transport = new_transport(limits=Limits(connect_s=5.0, chunk_s=1.5, body_bytes=100_000))
    parts = [JSON + b"Content-Length: 5\r\n\r\n", b"a", b"b", b"c", b"d", b"e"]
    async with raw_vendor(says(*parts, pause_s=0.4)) as vendor:
        assert await ask(transport, vendor, within_s=30) == b"abcde"
    await transport.aclose()


async def test_an_event_stream_may_be_silent_for_longer(transport: VendorTransport) -> None:
    parts = [STREAM + b"Transfer-Encoding: chunked\r\n\r\n", b"3\r\nabc\r\n0\r\n\r\n"]
    async with raw_vendor(says(*parts, pause_s=LIMITS.chunk_s * 2)) as vendor:
        assert await ask(transport, vendor, within_s=5) == b"abc"


@pytest.mark.parametrize("behind", [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", b"garbage", b"\0" * 5_000])
@pytest.mark.parametrize("pause_s", [0.0, 0.05], ids=["at once", "later"])
async def test_what_follows_an_answer_never_becomes_the_next_one(
    transport: VendorTransport, behind: bytes, pause_s: float
) -> None:
    parts = (OK + behind,) if not pause_s else (OK, b"", behind)
    async with raw_vendor(says(*parts, pause_s=pause_s)) as vendor:
        for _ in range(3):
            assert await ask(transport, vendor) == b"{}"
            await until(lambda: kept(transport) == 0)
        assert (vendor.connections, len(vendor.requests)) == (3, 3)


async def test_bytes_before_any_request_are_not_its_answer(transport: VendorTransport) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        await reader.read(10_000)
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        vendor = RawVendor(port=server.sockets[0].getsockname()[1])
        deadline = asyncio.get_running_loop().time() + 1
        connections = transport._connections(transport.prepare(vendor.url, {}).origin)
        connection, _ = await connections.acquire(None, deadline)
        await until(lambda: not connection.is_usable)
        with pytest.raises(VendorProblem):
            await connection.send(b"POST / HTTP/1.1\r\n\r\n", deadline)


async def test_a_redirect_is_an_answer_and_a_cookie_is_forgotten(transport: VendorTransport) -> None:
    moved = b"HTTP/1.1 307 T\r\nLocation: http://169.254.169.254/\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"
    async with raw_vendor(says(moved)) as vendor:
        deadline = asyncio.get_running_loop().time() + 1
        for _ in range(2):
            async with transport.request("POST", vendor.url, {}, b"", deadline=deadline) as answer:
                assert (answer.status, answer.header("set-cookie")) == (307, "a=b")
        assert len(vendor.requests) == 2
        assert b"ookie" not in b"".join(vendor.requests)


async def first_message(transport: VendorTransport, vendor: RawVendor) -> VendorResponse:
    deadline = asyncio.get_running_loop().time() + 2
    async with transport.request("POST", vendor.url, {}, b"{}", deadline=deadline) as answer:
        async for _ in answer.chunks():
            break
    return answer


async def test_a_stream_that_ends_after_its_answer_leaves_the_connection(transport: VendorTransport) -> None:
    parts = (STREAM + b"Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n", b"0\r\n\r\n")
    async with raw_vendor(says(*parts, pause_s=0.05)) as vendor:
        await first_message(transport, vendor)
        assert kept(transport) == 0
        await until(lambda: kept(transport) == 1)
        await first_message(transport, vendor)
        assert vendor.connections == 1


async def test_a_stream_that_goes_on_after_its_answer_is_closed(
    transport: VendorTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.vendors.http1.DRAIN_S", 0.1)
    part = b"9\r\ndata: 1\n\n\r\n"
    async with raw_vendor(says(STREAM + b"Transfer-Encoding: chunked\r\n\r\n", *[part] * 50, pause_s=0.02)) as vendor:
        await first_message(transport, vendor)
        await until(lambda: is_unused(transport))


async def test_a_block_that_fails_closes_what_is_under_way(transport: VendorTransport) -> None:
    async with raw_vendor(says(STREAM + b"Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n")) as vendor:
        deadline = asyncio.get_running_loop().time() + 2
        with pytest.raises(LookupError):
            async with transport.request("POST", vendor.url, {}, b"{}", deadline=deadline):
                raise LookupError
        await until(lambda: is_unused(transport))


async def test_a_caller_that_leaves_closes_the_connection(transport: VendorTransport) -> None:
    async with raw_vendor(says(b"")) as vendor:
        task = asyncio.ensure_future(ask(transport, vendor))
        while not vendor.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: is_unused(transport))


@pytest.mark.parametrize(
    "headers",
    [
        {"A": "b\r\nX: y"},
        {"A\r\nX": "b"},
        {"A": "b\0"},
        {"A": "ключ"},
        {"": "b"},
        {"Content-Length": "0"},
        {"Transfer-Encoding": "chunked"},
        {"Host": "other"},
        {"A b": "c"},
    ],
)
async def test_headers_that_would_change_the_request_are_not_sent(
    transport: VendorTransport, headers: dict[str, str]
) -> None:
    async with raw_vendor(says(OK)) as vendor:
        with pytest.raises(VendorProblem, match="headers can’t be sent") as caught:
            transport.prepare(vendor.url, headers)
        assert vendor.connections == 0
        assert not any(value and value in str(caught.value) for value in headers.values() if len(value) > 1)


async def test_what_holds_a_credential_does_not_show_it(transport: VendorTransport) -> None:
    prepared = transport.prepare("http://127.0.0.1:1/", {"X-Key": "secret-value"})
    assert b"secret-value" in prepared.head
    assert "secret-value" not in repr(prepared)


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (OK, None),
        (OK[:-1], VendorFault.BAD_RESPONSE),
        (b"no HTTP", VendorFault.BAD_RESPONSE),
        (b"", VendorFault.UNAVAILABLE),
    ],
    ids=["an answer", "half an answer", "something else", "nothing"],
)
async def test_a_closed_connection_is_freed(said: bytes, fault: VendorFault | None) -> None:
    ended: list[object] = []
    with freed_without_collection(Connection, VendorResponse):
        transport = new_transport(limits=LIMITS)
        async with raw_vendor(says(said, then_close=True)) as vendor:
            try:
                ended.append(await ask(transport, vendor))
            except VendorProblem as problem:
                ended.append(problem.fault)
            await transport.aclose()
    assert ended == [fault or b"{}"]


async def test_a_connection_that_could_not_be_made_is_freed(transport: VendorTransport) -> None:
    with freed_without_collection(Connection):
        deadline = asyncio.get_running_loop().time() + 1
        with pytest.raises(VendorProblem):
            async with transport.request("POST", "http://127.0.0.1:9/mcp", {}, b"{}", deadline=deadline):
                raise AssertionError("nobody listens there")
        await asyncio.sleep(0)


async def test_an_event_stream_may_be_packed(transport: VendorTransport) -> None:
    packed = gzip.compress(b"data: {}\n\n" * 5_000)
    head = STREAM + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    async with raw_vendor(says(head + packed[:20], packed[20:])) as vendor:
        deadline = asyncio.get_running_loop().time() + 1
        async with transport.request("POST", vendor.url, {}, b"{}", deadline=deadline) as answer:
            assert b"".join([chunk async for chunk in answer.chunks()]) == b"data: {}\n\n" * 5_000
        assert kept(transport) == 1
    async with raw_vendor(says(head.replace(b"%d" % len(packed), b"30") + packed[:30])) as vendor:
        with pytest.raises(VendorProblem):
            async with transport.request("POST", vendor.url, {}, b"{}", deadline=deadline) as answer:
                assert [chunk async for chunk in answer.chunks()]


@pytest.mark.parametrize(("size", "slices"), [(60_000, 0), (300_000, 5)])
async def test_unpacking_much_waits_for_slots(monkeypatch: pytest.MonkeyPatch, size: int, slices: int) -> None:
    """64 KiB are free, and then each piece of 64 KiB is a slice on the account of the organization."""
    owners = slots_taken(monkeypatch)
    packed = gzip.compress(b"x" * size)
    transport = new_transport()
    head = JSON + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    async with raw_vendor(says(head + packed)) as vendor:
        deadline = asyncio.get_running_loop().time() + 5
        async with transport.request("POST", vendor.url, {}, b"{}", deadline=deadline) as answer:
            assert await answer.body("acme") == b"x" * size
    await transport.aclose()
    assert owners == ["acme"] * slices


async def test_unpacking_what_adds_nothing_waits_for_slots_too(
    transport: VendorTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    slices = slots_taken(monkeypatch)
    packed = gzip.compress(b"")[:10] + b"\x00\x00\x00\xff\xff" * 18_000
    head = JSON + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    assert (await fault_of(transport, says(head + packed))).fault is VendorFault.BAD_RESPONSE
    assert len(slices) >= (len(packed) - 64 * 1024) // 4096


async def test_a_slot_that_comes_too_late_is_a_timeout(transport: VendorTransport) -> None:
    packed = gzip.compress(b"x" * 90_000)
    head = JSON + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    async with fair_scheduler.current().slot("somebody else"):
        problem = await fault_of(transport, says(head + packed), within_s=0.3)
    assert problem.fault is VendorFault.TIMEOUT
