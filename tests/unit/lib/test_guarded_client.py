"""The guarded client against hostile names, addresses and peers, over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpcore
import pytest
from cryptography import x509

from gateway.lib import guarded_client
from gateway.lib.guarded_client import (
    BadResponse,
    OutboundError,
    OutboundTimeout,
    Response,
    ResponseTooLarge,
)
from gateway.lib.outbound import AddressRefused
from tests.fakes.authority import Authority
from tests.fakes.raw_vendor import OK, RawVendor, Script, raw_vendor, says

pytestmark = pytest.mark.one_back_end
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
PUBLIC = "93.184.216.34"
MAX_BYTES = 100_000


def send(url: str, **changes: Any) -> Response:
    bounds = {"allow_private": False, "timeout_s": 5.0, "max_bytes": MAX_BYTES}
    return guarded_client.send(changes.pop("method", "GET"), url, **{**bounds, **changes})


async def answer_to(script: Script, **changes: Any) -> Response:
    """The response of a server on this computer, which is allowed."""
    async with raw_vendor(script) as server:
        return await asyncio.to_thread(partial(send, server.url, allow_private=True, **changes))


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Sets the answers of look-ups, one after the other; returns the names that were looked up."""

    def answer(*answers: list[str]) -> list[str]:
        left, asked = list(answers), []

        def lookup(host: str, port: int) -> list[str]:
            asked.append(host)
            return left.pop(0)

        monkeypatch.setattr(guarded_client, "lookup", lookup)
        return asked

    return answer


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that connections go to; all of them end on this computer."""
    found: list[str] = []
    connect = httpcore.SyncBackend.connect_tcp

    def noted(self: Any, host: str, port: int, *more: Any, **named: Any) -> Any:
        found.append(host)
        return connect(self, "127.0.0.1", port, *more, **named)

    monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", noted)
    return found


# --- where it connects to -------------------------------------------------------------------------------------------


async def test_the_checked_address_is_connected_to_under_the_name(
    names: Callable[..., list[str]], dialled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, seen = Authority(tmp_path), list[str]()
    tls = authority.server(x509.DNSName("app.example"))
    tls.sni_callback = lambda _socket, name, _context: seen.append(name)
    trusting = authority.trusting()
    monkeypatch.setattr(guarded_client, "_tls", lambda: trusting)
    asked = names([PUBLIC], [PUBLIC])
    async with raw_vendor(says(OK), tls=tls) as server:
        answer = await asyncio.to_thread(send, f"https://app.example:{server.port}/a?b=c")
        assert (answer.status, answer.body, answer.headers["content-type"]) == (200, b"{}", "application/json")
        assert f"Host: app.example:{server.port}\r\n".encode() in server.requests[0]
        assert (asked, dialled, seen) == (["app.example"], [PUBLIC], ["app.example"])
        with pytest.raises(OutboundError):
            await asyncio.to_thread(send, f"https://other.example:{server.port}/")
        assert len(server.requests) == 1, "a certificate for another name gets no request"


async def test_an_unknown_authority_gets_no_request(
    names: Callable[..., list[str]], dialled: list[str], tmp_path: Path
) -> None:
    names([PUBLIC])
    async with raw_vendor(says(OK), tls=Authority(tmp_path).server(x509.DNSName("app.example"))) as server:
        with pytest.raises(OutboundError):
            await asyncio.to_thread(send, f"https://app.example:{server.port}/")
        assert not server.requests


async def test_a_name_that_changes_its_address_is_resolved_once(
    names: Callable[..., list[str]], dialled: list[str]
) -> None:
    asked = names([PUBLIC], ["127.0.0.1"], ["10.0.0.1"])
    async with raw_vendor(says(OK)) as server:
        with pytest.raises(OutboundError):  # the server speaks no TLS
            await asyncio.to_thread(send, f"https://rebound.example:{server.port}/")
        assert (asked, dialled) == (["rebound.example"], [PUBLIC])
        for _ in range(2):
            with pytest.raises(AddressRefused):
                await asyncio.to_thread(send, f"https://rebound.example:{server.port}/")
        assert dialled == [PUBLIC]


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.1.2.3"],
        ["0.0.0.0"],
        ["169.254.169.254"],
        ["100.64.0.1"],
        ["224.0.0.1"],
        ["::1"],
        ["::"],
        ["fd00::1"],
        ["fe80::1%eth0"],
        ["::ffff:127.0.0.1"],
        ["::ffff:169.254.169.254"],
        ["64:ff9b::7f00:1"],
        [PUBLIC, "10.0.0.1"],
        [],
    ],
    ids=str,
)
def test_a_name_that_leads_inside_is_refused(
    names: Callable[..., list[str]], dialled: list[str], addresses: list[str]
) -> None:
    names(addresses)
    with pytest.raises(AddressRefused) as refused:
        send("https://inside.example/")
    assert not dialled
    assert not any(address in str(refused.value) for address in addresses)


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "https://0.0.0.0/",
        "https://0/",
        "https://[::]/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[::ffff:a00:1]/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://①②⑦.0.0.1/",
        "https://169.254.169.254/latest/meta-data",
        "https://user:secret@app.example/",
        "https://app.example@127.0.0.1/",
        "https://app.example./",
        "https://app.example:99999/",
        "https://[::1/",
        "https://exa\x00mple/",
        "https:///path",
        "http://app.example/",
        "ftp://app.example/",
        "file:///etc/passwd",
        "",
    ],
)
def test_an_address_that_is_refused_before_it_is_looked_up(
    names: Callable[..., list[str]], dialled: list[str], url: str
) -> None:
    asked = names()
    with pytest.raises(AddressRefused):
        send(url)
    assert (asked, dialled) == ([], [])


@pytest.mark.parametrize("host", ["169.254.169.254", "0.0.0.0", "224.0.0.1", "[::ffff:169.254.169.254]"])
def test_metadata_and_the_like_are_refused_where_private_addresses_are_allowed(dialled: list[str], host: str) -> None:
    with pytest.raises(AddressRefused):
        send(f"http://{host}/", allow_private=True)
    assert not dialled


async def test_the_next_address_is_tried_when_one_does_not_answer(
    names: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    names(["127.0.0.2", "127.0.0.3", "127.0.0.1"])
    async with raw_vendor(says(OK)) as server:
        answer = await asyncio.to_thread(partial(send, f"http://two.example:{server.port}/", allow_private=True))
    assert answer.body == b"{}"


@pytest.mark.parametrize("fault", [socket.gaierror("unknown"), UnicodeError("label too long")])
def test_a_name_that_cannot_be_looked_up(monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    def lookup(host: str, port: int) -> list[str]:
        raise fault

    monkeypatch.setattr(guarded_client, "lookup", lookup)
    with pytest.raises(OutboundError):
        send("https://unknown.example/")


# --- what it sends and follows --------------------------------------------------------------------------------------


async def test_a_redirect_inside_is_not_followed(dialled: list[str]) -> None:
    async with raw_vendor(says(OK)) as inside:
        head = f"HTTP/1.1 302 Found\r\nLocation: {inside.url}\r\nContent-Length: 0\r\n\r\n"
        answer = await answer_to(says(head.encode()), headers={"Authorization": "Bearer secret"})
        assert (answer.status, answer.headers["location"]) == (302, inside.url)
        assert not inside.connections
    assert len(dialled) == 1


async def test_a_request_carries_nothing_of_the_environment_or_of_another_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ana password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    cookie = says(HEAD + b"Set-Cookie: a=b\r\nContent-Length: 2\r\n\r\n{}")
    async with raw_vendor(cookie) as server:
        for method, form in (("GET", None), ("POST", {"code": "a b"})):
            await asyncio.to_thread(partial(send, server.url, method=method, form=form, allow_private=True))
        first, second = (request.lower() for request in server.requests)
        assert b"cookie" not in first + second
        assert b"authorization" not in first + second
        assert second.endswith(b"\r\n\r\ncode=a+b")
        assert server.connections == 2


# --- what it takes --------------------------------------------------------------------------------------------------


def sized(body: bytes, more: bytes = b"") -> Script:
    return says(HEAD + more + b"Content-Length: %d\r\n\r\n" % len(body) + body)


@pytest.mark.parametrize("size", [0, 1, MAX_BYTES])
async def test_bodies_up_to_the_cap(size: int) -> None:
    body = b"x" * size
    assert (await answer_to(sized(body))).body == body
    assert (await answer_to(sized(gzip.compress(body), b"Content-Encoding: gzip\r\n"))).body == body


async def endless(server: RawVendor, writer: asyncio.StreamWriter) -> None:
    """Chunks of a body without end."""
    writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        await writer.drain()


async def endless_tiny_chunks(server: RawVendor, writer: asyncio.StreamWriter) -> None:
    """A byte each, with an extension."""
    writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    while not writer.is_closing():
        writer.write((b"1;" + b"e" * 50 + b"\r\nx\r\n") * 100)
        await writer.drain()


async def endless_head(server: RawVendor, writer: asyncio.StreamWriter) -> None:
    """Header after header."""
    writer.write(HEAD)
    while not writer.is_closing():
        writer.write(b"X-Filler: " + b"y" * 1000 + b"\r\n")
        await writer.drain()


async def endless_continues(server: RawVendor, writer: asyncio.StreamWriter) -> None:
    """Interim responses only."""
    while not writer.is_closing():
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100)
        await writer.drain()


@pytest.mark.parametrize(
    "script",
    [
        sized(b"x" * (MAX_BYTES + 1)),
        says(HEAD + b"\r\n" + b"x" * (MAX_BYTES + 1), then_close=True),
        endless,
        endless_tiny_chunks,
        endless_continues,
        sized(gzip.compress(b"\0" * (MAX_BYTES + 1)), b"Content-Encoding: gzip\r\n"),
        sized(gzip.compress(b"\0" * 5_000_000), b"Content-Encoding: gzip\r\n"),
    ],
    ids=["length", "to the end", "chunks", "tiny chunks", "interim", "gzip", "gzip bomb"],
)
async def test_a_response_beyond_the_cap(script: Script) -> None:
    with pytest.raises(ResponseTooLarge):
        await answer_to(script)


async def test_a_flood_of_headers() -> None:
    with pytest.raises(OutboundError) as caught:
        await answer_to(endless_head)
    assert isinstance(caught.value, ResponseTooLarge | BadResponse)
    with pytest.raises(OutboundError):
        await answer_to(says(HEAD + b"X-Filler: y\r\n" * 20_000 + b"Content-Length: 2\r\n\r\n{}"))


BOMB = gzip.compress(gzip.compress(b"\0" * 5_000_000))


@pytest.mark.parametrize(
    "script",
    [
        sized(BOMB, b"Content-Encoding: gzip, gzip\r\n"),
        sized(b"{}", b"Content-Encoding: br\r\n"),
        sized(b"{}", b"Content-Encoding: gzip\r\n"),
        sized(gzip.compress(b"{}")[:-4], b"Content-Encoding: gzip\r\n"),
        sized(gzip.compress(b"{}") + b"{}", b"Content-Encoding: gzip\r\n"),
        says(HEAD + b"Content-Length: 9\r\n\r\n{}", then_close=True),
        says(b"SMTP ready\r\n", then_close=True),
        says(then_close=True),
    ],
    ids=["bomb in a bomb", "unasked coding", "no gzip", "cut gzip", "gzip and more", "cut", "no HTTP", "nothing"],
)
async def test_a_broken_response(script: Script) -> None:
    with pytest.raises(BadResponse):
        await answer_to(script)


# --- how long it waits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        says(*[b"H"] * 200, pause_s=0.05),
        says(HEAD, *[b"X-A: b\r\n"] * 200, pause_s=0.05),
        says(HEAD + b"Content-Length: 200\r\n\r\n", *[b"x"] * 200, pause_s=0.05),
        says(),
    ],
    ids=["status line", "headers", "body", "silence"],
)
async def test_a_slow_drip_ends_at_the_deadline(script: Script) -> None:
    started = time.monotonic()
    with pytest.raises(OutboundTimeout):
        await answer_to(script, timeout_s=0.3)
    assert time.monotonic() - started < 9  # the whole script takes ten seconds


async def test_a_handshake_that_hangs_ends_at_the_deadline() -> None:
    async with raw_vendor(says()) as server:
        with pytest.raises(OutboundTimeout):
            await asyncio.to_thread(
                partial(send, f"https://127.0.0.1:{server.port}/", allow_private=True, timeout_s=0.3)
            )


def test_the_resolver_s_time_counts(monkeypatch: pytest.MonkeyPatch, dialled: list[str]) -> None:
    def slow(host: str, port: int) -> list[str]:
        threading.Event().wait(0.1)
        return [PUBLIC]

    monkeypatch.setattr(guarded_client, "lookup", slow)
    with pytest.raises(OutboundTimeout):
        send("https://slow.example/", timeout_s=0.05)
    assert not dialled
