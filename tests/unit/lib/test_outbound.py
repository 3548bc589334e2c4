"""Where the service may connect to."""

from __future__ import annotations

import ssl

import pytest

from gateway.lib.outbound import AddressRefused, check_addresses, check_url, may_connect, verifying_tls

PUBLIC = ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"]
PRIVATE = ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "::1", "fd12::1", "::ffff:10.0.0.1"]
NEVER = [
    "169.254.169.254",
    "::ffff:169.254.169.254",
    "fe80::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "fd20:ce::254",
    "168.63.129.16",
    "100.100.100.200",
    "192.0.0.192",
    "::ffff:100.100.100.200",
    "64:ff9b::7f00:1",
    "64:ff9b::5db8:d822",
    "2002:a9fe:a9fe::1",
    "0.0.0.0",
    "::",
    "224.0.0.1",
    "ff02::1",
    "240.0.0.1",
    "not an address",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_may_be_reached(address: str) -> None:
    assert may_connect(address, allow_private=False)


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_only_where_they_are_allowed(address: str) -> None:
    assert not may_connect(address, allow_private=False)
    assert may_connect(address, allow_private=True)


@pytest.mark.parametrize("address", NEVER)
def test_metadata_link_local_and_the_like_never(address: str) -> None:
    assert not may_connect(address, allow_private=True)


@pytest.mark.parametrize(
    "url", ["https://vendor.example/mcp", "https://93.184.216.34/mcp", "https://[2606:2800:220:1:248:1893:25c8:1946]/"]
)
def test_ordinary_addresses_pass(url: str) -> None:
    check_url(url, allow_private=False)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://vendor.example/",
        "http://vendor.example/mcp",
        "https://user:secret@vendor.example/",
        "https://@vendor.example/",
        "https://vendor.example./",
        "https://vendor.example:99999/",
        "https:///mcp",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:169.254.169.254]/",
        "https://0x7f.1/",
        "https://2130706433/",
        "https://0177.0.0.1/",
        "https://169.254.169.254/latest/meta-data",
    ],
)
def test_what_no_resolver_sees_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused):
        check_url(url, allow_private=False)


@pytest.mark.parametrize(
    "url",
    [
        "https://gateway.example/v1/mcp",
        "https://GATEWAY.example:443/",
        "http://gateway.example/mcp",
        "https://gateway.example:99999/",
    ],
)
def test_our_own_address_is_refused(url: str) -> None:
    for own_url in ("https://gateway.example", "https://gateway.example:443"):
        with pytest.raises(AddressRefused):
            check_url(url, allow_private=True, own_url=own_url)


def test_neighbours_of_our_own_address_are_not_it() -> None:
    for url in ("https://gateway.example:8443/mcp", "https://mcp.gateway.example/mcp", "https://gateway.example.org/"):
        check_url(url, allow_private=False, own_url="https://gateway.example")
    check_url("http://127.0.0.1:9100/mcp", allow_private=True, own_url="http://127.0.0.1:8000")


def test_plain_http_and_this_computer_where_private_is_allowed() -> None:
    check_url("http://127.0.0.1:9100/mcp", allow_private=True)
    with pytest.raises(AddressRefused):
        check_url("http://169.254.169.254/", allow_private=True)


@pytest.mark.parametrize(
    ("addresses", "allowed"),
    [
        (("93.184.216.34",), True),
        (("93.184.216.34", "10.0.0.1"), False),  # one bad answer is enough: the connection might take that one
        (("169.254.169.254",), False),
        ((), False),
    ],
)
def test_every_answer_of_the_resolver_is_judged(addresses: tuple[str, ...], allowed: bool) -> None:
    if allowed:
        check_addresses(addresses, allow_private=False)
    else:
        with pytest.raises(AddressRefused) as refused:
            check_addresses(addresses, allow_private=False)
        assert not any(address in str(refused.value) for address in addresses)


def test_certificates_are_checked_in_service() -> None:
    context = verifying_tls()
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert verifying_tls() is context, "one for all: making it costs more than a hundred calls"
