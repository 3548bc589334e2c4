"""HTTP to vendors: one set of connections per event loop, deadlines on every step, caps on every size.

A client of our own, because a general one costs more than the rest of the call (docs/decisions/0004). It keeps no
cookies (one vendor's Set-Cookie must not reach the next tenant), follows no redirects, reads no proxy settings from the
environment, and never sends a request a second time.
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

from gateway.lib.outbound import AddressRefused, check_url
from proxy.timing import Timing
from proxy.vendors import errors
from proxy.vendors.answer import VendorAnswer
from proxy.vendors.connections import Connections, Origin, verifying_tls
from proxy.vendors.errors import Sign
from proxy.vendors.http1 import Connection, Limits
from proxy.vendors.names import Names

__all__ = ["Limits", "Prepared", "VendorAnswer", "VendorTransport"]

log = structlog.get_logger(__name__)
SWEEP_EVERY_S = 15.0
CONNECTIONS_PER_ORIGIN = 100  # where no setting says otherwise
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "expect", "te", "accept-encoding"})


@dataclass(frozen=True, slots=True, repr=False)
class Prepared:
    """An address and headers, checked and encoded once for all requests that carry them. Holds the credential."""

    origin: Origin
    target: bytes
    head: bytes
    organization: Hashable = None  # whose share of the connections it takes

    def __repr__(self) -> str:
        return "Prepared()"


class VendorTransport:
    """Requests to vendors. Belongs to the event loop that made it."""

    def __init__(
        self,
        *,
        allow_private: bool,
        limits: Limits | None = None,
        connections_per_origin: int = CONNECTIONS_PER_ORIGIN,
        own_url: str = "",
        tls: Callable[[], ssl.SSLContext] = verifying_tls,
    ) -> None:
        self._allow_private = allow_private
        self._limits = limits or Limits()
        self._connections_per_origin = connections_per_origin
        self._own_url = own_url  # refused: calls would come back
        self._tls = tls
        self._names = Names()
        self._by_origin: dict[Origin, Connections] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def body_bytes(self) -> int:
        """How large one answer may be."""
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
        """`url` and `headers` as they will be sent, over connections of this `vendor`.

        `organization` is whose calls they are; if it `has_own_address`, its credential names the address and no other
        organization's calls go over these connections.
        Raises: VendorProblem for an address or header that cannot be.
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
        # Hashing a UUID is a call of its own, its number's is none, and places are looked up four times a call.
        holder = organization.int if isinstance(organization, UUID) else organization
        return Prepared(origin, target.encode(), b"\r\n".join(lines), holder)

    def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, *, deadline: float
    ) -> _Exchange:
        """`send` to an address that is not used again."""
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
    ) -> _Exchange:
        """`async with send(...) as answer`: one exchange, over when the block ends however it ends.

        `deadline` is in the loop's time; `on_connected` is told if this made a connection, or was handed one by an
        exchange that had just ended well; `timing` of a wait for a connection.   Raises, when entered: VendorProblem.
        """
        if body is None:
            request = b"%b %b HTTP/1.1\r\n%b\r\n\r\n" % (method.encode(), prepared.target, prepared.head)
        else:
            request = b"%b %b HTTP/1.1\r\n%b\r\nContent-Length: %d\r\n\r\n%b" % (
                *(method.encode(), prepared.target, prepared.head),
                *(len(body), body),
            )
        connections = self._connections(prepared.origin)
        return _Exchange(connections, prepared.organization, request, deadline, on_connected, timing)

    async def aclose(self) -> None:
        """Close every connection."""
        self._is_closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connections in self._by_origin.values():
            connections.abort()
        self._by_origin.clear()
        await asyncio.sleep(0)  # for the sockets to be closed

    def _connections(self, origin: Origin) -> Connections:
        found = self._by_origin.get(origin)
        if found is None:
            if self._is_closed:
                raise errors.unavailable()
            found = self._by_origin[origin] = Connections(
                origin,
                most=self._connections_per_origin,
                allow_private=self._allow_private,
                limits=self._limits,
                tls=self._tls,
                names=self._names,
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
        except Exception:  # the next round may do better
            log.exception("idle connections not closed")
        if self._by_origin:
            self._sweep_later()


class _Exchange:
    """One request and its answer, as a block."""

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

    async def __aenter__(self) -> VendorAnswer:
        has_waited = False
        connection = self._connections.take_idle(self._organization)
        if connection is None:
            connection, has_waited = await self._connections.take(self._organization, self._deadline, self._timing)
            if self._on_connected is not None:
                self._on_connected()
        self._connection = connection
        try:
            return await connection.send(self._request, self._deadline)
        except BaseException as fault:
            self._connections.give_back(connection, self._organization, may_drain=False)
            if has_waited and isinstance(fault, errors.VendorProblem) and fault.is_own_timeout:
                fault.sign = Sign.SENT_LATE  # in our own line: the vendor had less time than it is given
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            self._connections.give_back(self._connection, self._organization, may_drain=kind is None)


def _header_line(header: tuple[str, str]) -> bytes:
    name, text = header
    try:
        value = text.encode("latin-1")
    except UnicodeEncodeError:
        value = b"\n"
    if not _TOKEN.fullmatch(name) or name.lower() in _OURS or not _VALUE.fullmatch(value):
        raise errors.unavailable("The vendor's headers cannot be sent.")
    return b"%b: %b" % (name.encode(), value)
