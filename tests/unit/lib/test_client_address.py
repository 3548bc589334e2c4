"""Whose address a request came from."""

from __future__ import annotations

import pytest

from gateway.lib.client_address import client_address, limit_key

TRUSTED = ("10.0.0.0/8", "192.0.2.1")


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("203.0.113.9", None, "203.0.113.9"),
        ("203.0.113.9", "1.2.3.4", "203.0.113.9"),  # the peer is no proxy of ours: what it claims is not read
        ("10.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("10.0.0.1", "6.6.6.6, 198.51.100.7", "198.51.100.7"),  # the left one is the attacker's choice
        ("10.0.0.1", "6.6.6.6, 198.51.100.7, 10.0.0.2", "198.51.100.7"),
        ("10.0.0.1", "nonsense", "10.0.0.1"),
        ("10.0.0.1", "6.6.6.6, nonsense, 10.0.0.2", "10.0.0.1"),
        ("192.0.2.1", "2001:db8::5", "2001:db8::5"),
        ("10.0.0.1", "10.0.0.2", "10.0.0.1"),
        ("::ffff:10.0.0.1", "198.51.100.7", "198.51.100.7"),  # a socket for both families
    ],
)
def test_rightmost_hop_that_is_not_ours(peer: str, forwarded: str | None, expected: str) -> None:
    assert client_address(peer, forwarded, TRUSTED) == expected


def test_without_trusted_proxies_the_peer_counts() -> None:
    assert client_address("203.0.113.9", "1.2.3.4", ()) == "203.0.113.9"


def test_a_limit_counts_a_whole_ipv6_household() -> None:
    assert limit_key("2001:db8:1:2:aaaa::1") == limit_key("2001:db8:1:2:bbbb::2") == "2001:db8:1:2::/64"
    assert limit_key("2001:db8:1:3::1") != limit_key("2001:db8:1:2::1")
    assert limit_key("203.0.113.9") == "203.0.113.9"
    assert limit_key("unix") == "unix"


def test_ipv4_peers_of_a_socket_for_both_families_are_distinguished() -> None:
    assert limit_key("::ffff:203.0.113.9") == limit_key("203.0.113.9")
    assert limit_key("::ffff:203.0.113.9") != limit_key("::ffff:198.51.100.7")
