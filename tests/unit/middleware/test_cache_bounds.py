"""The process remembers what strangers send only where it is short."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gateway.hot_path_app import HotPathApp
from gateway.hot_path_request import HotPathRequest, _cached_meta_key
from gateway.lib import client_address
from gateway.middleware.refusal import Refusal
from proxy.views.origin import cors_headers
from tests.unit.middleware.test_hot_path_request import make_scope

LONG = "a" * 60_000
KEPT_BYTES = 2_000_000  # of 120 MB that were sent


@pytest.fixture
def handler() -> HotPathApp:
    return HotPathApp("proxy.views.urls", max_body_bytes=10, render_error="proxy.views.early.early_refusal")


def kept_after(send: Callable[[int], object], times: int) -> int:
    """The growth of memory, in bytes, after so many calls of `send`."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(times):
            send(number)
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def test_paths(handler: HotPathApp) -> None:
    def send(number: int) -> None:
        with pytest.raises(Refusal):
            handler._match(f"/v1/{LONG}{number}/mcp")

    assert kept_after(send, 2_048) < KEPT_BYTES
    assert handler._match("/v1/" + "a" * 31 + "/cli/schema").url_name == "cli-schema"


def test_header_names() -> None:
    def send(number: int) -> None:
        HotPathRequest(make_scope(headers=[(f"{LONG}{number}".encode(), b"")]))

    assert kept_after(send, 512) < KEPT_BYTES
    known = _cached_meta_key.cache_info().currsize
    assert "HTTP_A_B" in HotPathRequest(make_scope(headers=[(b"a-b", b"")])).META
    assert _cached_meta_key.cache_info().currsize == known + 1


def test_hosts(handler: HotPathApp, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]

    def send(number: int) -> None:
        host = f"testserver:{number:060000}".encode()
        handler._check_host(HotPathRequest(make_scope(headers=[(b"host", host)])))

    assert kept_after(send, 256) < KEPT_BYTES


def test_origins() -> None:
    assert kept_after(lambda number: cors_headers(f"http://{LONG}{number}.localhost"), 256) < KEPT_BYTES
    assert cors_headers("http://localhost:6274")


@pytest.fixture
def forgotten() -> Iterator[None]:
    client_address._is_among.cache_clear()
    yield
    client_address._is_among.cache_clear()


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize("hop", [LONG + "{}", "fe80::1%" + LONG + "{}"], ids=["no address", "an address with a zone"])
def test_forwarded_addresses(hop: str) -> None:
    trusted = ("10.0.0.0/8",)
    sent = lambda number: client_address.client_address("10.0.0.1", hop.format(number), trusted)  # noqa: E731
    assert kept_after(sent, 1_024) < KEPT_BYTES
    assert client_address.client_address("10.0.0.1", "198.51.100.7", trusted) == "198.51.100.7"
