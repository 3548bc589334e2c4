"""The demo vendor's catalog entry: what the contract names, and tools that exist."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from demo.catalog import render_catalog
from demo.vendor_server import create_app
from tests.unit.demo.vendor_session import VendorSession

# Contract §4, and the optional table of vendors to try.
VENDOR_KEYS = {"slug", "name", "url", "tool_prefix", "category", "docs_url", "timeout_seconds"}
VENDOR_TABLES = {"headers", "fields", "validation", "tools", "sample"}


@pytest.mark.parametrize(
    ("port", "host", "url"),
    [
        (9100, "127.0.0.1", "http://127.0.0.1:9100/mcp"),
        (40123, "localhost", "http://localhost:40123/mcp"),
        (40123, "::1", "http://[::1]:40123/mcp"),
    ],
)
def test_entry_carries_the_address(port: int, host: str, url: str) -> None:
    (vendor,) = tomllib.loads(render_catalog(port, host))["vendor"]
    assert vendor["url"] == url
    assert set(vendor) == VENDOR_KEYS | VENDOR_TABLES
    assert (vendor["slug"], vendor["tool_prefix"]) == ("acme", "acme")
    assert vendor["headers"] == [{"name": "X-Api-Key", "value": "{apiKey}"}]
    (field,) = vendor["fields"]
    assert (field["name"], field["secret"], field["required"]) == ("apiKey", True, True)


@pytest.mark.parametrize(
    ("port", "host"), [(0, "127.0.0.1"), (65536, "127.0.0.1"), (9100, ""), (9100, 'x"\n[[vendor]]'), (9100, "a/b")]
)
def test_what_could_not_stand_in_an_address_is_refused(port: int, host: str) -> None:
    with pytest.raises(ValueError, match="is not a"):
        render_catalog(port, host)


def test_entry_names_read_only_tools_of_the_vendor(tmp_path: Path) -> None:
    (vendor,) = tomllib.loads(render_catalog(9100))["vendor"]
    with VendorSession(create_app(data=tmp_path)) as session:
        read_only = {tool["name"] for tool in session.tools() if tool["annotations"]["readOnlyHint"]}
    assert {name for name, rule in vendor["tools"].items() if rule["read_only"]} == set(vendor["tools"])
    assert {*vendor["tools"], vendor["validation"]["tool"]} <= read_only
