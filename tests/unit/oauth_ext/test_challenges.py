"""The WWW-Authenticate header, byte for byte."""

from __future__ import annotations

import re

from oauth_ext.challenges import challenge

BASE = "https://gateway.example"


def test_without_credentials_there_is_no_error() -> None:
    assert challenge(BASE) == (
        'Bearer realm="mcp", resource_metadata="https://gateway.example/.well-known/oauth-protected-resource/v1/mcp",'
        ' scope="mcp:all"'
    )


def test_invalid_token_on_a_vendor_endpoint() -> None:
    assert challenge(BASE, "/v1/acme/mcp", "mcp:acme", "invalid_token", "The access token has expired.") == (
        'Bearer realm="mcp", '
        'resource_metadata="https://gateway.example/.well-known/oauth-protected-resource/v1/acme/mcp", '
        'scope="mcp:acme", error="invalid_token", error_description="The access token has expired."'
    )


def test_insufficient_scope_leads_with_the_error() -> None:
    assert challenge(BASE, scope="mcp:acme mcp:globex", error="insufficient_scope", description="Not for Globex.") == (
        'Bearer error="insufficient_scope", scope="mcp:acme mcp:globex", '
        'resource_metadata="https://gateway.example/.well-known/oauth-protected-resource/v1/mcp", '
        'error_description="Not for Globex."'
    )


def test_nothing_ends_the_quotes_or_the_line() -> None:
    attack = 'a"\r\nSet-Cookie: x=1\x00 b\\", error="none é'
    value = challenge(BASE, scope=attack, error="invalid_token", description=attack)
    assert value.isascii()
    assert value.isprintable()
    assert re.fullmatch(r'Bearer (\w+="[^"\\]*")(, \w+="[^"\\]*")*', value)
    assert value.count('error="') == 1


def test_a_description_alone_is_not_told() -> None:
    assert "error_description" not in challenge(BASE, description="ignored")
