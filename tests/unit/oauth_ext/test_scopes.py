"""Scopes: spelling and reach."""

from __future__ import annotations

import pytest

from oauth_ext import scopes


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("", ()),
        ("mcp", ("mcp",)),
        ("mcp:all", ("mcp:all",)),
        ("mcp:acme-rmm mcp", ("mcp:acme-rmm", "mcp")),
        ("  mcp:a  mcp:a mcp:b ", ("mcp:a", "mcp:b")),
    ],
)
def test_parse_keeps_order_and_drops_repeats(text: str, parsed: tuple[str, ...]) -> None:
    assert scopes.parse(text) == parsed


@pytest.mark.parametrize(
    "text", ["admin", "mcp:", "mcp:Acme", "mcp:-a", "mcp:a_b", "MCP", "mcp:a:b", "mcp:a\tmcp:b", "mcp:" + "a" * 32]
)
def test_parse_refuses_what_is_not_ours(text: str) -> None:
    with pytest.raises(ValueError, match="unknown"):
        scopes.parse(f"mcp {text}")
    assert not scopes.registered(text)


def test_parse_refuses_a_list_that_would_outgrow_a_header() -> None:
    with pytest.raises(ValueError, match="more than 50"):
        scopes.parse(" ".join(f"mcp:v{number}" for number in range(51)))


@pytest.mark.parametrize(
    ("granted", "vendor", "covered"),
    [
        ({"mcp"}, "acme", True),
        ({"mcp:all"}, "acme", True),
        ({"mcp:acme"}, "acme", True),
        ({"mcp:globex", "mcp:acme"}, "acme", True),
        ({"mcp:globex", "mcp:all"}, "acme", True),
        ({"mcp:globex"}, "acme", False),
        ({"mcp:acme-rmm"}, "acme", False),
        (set(), "acme", False),
    ],
)
def test_covers(granted: set[str], vendor: str, covered: bool) -> None:
    assert scopes.covers(frozenset(granted), vendor) is covered


def test_vendor_of() -> None:
    assert scopes.vendor_of(scopes.for_vendor("acme")) == "acme"
    assert scopes.vendor_of("mcp") is scopes.vendor_of("mcp:all") is scopes.vendor_of("openid") is None
