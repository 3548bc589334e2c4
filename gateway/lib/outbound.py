"""Where the service may connect to. Every outbound address passes here after resolution, whoever typed the name.

A name is resolved once, every answer is judged, and the connection goes to the judged address: a second resolution
could say something else (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit

# Where clouds answer their machines with credentials: the usual link-local ones, Azure, Alibaba, Oracle, AWS, Google.
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
    """The name leads to an address that the service must not reach. Names no address: the text may be shown."""

    def __init__(self) -> None:
        super().__init__("this address is not allowed")


def may_connect(address: str, *, allow_private: bool) -> bool:
    """Whether one resolved address may be reached. Cloud metadata and link-local never; private only when allowed."""
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
    if isinstance(ip, ipaddress.IPv6Address) and ip.is_site_local:  # fec0::/10, which counts as global here
        return allow_private
    return allow_private or ip.is_global


def check_url(url: str, *, allow_private: bool, own_url: str = "") -> None:
    """Refuse what no resolver sees: other schemes, user info, and addresses written as numbers.

    `own_url` is the service's own address, where calls would come back to it.
    Raises: AddressRefused.
    """
    parts = urlsplit(url)
    if own_url and _place(parts) == _place(urlsplit(own_url)):
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
            raise AddressRefused from None  # 0x7f.1, 2130706433 and other spellings that only inet_aton reads
        if not may_connect(host, allow_private=allow_private):
            raise AddressRefused


def _place(parts: SplitResult) -> tuple[str | None, int | None]:
    """The target of requests, for either spelling of the scheme. Raises: AddressRefused."""
    try:
        port = parts.port
    except ValueError:
        raise AddressRefused from None
    return parts.hostname, None if port in (80, 443) else port


def _looks_numeric(host: str) -> bool:
    last = host.rsplit(".", 1)[-1]
    return ":" in host or last.isdigit() or last.lower().startswith("0x")
