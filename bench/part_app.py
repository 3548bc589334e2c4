"""The application of `bench.parts`: one async view, behind the hot path's handler and behind Django's own."""

from __future__ import annotations

import asyncio
from typing import Any

import django
from django.conf import settings

from bench.part_peers import ANSWER, BODY

if not settings.configured:
    settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF="bench.part_app", MIDDLEWARE=[], USE_TZ=True)
    django.setup()

from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponse
from django.urls import path

from gateway.hot_path_app import HotPathApp


async def view(request: HttpRequest) -> HttpResponse:
    """Answer at once."""
    return HttpResponse(ANSWER, content_type="application/json")


urlpatterns = [path("call", view)]


def render_error(request: HttpRequest, status: int, error: str, description: str) -> HttpResponse:
    """The shape that HotPathApp asks for."""
    return HttpResponse(description, status=status)


def hot_path() -> HotPathApp:
    return HotPathApp("bench.part_app", max_body_bytes=4096, render_error="bench.part_app.render_error")


def stock() -> ASGIHandler:
    return ASGIHandler()


async def ask(app: Any) -> None:
    """One request by ASGI messages, without a socket."""
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": BODY, "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if not messages:
            await asyncio.Event().wait()
        return messages.pop()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(b"host", b"x"), (b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/call",
        "raw_path": b"/call",
        "root_path": "",
        "headers": headers,
    }
    scope |= {"query_string": b"", "scheme": "http", "http_version": "1.1", "client": ("127.0.0.1", 1)}
    await app({**scope, "headers": headers, "server": ("x", 80)}, receive, send)
    assert sent[0]["status"] == 200
