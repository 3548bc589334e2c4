"""Only trusted peers may say that the client came over https."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from gateway.middleware.request_id import RequestIdMiddleware


@pytest.mark.parametrize(
    ("peer", "proxies", "is_secure"),
    [
        ("10.0.0.1", ("10.0.0.0/8",), True),
        ("203.0.113.9", ("10.0.0.0/8",), False),  # reaches the port directly
        ("10.0.0.1", (), False),
        ("", ("10.0.0.0/8",), False),
    ],
)
def test_only_a_trusted_proxy_names_the_scheme(
    peer: str, proxies: tuple[str, ...], is_secure: bool, settings: Any
) -> None:
    settings.TRUSTED_PROXIES = proxies
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    seen: list[bool] = []

    def view(request: HttpRequest) -> HttpResponse:
        seen.append(request.is_secure())
        return HttpResponse()

    sent = {"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_PROTO": "https"}
    RequestIdMiddleware(view)(RequestFactory().get("/", **sent))
    assert seen == [is_secure]
