"""Pure: the address a request came from, behind proxies we trust and only behind those."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

# The longest spelling of an address, with an interface's name behind it. Longer text of strangers is not remembered.
MAX_ADDRESS_CHARACTERS = 64


def client_address(peer: str, forwarded_for: str | None, trusted_proxies: Sequence[str]) -> str:
    """The rightmost hop that is no trusted proxy; the peer itself when it is not trusted. Spec: D21

    The leftmost entry is whatever the client chose to write, so nothing left of an untrusted hop is believed.
    """
    if not forwarded_for or not is_trusted_proxy(peer, trusted_proxies):
        return peer
    for hop in reversed([part.strip() for part in forwarded_for.split(",")]):
        if not _is_address(hop):
            return peer
        if not is_trusted_proxy(hop, trusted_proxies):
            return hop
    return peer


def is_trusted_proxy(peer: str, trusted_proxies: Sequence[str]) -> bool:
    """Whether the headers that proxies add are believed from this peer. Spec: D21"""
    return bool(trusted_proxies) and _is_address(peer) and _is_among(peer, tuple(trusted_proxies))


def limit_key(address: str) -> str:
    """What a limit counts for this address: the /64 of an IPv6 one, since a household owns that many. Spec: D21"""
    if not _is_address(address):
        return address
    ip = _ip(address)
    return str(ipaddress.ip_network((ip, 64), strict=False)) if ip.version == 6 else str(ip)


def address_key(address: str) -> str:
    """The key of whoever comes from this address without saying who they are, beside the ids of those who do."""
    return f"ip:{limit_key(address)}"


def _ip(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """A socket for both families names IPv4 peers as ::ffff:1.2.3.4, which would put all of them into one /64."""
    ip = ipaddress.ip_address(address)
    return (ip.ipv4_mapped or ip) if isinstance(ip, ipaddress.IPv6Address) else ip


def _is_address(text: str) -> bool:
    if len(text) > MAX_ADDRESS_CHARACTERS:
        return False
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1024)
def _is_among(address: str, trusted: tuple[str, ...]) -> bool:
    ip = _ip(address)
    networks = [ipaddress.ip_network(entry, strict=False) for entry in trusted]
    return any(ip.version == network.version and ip in network for network in networks)
