from __future__ import annotations

import pytest

from gateway.lib.addresses import split_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9464", ("127.0.0.1", 9464)),
        ("[::1]:9464", ("::1", 9464)),
        (":9464", ("0.0.0.0", 9464)),
        ("metrics.internal:1", ("metrics.internal", 1)),
        ("::1:9464", None),
        ("127.0.0.1", None),
        ("9464", None),
        ("127.0.0.1:0", None),
        ("127.0.0.1:65536", None),
        ("127.0.0.1:²", None),
        ("", None),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: tuple[str, int] | None) -> None:
    assert split_address(text) == address
