"""Pure: the address of the client, behind trusted proxies and only behind those."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

# The longest spelling of an address with its interface. Longer text of strangers must not fill the cache below.
MAX_ADDRESS_CHARACTERS = 64


def client_address(peer: str, forwarded_for: str | None, trusted_proxies: Sequence[str]) -> str:
    """The rightmost hop that is no trusted proxy; the peer itself when it is not trusted. Spec: D21"""
    if not forwarded_for or not is_trusted_proxy(peer, trusted_proxies):
        return peer
    # The client chooses the leftmost entries, so nothing left of an untrusted hop is believed.
    for hop in reversed([part.strip() for part in forwarded_for.split(",")]):
        if not _is_address(hop):
            return peer
        if not is_trusted_proxy(hop, trusted_proxies):
            return hop
    return peer


def is_trusted_proxy(peer: str, trusted_proxies: Sequence[str]) -> bool:
    """Whether proxy headers of this peer are believed. Spec: D21"""
    return bool(trusted_proxies) and _is_address(peer) and _is_among(peer, tuple(trusted_proxies))


def limit_key(address: str) -> str:
    """The key of rate limits: an IPv4 address, or the /64 of an IPv6 one, which a household owns. Spec: D21"""
    if not _is_address(address):
        return address
    ip = _ip(address)
    return str(ipaddress.ip_network((ip, 64), strict=False)) if ip.version == 6 else str(ip)


def address_key(address: str) -> str:
    return f"ip:{limit_key(address)}"


def _ip(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    # A dual-stack socket names IPv4 peers ::ffff:1.2.3.4, which would put all of them into one /64.
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
