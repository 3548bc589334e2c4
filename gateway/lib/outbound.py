"""The addresses the service may connect to. Every outbound address is checked here after resolution."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Collection
from functools import cache
from urllib.parse import SplitResult, urlsplit

# A name is resolved once, every address is checked, and the connection goes to the checked address: a second
# resolution could return another one (DNS rebinding).

# Cloud metadata services, which hand out credentials: link-local, Azure, Alibaba, Oracle, AWS, Google.
_METADATA = tuple(
    ipaddress.ip_network(network)
    for network in (
        "169.254.0.0/16",
        "168.63.129.16/32",
        "100.100.100.200/32",
        "192.0.0.192/32",
        "fd00:ec2::/32",
        "fd20:ce::254/128",
    )
)


class AddressRefused(OSError):
    """Names no address, so the text may be shown."""

    def __init__(self) -> None:
        super().__init__("this address is not allowed")


def may_connect(address: str, *, allow_private: bool) -> bool:
    """Check a resolved address: cloud metadata and link-local never, private ones with `allow_private`."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        ip = ip.ipv4_mapped or ip.sixtofour or ip
    if ip.is_multicast or ip.is_unspecified or ip.is_link_local or (ip.is_reserved and not ip.is_loopback):
        return False
    if any(ip in network for network in _METADATA if network.version == ip.version):
        return False
    if isinstance(ip, ipaddress.IPv6Address) and ip.is_site_local:  # fec0::/10, which `is_global` includes
        return allow_private
    return allow_private or ip.is_global


def check_addresses(addresses: Collection[str], *, allow_private: bool) -> None:
    """Check the answer of a resolver: one forbidden address refuses the name. Raises: AddressRefused."""
    if not addresses or not all(may_connect(address, allow_private=allow_private) for address in addresses):
        raise AddressRefused


def lookup(host: str, port: int) -> list[str]:
    """Blocks until the system's resolver returns. Raises: OSError (socket.gaierror is one), UnicodeError."""
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in rows))


@cache
def verifying_tls() -> ssl.SSLContext:
    # Once per process: loading the certificates costs tens of milliseconds.
    return ssl.create_default_context()


def check_url(url: str, *, allow_private: bool, own_url: str = "") -> None:
    """Refuse other schemes, user info, forbidden numeric hosts, and the service's own URL. Raises: AddressRefused."""
    parts = urlsplit(url)
    _endpoint(parts)
    if is_own(url, own_url):
        raise AddressRefused
    host = parts.hostname or ""
    if parts.scheme not in {"http", "https"} or not host or parts.username is not None or host.endswith("."):
        raise AddressRefused
    if parts.scheme == "http" and not allow_private:
        raise AddressRefused
    if _looks_numeric(host):
        try:
            ipaddress.ip_address(host)
        except ValueError:
            raise AddressRefused from None  # 0x7f.1, 2130706433 and other spellings of inet_aton
        if not may_connect(host, allow_private=allow_private):
            raise AddressRefused


def is_own(url: str, own_url: str) -> bool:
    """Whether a request to `url` would come back to the service at `own_url`. Raises: AddressRefused."""
    return bool(own_url) and _endpoint(urlsplit(url)) == _endpoint(urlsplit(own_url))


def _endpoint(parts: SplitResult) -> tuple[str | None, int | None]:
    """Raises: AddressRefused."""
    try:
        port = parts.port
    except ValueError:
        raise AddressRefused from None
    return parts.hostname, None if port in (80, 443) else port


def _looks_numeric(host: str) -> bool:
    last = host.rsplit(".", 1)[-1]
    return ":" in host or last.isdigit() or last.lower().startswith("0x")
