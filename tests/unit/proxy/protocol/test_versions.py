"""The version of an exchange, and the refusal that lets newer clients fall back."""

import json

import pytest

from proxy.protocol import versions
from proxy.protocol.versions import UnsupportedVersion, batches_allowed, check_header, negotiate

NEWEST_FIRST = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]


def test_four_versions_newest_first() -> None:
    assert list(versions.NEWEST_FIRST) == NEWEST_FIRST
    assert sorted(NEWEST_FIRST, reverse=True) == NEWEST_FIRST
    assert versions.NEWEST == "2025-11-25"


@pytest.mark.parametrize("version", NEWEST_FIRST)
def test_a_known_version_is_echoed(version: str) -> None:
    assert negotiate(version) == version


@pytest.mark.parametrize("requested", [None, "1999", "2026-07-28", "", 20251125, ["2025-11-25"], {}, "2025-11-25 "])
def test_any_other_request_yields_the_fallback(requested: object) -> None:
    assert negotiate(requested) == "2025-03-26"


@pytest.mark.parametrize("version", NEWEST_FIRST)
@pytest.mark.parametrize("method", ["tools/call", None])
def test_a_known_header_counts(version: str, method: str | None) -> None:
    assert check_header(version, method) == version


def test_no_header_means_the_fallback() -> None:
    assert check_header(None, "tools/call") == "2025-03-26"


@pytest.mark.parametrize("value", ["2026-07-28", "1999-01-01", "", "2025-11-25, 2025-11-25"])
@pytest.mark.parametrize("method", ["server/discover", None])
def test_an_unknown_header_is_refused(value: str, method: str | None) -> None:
    assert check_header(value, method) == UnsupportedVersion(value)


@pytest.mark.parametrize("value", ["2026-07-28", "2025-11-25", "nonsense"])
def test_the_header_says_nothing_on_initialize(value: str) -> None:
    assert check_header(value, "initialize") == "2025-03-26"


def test_the_refusal_is_the_one_clients_fall_back_on() -> None:
    assert UnsupportedVersion("2026-07-28").body("discover-1") == (
        b'{"jsonrpc":"2.0","id":"discover-1","error":{"code":-32602,"message":"Unsupported protocol version",'
        b'"data":{"supported":["2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"2026-07-28"}}}'
    )
    assert json.loads(UnsupportedVersion("x").body(None))["id"] is None


def test_the_refusal_repeats_a_little_plain_text_only() -> None:
    refusal = json.loads(UnsupportedVersion("é\udcff" + "x" * 8_000).body(1))
    assert refusal["error"]["data"]["requested"] == "??" + "x" * 62


@pytest.mark.parametrize(
    ("version", "allowed"),
    [("2025-11-25", False), ("2025-06-18", False), ("2025-03-26", True), ("2024-11-05", True)],
)
def test_batches_ended_with_2025_06_18(version: str, allowed: bool) -> None:
    assert batches_allowed(version) is allowed


def test_a_request_without_header_may_be_a_batch() -> None:
    version = check_header(None, None)
    assert isinstance(version, str)
    assert batches_allowed(version)
