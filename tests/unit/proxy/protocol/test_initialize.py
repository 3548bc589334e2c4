"""The answer to `initialize`, also read by the official SDK's own types."""

import pytest
from mcp.types import InitializeResult

from proxy.protocol.initialize import initialize_result
from proxy.protocol.versions import NEWEST_FIRST

BASE_URL = "https://tools.example.com"


def answer(version: object = "2025-11-25", vendor_names: tuple[str, ...] = ("Acme RMM", "Globex")) -> dict[str, object]:
    why = "" if vendor_names else "No vendor is connected here."
    return initialize_result(
        version,
        capabilities={"tools": {"listChanged": False}, "completions": {}},
        base_url=BASE_URL,
        vendor_names=vendor_names,
        gateway_version="1.2.3",
        why_none=why,
    )


@pytest.mark.parametrize("version", NEWEST_FIRST)
def test_the_version_asked_for_is_echoed(version: str) -> None:
    assert answer(version)["protocolVersion"] == version


@pytest.mark.parametrize("version", [None, "1999", "2026-07-28"])
def test_any_other_version_yields_the_fallback(version: object) -> None:
    assert answer(version)["protocolVersion"] == "2025-03-26"


def test_we_offer_what_the_vendors_do() -> None:
    assert answer()["capabilities"] == {"tools": {"listChanged": False}, "completions": {}}


@pytest.mark.parametrize("version", NEWEST_FIRST)
def test_the_server_introduces_itself_to_every_version(version: str) -> None:
    assert answer(version)["serverInfo"] == {
        "name": "mcp-gateway",
        "title": "Vendor Tool Gateway",
        "version": "1.2.3",
        "description": "One MCP endpoint for the tools of every vendor your organization has connected.",
        "icons": [{"src": f"{BASE_URL}/static/icon.svg", "mimeType": "image/svg+xml", "sizes": ["any"]}],
        "websiteUrl": BASE_URL,
    }


def test_the_instructions_name_the_vendors_in_their_order() -> None:
    assert "these vendors: Acme RMM, Globex." in str(answer()["instructions"])


def test_without_vendors_the_instructions_say_why() -> None:
    assert answer(vendor_names=())["instructions"] == (
        "There are no tools yet. No vendor is connected here. Tools appear in tools/list as soon as this changes."
    )


@pytest.mark.parametrize("vendor_names", [(), ("Acme",)])
def test_the_official_types_accept_it(vendor_names: tuple[str, ...]) -> None:
    read = InitializeResult.model_validate(answer(vendor_names=vendor_names))
    assert read.model_dump(by_alias=True, exclude_none=True) == answer(vendor_names=vendor_names)
