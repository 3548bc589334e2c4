"""The one spelling of our addresses."""

from __future__ import annotations

import pytest

from oauth_ext import resources

BASE = "https://gateway.example"


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("https://gateway.example", "/v1/mcp"),
        ("https://gateway.example/", "/v1/mcp"),
        ("https://gateway.example/v1/mcp", "/v1/mcp"),
        ("https://gateway.example/v1/mcp/", "/v1/mcp"),
        ("HTTPS://Gateway.Example:443/v1/mcp?session=1", "/v1/mcp"),
        ("https://gateway.example/v1/acme/mcp", "/v1/acme/mcp"),
        ("https://gateway.example/v1/acme-rmm/mcp/", "/v1/acme-rmm/mcp"),
    ],
)
def test_spellings_of_our_addresses(sent: str, meant: str) -> None:
    found = resources.canonical(BASE, sent)
    assert found == f"{BASE}{meant}"
    assert resources.is_ours(BASE, found)


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "mcp",
        "/v1/mcp",
        "http://gateway.example/v1/mcp",
        "https://gateway.example:8443/v1/mcp",
        "https://gateway.example.evil.test/v1/mcp",
        "https://evil@gateway.example/v1/mcp",
        "https://gateway.example@evil.test/v1/mcp",
        "https://gateway.example/v1/mcp#part",
        "https://gateway.example/v1/mcp/more",
        "https://gateway.example/V1/MCP",
        "https://gateway.example/v1/Acme/mcp",
        "https://gateway.example/v1/../v1/mcp",
        "https://gateway.example:port/v1/mcp",
        "https://[gateway.example/v1/mcp",
        "https://gateway.example//v1/mcp",
    ],
)
def test_other_addresses_are_foreign(sent: str) -> None:
    assert resources.canonical(BASE, sent) is None
    assert not resources.is_ours(BASE, sent)


def test_a_base_url_with_a_port_is_told_apart_from_one_without() -> None:
    assert resources.canonical("http://127.0.0.1:8000", "http://127.0.0.1:8000/") == "http://127.0.0.1:8000/v1/mcp"
    assert resources.canonical("http://127.0.0.1:8000", "http://127.0.0.1/") is None


def test_vendor_of() -> None:
    assert resources.vendor_of(BASE, resources.for_vendor(BASE, "acme")) == "acme"
    assert resources.vendor_of(BASE, resources.unified(BASE)) is None
    assert resources.vendor_of(BASE, "https://evil.test/v1/acme/mcp") is None
