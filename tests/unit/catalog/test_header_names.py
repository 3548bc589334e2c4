"""Header names: credentials yes, framing and protocol never."""

import pytest

from gateway.catalog.header_names import header_name_fault


@pytest.mark.parametrize(
    "name", ["Authorization", "X-Api-Key", "x-ref-api-key", "CONTEXT7_API_KEY", "x-pax8-mcp-token"]
)
def test_credential_headers_are_allowed(name: str) -> None:
    assert header_name_fault(name) == ""


@pytest.mark.parametrize("name", ["", "X Api", "X-Api:", "X\r\nY", "Ünicode", "X-Api\n", "(x)", "x" * 101])
def test_what_is_not_a_token_is_refused(name: str) -> None:
    assert "header name" in header_name_fault(name)


TRANSPORT = """
    Host content-length Transfer-Encoding Connection Mcp-Session-Id MCP-Protocol-Version Accept Content-Type
    Cookie TE Upgrade Proxy-Authorization X-Forwarded-For Origin mcp-method
"""


@pytest.mark.parametrize("name", TRANSPORT.split())
def test_headers_of_the_transport_are_refused(name: str) -> None:
    assert "sets itself" in header_name_fault(name)
