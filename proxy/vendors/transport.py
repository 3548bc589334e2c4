"""HTTP client for vendors: connection pools per event loop, a deadline for each step, a maximum for each size.

Written for this service because a general client costs more than the rest of a call (docs/decisions/0004). No cookies
(they could pass from one tenant to another), redirects, proxy settings from the environment, or retries.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import string
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from types import TracebackType
from urllib.parse import quote, urlsplit
from uuid import UUID

import structlog
from django.conf import settings

from gateway.lib.outbound import AddressRefused, check_url, verifying_tls
from proxy.timing import Timing
from proxy.vendors import errors
from proxy.vendors.connections import Connections, Origin
from proxy.vendors.dns import Resolver
from proxy.vendors.errors import Evidence
from proxy.vendors.http1 import Connection, Limits
from proxy.vendors.response import VendorResponse

log = structlog.get_logger(__name__)
SWEEP_EVERY_S = 15.0  # closes idle connections
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "expect", "te", "accept-encoding"})


@dataclass(frozen=True, slots=True, repr=False)
class Prepared:
    """A checked and encoded address with headers, reused by all requests that carry them. Contains the credential."""

    origin: Origin
    target: bytes
    head: bytes
    organization: Hashable = None  # for its share of the connections

    def __repr__(self) -> str:
        return "Prepared()"

    def with_headers(self, more: Mapping[str, str]) -> Prepared:
        """With headers of one request. Raises: VendorProblem for a header that may not be sent."""
        head = b"\r\n".join([self.head, *map(_header_line, more.items())])
        return Prepared(self.origin, self.target, head, self.organization)


class VendorTransport:
    """Belongs to the event loop that made it."""

    def __init__(
        self,
        *,
        allow_private: bool,
        limits: Limits,
        connections_per_origin: int,
        own_url: str = "",
        tls: Callable[[], ssl.SSLContext] = verifying_tls,
    ) -> None:
        self._allow_private = allow_private
        self._limits = limits
        self._connections_per_origin = connections_per_origin
        self._own_url = own_url  # refused: calls would loop
        self._tls = tls
        self._resolver = Resolver()
        self._by_origin: dict[Origin, Connections] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def body_bytes(self) -> int:
        return self._limits.body_bytes

    def prepare(
        self,
        url: str,
        headers: Mapping[str, str],
        vendor: str = "",
        *,
        organization: Hashable = None,
        has_own_address: bool = False,
    ) -> Prepared:
        """Raises: VendorProblem for an address or header that may not be sent.

        `has_own_address`: the organization's credential names the address, so it gets connections of its own.
        """
        try:
            check_url(url, allow_private=self._allow_private, own_url=self._own_url)
            parts = urlsplit(url)
            host = (parts.hostname or "").encode("idna").decode("ascii")
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except (AddressRefused, ValueError) as fault:  # UnicodeError is a ValueError
            raise errors.AddressNotAllowed from fault
        target = quote((parts.path or "/") + (f"?{parts.query}" if parts.query else ""), safe=string.punctuation)
        name = f"[{host}]" if ":" in host else host
        if parts.port is not None:
            name = f"{name}:{port}"
        lines = [b"Host: " + name.encode(), b"Accept-Encoding: gzip", *map(_header_line, headers.items())]
        origin = Origin(parts.scheme == "https", host, port, vendor, organization if has_own_address else None)
        if (known := self._by_origin.get(origin)) is not None:
            origin = known.origin  # one object for all sessions: each call looks it up
        # Hashing an int costs no Python call, hashing a UUID one; places are looked up four times a call.
        holder = organization.int if isinstance(organization, UUID) else organization
        return Prepared(origin, target.encode(), b"\r\n".join(lines), holder)

    def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, *, deadline: float
    ) -> VendorExchange:
        return self.send(method, self.prepare(url, headers), body, deadline=deadline)

    def send(
        self,
        method: str,
        prepared: Prepared,
        body: bytes | None,
        *,
        deadline: float,
        on_connected: Callable[[], None] | None = None,
        timing: Timing | None = None,
    ) -> VendorExchange:
        """One exchange: `async with send(...) as answer`; `deadline` is loop time. Raises, on entering: VendorProblem.

        `on_connected` is called for a new connection, or for one handed over by an exchange that ended well.
        """
        if body is None:
            request = b"%b %b HTTP/1.1\r\n%b\r\n\r\n" % (method.encode(), prepared.target, prepared.head)
        else:
            request = b"%b %b HTTP/1.1\r\n%b\r\nContent-Length: %d\r\n\r\n%b" % (
                *(method.encode(), prepared.target, prepared.head),
                *(len(body), body),
            )
        connections = self._connections(prepared.origin)
        return VendorExchange(connections, prepared.organization, request, deadline, on_connected, timing)

    def connection_counts(self) -> tuple[int, int]:
        """Connections that requests use, and idle ones."""
        counts = [each.counts for each in self._by_origin.values()]
        return sum(busy for busy, _ in counts), sum(idle for _, idle in counts)

    async def aclose(self) -> None:
        self._is_closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connections in self._by_origin.values():
            connections.abort()
        self._by_origin.clear()
        await asyncio.sleep(0)  # lets the loop close the sockets

    def _connections(self, origin: Origin) -> Connections:
        found = self._by_origin.get(origin)
        if found is None:
            if self._is_closed:
                raise errors.unavailable()
            found = self._by_origin[origin] = Connections(
                origin,
                max_open=self._connections_per_origin,
                allow_private=self._allow_private,
                limits=self._limits,
                tls=self._tls,
                resolver=self._resolver,
            )
            if self._sweeper is None:
                self._sweep_later()
        return found

    def _sweep_later(self) -> None:
        self._sweeper = asyncio.get_running_loop().call_later(SWEEP_EVERY_S, self._sweep)

    def _sweep(self) -> None:
        self._sweeper = None
        try:
            for origin, connections in list(self._by_origin.items()):
                connections.close_idle()
                if connections.is_unused:
                    del self._by_origin[origin]
        except Exception:  # one failure must not end all later rounds
            log.exception("idle connections not closed")
        if self._by_origin:
            self._sweep_later()


class VendorExchange:
    """One request, and its answer while it is read."""

    __slots__ = ("_connection", "_connections", "_deadline", "_on_connected", "_organization", "_request", "_timing")

    def __init__(
        self,
        connections: Connections,
        organization: Hashable,
        request: bytes,
        deadline: float,
        on_connected: Callable[[], None] | None,
        timing: Timing | None,
    ) -> None:
        self._connections = connections
        self._organization = organization
        self._request = request
        self._deadline = deadline
        self._on_connected = on_connected
        self._timing = timing
        self._connection: Connection | None = None

    async def __aenter__(self) -> VendorResponse:
        has_waited = False
        connection = self._connections.acquire_idle(self._organization)
        if connection is None:
            connection, has_waited = await self._connections.acquire(self._organization, self._deadline, self._timing)
            if self._on_connected is not None:
                self._on_connected()
        self._connection = connection
        try:
            return await connection.send(self._request, self._deadline)
        except BaseException as fault:
            self._connections.release(connection, self._organization, may_drain=False)
            if has_waited and isinstance(fault, errors.VendorProblem) and fault.is_own_timeout:
                fault.evidence = Evidence.SENT_LATE  # after our own line: the vendor had less than its timeout
            raise

    def move_deadline(self, deadline: float) -> None:
        if self._connection is not None:
            self._connection.move_deadline(deadline)

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            self._connections.release(self._connection, self._organization, may_drain=kind is None)


def configured_transport() -> VendorTransport:
    """A transport under the outbound rules and bounds of the settings."""
    return VendorTransport(
        allow_private=settings.ALLOW_PRIVATE_ENDPOINTS,
        limits=Limits(
            connect_s=settings.VENDOR_CONNECT_TIMEOUT_S,
            chunk_s=settings.VENDOR_CHUNK_TIMEOUT_S,
            body_bytes=settings.VENDOR_REPLY_BYTES,
        ),
        connections_per_origin=settings.VENDOR_CONNECTIONS_PER_ORIGIN,
        own_url=settings.BASE_URL,
    )


def _header_line(header: tuple[str, str]) -> bytes:
    name, text = header
    try:
        value = text.encode("latin-1")
    except UnicodeEncodeError:
        value = b"\n"
    if not _TOKEN.fullmatch(name) or name.lower() in _OURS or not _VALUE.fullmatch(value):
        raise errors.unavailable("The vendor’s headers can’t be sent.")
    return b"%b: %b" % (name.encode(), value)
