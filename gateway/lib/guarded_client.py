"""HTTP requests outside the call path, to addresses that others choose. docs/decisions/0016

The only module that imports httpx. A request has a connection of its own to an address that was checked after
resolution, one deadline and two caps on its response. Redirects, cookies and proxies play no part.
"""

from __future__ import annotations

import ssl
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpcore
import httpx

from gateway.lib.outbound import AddressRefused, check_addresses, check_url, lookup

HEAD_BYTES = 64 * 1024  # beyond max_bytes: status lines, headers and the framing of chunks
_HEADERS = {"User-Agent": "mcp-gateway", "Accept-Encoding": "gzip", "Connection": "close"}
# By OpenSSL's X509_V_ERR numbers; all others mean that no known authority has signed it.
_CERTIFICATE_FAULTS = {
    9: "the certificate is not valid yet",
    10: "the certificate has expired",
    62: "the certificate is for another name",
    64: "the certificate is for another address",
}


class OutboundError(Exception):
    """There is no usable response. The text repeats neither the address nor the response."""


class CertificateRefused(OutboundError):
    """The server's certificate does not prove its name, so nothing was sent. The text says why, to end a sentence."""


class OutboundTimeout(OutboundError):
    """The response was not complete at the deadline."""


class BadResponse(OutboundError):
    """The response breaks HTTP or its own content coding."""


class ResponseTooLarge(OutboundError):
    """The response exceeds its cap, on the wire or decompressed."""


@dataclass(frozen=True, slots=True)
class Response:
    """The names of `headers` match in any case; `body` is decompressed."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


def send(
    method: str,
    url: str,
    *,
    allow_private: bool,
    timeout_s: float,
    max_bytes: int,
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
    body: bytes | None = None,
    ca_file: str = "",
) -> Response:
    """Sends `form` or `body`, if any. `ca_file` takes the place of the system's authorities.

    Blocks at most `timeout_s`, plus the time of the system's resolver, which takes no deadline.

    Raises: AddressRefused; CertificateRefused, OutboundTimeout, ResponseTooLarge and BadResponse, which are
    OutboundErrors.
    """
    network = _GuardedNetwork(
        allow_private=allow_private, deadline=time.monotonic() + timeout_s, bytes_left=max_bytes + HEAD_BYTES
    )
    target = _checked(url, allow_private=allow_private)
    try:
        with (
            httpx.Client(
                transport=_GuardedTransport(network, _tls_of(ca_file) if ca_file else _tls()), trust_env=False
            ) as client,
            client.stream(method, target, headers={**_HEADERS, **(headers or {})}, data=form, content=body) as response,
        ):
            return Response(response.status_code, response.headers, _read(response, max_bytes))
    except httpx.TimeoutException as fault:
        raise OutboundTimeout(type(fault).__name__) from None
    except (httpx.ProtocolError, zlib.error) as fault:
        raise BadResponse(type(fault).__name__) from None
    except httpx.HTTPError as fault:
        raise OutboundError(type(fault).__name__) from None


def _checked(url: str, *, allow_private: bool) -> httpx.URL:
    try:
        # The form that is connected to is checked, so two parsers cannot read the address differently.
        target = httpx.URL(url)
        check_url(str(target), allow_private=allow_private)
    except (httpx.InvalidURL, ValueError):
        raise AddressRefused from None
    return target


def _read(response: httpx.Response, max_bytes: int) -> bytes:
    """Raises: ResponseTooLarge, BadResponse, zlib.error."""
    # httpx would decompress each chunk whole: a thousand times its size, and again for each coding in a list.
    coding = response.headers.get("Content-Encoding", "identity").lower()
    if coding not in {"identity", "gzip"}:
        raise BadResponse("content coding")
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 16) if coding == "gzip" else None
    body = bytearray()
    for chunk in response.iter_raw():
        body += inflate.decompress(chunk, max_bytes + 1 - len(body)) if inflate else chunk
        if len(body) > max_bytes:
            raise ResponseTooLarge
    if inflate and (not inflate.eof or inflate.unused_data):
        raise BadResponse("content coding")
    return bytes(body)


@cache
def _tls() -> ssl.SSLContext:
    # httpcore changes the context of each connection, so this one is apart from the call path's.
    return ssl.create_default_context()


@cache
def _tls_of(ca_file: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file)


class _GuardedTransport(httpx.HTTPTransport):
    def __init__(self, network: httpcore.NetworkBackend, tls: ssl.SSLContext) -> None:
        super().__init__(verify=tls, trust_env=False)
        # httpx has no parameter for the network of its pool.
        self._pool = httpcore.ConnectionPool(ssl_context=tls, network_backend=network)


class _GuardedNetwork(httpcore.NetworkBackend):
    """One request's connection: to a checked address, with the name in SNI and certificate check."""

    def __init__(self, *, allow_private: bool, deadline: float, bytes_left: int) -> None:
        self._allow_private = allow_private
        self._deadline = deadline
        self._bytes_left = bytes_left
        self._tcp = httpcore.SyncBackend()

    def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.NetworkStream:
        try:
            addresses = lookup(host, port)
        except (OSError, UnicodeError) as fault:
            raise httpcore.ConnectError(type(fault).__name__) from None
        check_addresses(addresses, allow_private=self._allow_private)
        *others, last = addresses
        for position, address in enumerate(others):
            # Equal shares of the time that is left.
            with suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                return self._open(address, port, self.left_s() / (len(addresses) - position))
        return self._open(last, port, self.left_s())

    def _open(self, address: str, port: int, timeout_s: float) -> httpcore.NetworkStream:
        return _BoundedStream(self._tcp.connect_tcp(address, port, timeout_s), self)

    def left_s(self) -> float:
        """Raises: httpcore.ReadTimeout after the deadline."""
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise httpcore.ReadTimeout
        return left_s

    def count(self, received: int) -> None:
        self._bytes_left -= received
        if self._bytes_left < 0:
            raise ResponseTooLarge


class _BoundedStream(httpcore.NetworkStream):
    """Ends every wait at the request's deadline, and counts what arrives."""

    # httpx's own timeouts begin anew with each read: a byte now and then would hold the thread.
    def __init__(self, stream: httpcore.NetworkStream, network: _GuardedNetwork) -> None:
        self._stream = stream
        self._network = network

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        received = self._stream.read(max_bytes, self._network.left_s())
        self._network.count(len(received))
        return received

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._network.left_s())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            secured = self._stream.start_tls(ssl_context, server_hostname, self._network.left_s())
        except httpcore.ConnectError as fault:
            if isinstance(fault.__cause__, ssl.SSLCertVerificationError):
                raise CertificateRefused(_words_of(fault.__cause__)) from None
            raise
        return _BoundedStream(secured, self._network)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _words_of(fault: ssl.SSLCertVerificationError) -> str:
    return _CERTIFICATE_FAULTS.get(fault.verify_code, "the certificate is not trusted")
