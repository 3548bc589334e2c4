"""HotPathRequest equals Django's own request in everything that the hot path reads."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest

from gateway.hot_path_app import HotPathApp
from gateway.hot_path_request import HotPathRequest

HEADERS = [
    (b"host", b"testserver"),
    (b"content-type", b"Application/JSON; charset=utf-8"),
    (b"content-length", b"2"),
    (b"accept", b"application/json"),
    (b"accept", b"text/event-stream"),
    (b"x-forwarded-for", b"10.0.0.1"),
    (b"x_forwarded_for", b"1.2.3.4"),
    (b"mcp-protocol-version", b"2025-06-18"),
    (b"x-latin", b"caf\xe9"),
]


def make_scope(**changes: Any) -> dict[str, Any]:
    return {
        "type": "http",
        "method": "POST",
        "path": "/v1/mcp",
        "root_path": "",
        "query_string": b"a=b&a=c",
        "scheme": "https",
        "client": ("127.0.0.1", 5000),
        "server": ("127.0.0.1", 8080),
        "headers": HEADERS,
        **changes,
    }


@pytest.mark.parametrize(
    "changes", [{}, {"client": None}, {"server": None}, {"headers": []}, {"method": "get"}, {"query_string": b""}]
)
def test_it_equals_djangos_own(changes: dict[str, Any]) -> None:
    scope = make_scope(**changes)
    hot_path, own = HotPathRequest(scope), ASGIRequest(scope, BytesIO(b"{}"))
    hot_path.set_body(b"{}")
    own_meta = {name: value for name, value in own.META.items() if not name.startswith("wsgi.")}
    assert own_meta == hot_path.META
    for name in ("method", "path", "path_info", "scheme", "content_type", "body"):
        assert getattr(hot_path, name) == getattr(own, name), name
    assert hot_path.GET == own.GET
    assert hot_path.headers == own.headers
    assert hot_path.get_full_path() == own.get_full_path()
    assert hot_path.read() == b"{}"


def test_the_id_of_a_request() -> None:
    sent = HotPathRequest(make_scope(headers=[(b"x-request-id", b"r-1")]))
    assert sent.request_id == "r-1"
    doubtful = [(b"x-request-id", b"r-1"), (b"x-request-id", b"r-2")]
    made = {HotPathRequest(make_scope(headers=headers)).request_id for headers in ([], doubtful)}
    assert {len(each) for each in made} == {32}
    assert len(made) == 2


def test_a_header_with_an_underscore_names_nothing() -> None:
    assert HotPathRequest(make_scope()).META["HTTP_X_FORWARDED_FOR"] == "10.0.0.1"


@pytest.mark.parametrize(
    ("sent", "read"), [(b"application/json", "application/json"), (b"", ""), (b"Text/Plain;x=y", "text/plain")]
)
def test_the_media_type(sent: bytes, read: str) -> None:
    assert HotPathRequest(make_scope(headers=[(b"content-type", sent)])).content_type == read


def test_a_known_host_stays_known_only_while_it_is_ours(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    handler = HotPathApp("proxy.views.urls", max_body_bytes=10, render_error="proxy.views.early.early_refusal")
    request = HotPathRequest(make_scope())
    for _ in range(2):
        handler._check_host(request)
    for host in (b"evil.example", b"testserver:80@evil.example", b"testserver,evil.example"):
        for _ in range(2):
            with pytest.raises(DisallowedHost):
                handler._check_host(HotPathRequest(make_scope(headers=[(b"host", host)])))
    settings.ALLOWED_HOSTS = ["other.example"]
    with pytest.raises(DisallowedHost):
        handler._check_host(request)
