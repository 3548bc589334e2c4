"""Connections to vendors: to which addresses, and under which certificates."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509

from proxy.outcomes import VendorFault
from proxy.vendors import dns
from proxy.vendors.errors import VendorProblem
from proxy.vendors.transport import VendorTransport
from tests.api.proxy.traces import until
from tests.api.proxy.vendor_requests import LIMITS, ask, only
from tests.factories.vendor_pools import new_transport
from tests.fakes.authority import Authority
from tests.fakes.raw_vendor import OK, raw_vendor, says


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Every name means these addresses; the names that were asked for."""
    asked: list[str] = []

    def lookup(host: str, port: int) -> list[str]:
        asked.append(host)
        return list(addresses)

    monkeypatch.setattr(dns, "lookup", lookup)
    return asked


@pytest.mark.parametrize(
    "addresses",
    [("169.254.169.254",), ("127.0.0.1", "169.254.169.254"), ("fd00:ec2::254",), ("0.0.0.0",), ()],
)
async def test_a_name_with_one_forbidden_address_is_refused(
    transport: VendorTransport, monkeypatch: pytest.MonkeyPatch, addresses: tuple[str, ...]
) -> None:
    async with raw_vendor(says(OK)) as vendor:
        resolving(monkeypatch, *addresses)
        with pytest.raises(VendorProblem, match="address is not allowed") as caught:
            await ask(transport, f"http://vendor.example:{vendor.port}/mcp")
        assert caught.value.fault is VendorFault.UNAVAILABLE
        assert vendor.connections == 0
        assert only(transport).is_unused


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "::1"])
async def test_private_addresses_behind_a_name_need_permission(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    transport = new_transport(allow_private=False, limits=LIMITS)
    resolving(monkeypatch, address)
    with pytest.raises(VendorProblem, match="address is not allowed"):
        await ask(transport, "https://vendor.example/mcp")
    await transport.aclose()


async def test_the_judged_address_is_the_one_connected_to(
    transport: VendorTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with raw_vendor(says(OK)) as vendor:
        asked = resolving(monkeypatch, "127.0.0.1")
        assert await ask(transport, f"http://vendor.example:{vendor.port}/mcp") == b"{}"
        assert asked == ["vendor.example"], "the name is never asked twice"
        assert b"\r\nHost: vendor.example:%d\r\n" % vendor.port in vendor.requests[0]


async def test_the_next_address_is_tried_when_the_first_refuses(
    transport: VendorTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with raw_vendor(says(OK)) as vendor:
        resolving(monkeypatch, "127.0.0.9", "127.0.0.1")
        assert await ask(transport, f"http://vendor.example:{vendor.port}/mcp") == b"{}"


@pytest.mark.parametrize(
    ("fault", "text"),
    [(socket.gaierror(-2, "secret.internal"), "host name was not found"), (OSError("secret.internal"), "be reached")],
)
async def test_what_the_resolver_says_stays_here(
    transport: VendorTransport, monkeypatch: pytest.MonkeyPatch, fault: OSError, text: str
) -> None:
    def lookup(host: str, port: int) -> list[str]:
        raise fault

    monkeypatch.setattr(dns, "lookup", lookup)
    with pytest.raises(VendorProblem, match=text) as caught:
        await ask(transport, "http://secret.internal/mcp")
    assert "secret" not in str(caught.value)
    assert only(transport).is_unused


async def test_a_resolver_that_hangs_is_given_up(silent_names: threading.Event, transport: VendorTransport) -> None:
    with pytest.raises(VendorProblem) as caught:
        await ask(transport, "http://vendor.slow.example/mcp", within_s=30)
    assert caught.value.fault is VendorFault.TIMEOUT
    assert only(transport).is_unused


@pytest.fixture
def silent_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Names below slow.example have a name server that says nothing, until the event is set; others are ours."""
    is_over = threading.Event()

    def lookup(host: str, port: int) -> list[str]:
        if host.endswith(".slow.example"):
            is_over.wait(60)
        return ["127.0.0.1"]

    monkeypatch.setattr(dns, "lookup", lookup)
    yield is_over
    is_over.set()


async def ask_of(owner: str | None, transport: VendorTransport, url: str) -> bytes:
    """One POST to an address from a credential of `owner`, or the catalog's."""
    prepared = transport.prepare(url, {}, organization=owner, has_own_address=owner is not None)
    async with transport.send("POST", prepared, b"{}", deadline=asyncio.get_running_loop().time() + 30) as answer:
        return await answer.body()


async def test_sessions_of_one_vendor_share_its_origin_and_those_of_an_own_address_do_not(
    transport: VendorTransport,
) -> None:
    async with raw_vendor(says(OK)) as vendor:
        url = f"http://127.0.0.1:{vendor.port}/"
        for owner in (None, "acme"):
            assert await ask_of(owner, transport, url) == b"{}"
        first, second = (transport.prepare(url, {"X-Key": key}, organization=key) for key in ("acme", "globex"))
        own = transport.prepare(url, {}, organization="acme", has_own_address=True)
        other = transport.prepare(url, {}, organization="globex", has_own_address=True)
    assert first.origin is second.origin
    assert len({first.origin, own.origin, other.origin}) == 3


async def test_one_organizations_silent_names_hold_up_nobody_else(
    silent_names: threading.Event, transport: VendorTransport
) -> None:
    async with raw_vendor(says(OK)) as vendor:
        stuck = [
            asyncio.ensure_future(ask_of("acme", transport, f"http://v{number}.slow.example:{vendor.port}/"))
            for number in range(40)
        ]
        await asyncio.sleep(0)
        for owner in (None, "globex"):
            assert await ask_of(owner, transport, f"http://quick.example:{vendor.port}/") == b"{}"
        await until(lambda: lookups() == dns.LOOKUPS_PER_OWNER)
        ended = await asyncio.gather(*stuck, return_exceptions=True)
        assert {getattr(each, "fault", None) for each in ended} == {VendorFault.TIMEOUT}
        silent_names.set()
        await until(lambda: transport._resolver._credential_slots.is_unused)
        assert await ask_of("acme", transport, f"http://quick.example:{vendor.port}/") == b"{}"


async def test_many_organizations_silent_names_leave_slots_for_another(
    silent_names: threading.Event, transport: VendorTransport
) -> None:
    async with raw_vendor(says(OK)) as vendor:
        stuck = [
            asyncio.ensure_future(ask_of(f"org-{owner}", transport, f"http://v{n}.slow.example:{vendor.port}/"))
            for owner in range(10)
            for n in range(6)
        ]
        await asyncio.sleep(0)
        assert await ask_of("newcomer", transport, f"http://quick.example:{vendor.port}/") == b"{}"
        await until(lambda: lookups() > 20)
        for each in stuck:
            each.cancel()
        await asyncio.wait(stuck)
        silent_names.set()
        await until(lambda: transport._resolver._credential_slots.is_unused)


def lookups() -> int:
    """The number under way."""
    return sum(each.name == "name-lookup" for each in threading.enumerate())


async def test_many_who_ask_for_one_name_share_the_answer(
    transport: VendorTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with raw_vendor(says(OK)) as vendor:
        asked = resolving(monkeypatch, "127.0.0.1")
        url = f"http://vendor.example:{vendor.port}/"
        answers = await asyncio.gather(*(ask_of("acme", transport, url) for _ in range(20)))
        assert answers == [b"{}"] * 20
        assert asked == ["vendor.example"]


async def test_organizations_share_no_connection_to_an_address_of_their_own(transport: VendorTransport) -> None:
    async with raw_vendor(says(OK)) as vendor:
        for owner in ("acme", "globex", "acme", None):
            assert await ask_of(owner, transport, vendor.url) == b"{}"
        assert vendor.connections == 3


async def test_nobody_listens(transport: VendorTransport) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(VendorProblem, match="couldn’t be reached"):
            await ask(transport, f"http://127.0.0.1:{unused.getsockname()[1]}/mcp")
    assert only(transport).is_unused


@pytest.mark.parametrize("url", ["ftp://a/", "http://u@a/", "http://169.254.169.254/", "http://[", "http://a:99999/"])
async def test_addresses_that_nothing_is_sent_to(transport: VendorTransport, url: str) -> None:
    with pytest.raises(VendorProblem, match="address is not allowed"):
        await ask(transport, url)
    assert not transport._by_origin


# --- certificates ---------------------------------------------------------------------------------------------------


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """A new authority."""
    return Authority(tmp_path)


@pytest.fixture
async def trusting(authority: Authority) -> AsyncIterator[VendorTransport]:
    """A transport that trusts it."""
    context = authority.trusting()
    made = new_transport(limits=LIMITS, tls=lambda: context)
    yield made
    await made.aclose()


NAMED = x509.DNSName("vendor.example")


async def test_tls_with_the_name_in_sni_and_a_kept_connection(
    trusting: VendorTransport, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []
    server = authority.server(NAMED)
    server.sni_callback = lambda _socket, name, _context: seen.append(name)
    async with raw_vendor(says(OK), tls=server) as vendor:
        resolving(monkeypatch, "127.0.0.1")
        for _ in range(3):
            assert await ask(trusting, f"https://vendor.example:{vendor.port}/mcp") == b"{}"
        assert (vendor.connections, seen) == (1, ["vendor.example"])


async def test_tls_to_an_address_needs_a_certificate_for_it(trusting: VendorTransport, authority: Authority) -> None:
    async with raw_vendor(says(OK), tls=authority.server(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))) as vendor:
        assert await ask(trusting, vendor.url) == b"{}"
    async with raw_vendor(says(OK), tls=authority.server(NAMED)) as vendor:
        with pytest.raises(VendorProblem, match="couldn’t be reached"):
            await ask(trusting, vendor.url)
        assert not vendor.requests


WRONG: dict[str, Callable[[Authority], ssl.SSLContext]] = {
    "another name": lambda authority: authority.server(x509.DNSName("other.example")),
    "no name": lambda authority: authority.server(),
    "expired": lambda authority: authority.server(NAMED, days=-1),
}


@pytest.mark.parametrize("made", WRONG.values(), ids=WRONG)
async def test_a_wrong_certificate_gets_no_request(
    trusting: VendorTransport,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    made: Callable[[Authority], ssl.SSLContext],
) -> None:
    async with raw_vendor(says(OK), tls=made(authority)) as vendor:
        resolving(monkeypatch, "127.0.0.1")
        with pytest.raises(VendorProblem, match="couldn’t be reached"):
            await ask(trusting, f"https://vendor.example:{vendor.port}/mcp")
        assert not vendor.requests
        assert only(trusting).is_unused


async def test_an_authority_nobody_knows_gets_no_request(
    transport: VendorTransport, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with raw_vendor(says(OK), tls=authority.server(NAMED)) as vendor:
        resolving(monkeypatch, "127.0.0.1")
        with pytest.raises(VendorProblem, match="couldn’t be reached"):
            await ask(transport, f"https://vendor.example:{vendor.port}/mcp")
        assert not vendor.requests


async def test_a_handshake_that_hangs_is_given_up(transport: VendorTransport) -> None:
    async with raw_vendor(says(OK)) as vendor:  # speaks no TLS and says nothing
        with pytest.raises(VendorProblem) as caught:
            await ask(transport, f"https://127.0.0.1:{vendor.port}/mcp", within_s=30)
        assert caught.value.fault is VendorFault.TIMEOUT
        assert only(transport).is_unused
