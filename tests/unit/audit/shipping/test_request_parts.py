from __future__ import annotations

import pytest

from audit.shipping.platforms.request_parts import fits_header, host_of, with_path


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.example", "https://a.example/v1/logs"),
        ("https://a.example/", "https://a.example/v1/logs"),
        ("https://a.example:8443?key=1", "https://a.example:8443/v1/logs?key=1"),
        ("https://a.example/otlp", "https://a.example/otlp"),
        ("https://a.example//", "https://a.example//"),
    ],
)
def test_a_path_is_added_only_where_there_is_none(url: str, expected: str) -> None:
    assert with_path(url, "/v1/logs") == expected


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://A.Example/x", "a.example"),
        ("https://a.example:443", "a.example"),
        ("https://a.example:8443", "a.example:8443"),
        ("https://me@a.example", "me@a.example"),
        ("https://a.e\u212aample", ""),
    ],
)
def test_hosts(url: str, host: str) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize("text", ["a", "Bearer a b", "~!", "x" * 4000])
def test_text_of_a_header(text: str) -> None:
    assert fits_header(text)


@pytest.mark.parametrize("text", ["", " ", " a", "a ", "a\nb", "a\r\nX-Evil: 1", "a\n", "a\tb", "a\0", "é", "\x7f"])
def test_text_that_would_break_a_header(text: str) -> None:
    assert not fits_header(text)
