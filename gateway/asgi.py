"""The ASGI entry: lifespan, the hot path through the lean handler, everything else through Django's own."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")

from gateway import libraries

libraries.load()

from django.core.asgi import get_asgi_application  # noqa: E402

django_application = get_asgi_application()

# The apps must be loaded before the views of the hot path can be.
from django.conf import settings  # noqa: E402

from gateway.lean import LeanHandler, Receive, Send, max_body_bytes  # noqa: E402
from gateway.lean_request import Scope  # noqa: E402
from gateway.middleware.body_limit import BodyLimit  # noqa: E402
from gateway.middleware.page_room import PageRoom  # noqa: E402
from proxy import runtime  # noqa: E402

_lean = LeanHandler("proxy.views.urls", max_body_bytes=max_body_bytes(), refuse="proxy.views.early.early_refusal")


def _within_room(size: int) -> BodyLimit:
    room = PageRoom(django_application, size=size, wait_s=settings.PAGE_WAIT_S)  # type: ignore[arg-type]
    return BodyLimit(room, max_bytes=settings.WEB_BODY_BYTES)


_pages = _within_room(settings.PAGE_CONCURRENCY)
_oauth = _within_room(settings.OAUTH_CONCURRENCY)
# /oauth/authorize is a page: it may fetch the document of a client from somebody else's server.
OAUTH_PATHS = frozenset({"/oauth/token", "/oauth/revoke", "/oauth/register", "/oauth/device_authorization"})
LEAN_PREFIXES = ("/v1/",)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Dispatch one scope."""
    if scope["type"] == "http":
        path = scope["path"]
        if path.startswith(LEAN_PREFIXES) or path == "/health":
            await _lean(scope, receive, send)
        elif path in OAUTH_PATHS:
            await _oauth(scope, receive, send)
        else:
            await _pages(scope, receive, send)
    elif scope["type"] == "lifespan":
        await _lifespan(receive, send)
    else:
        await send({"type": "websocket.close", "code": 1000})


async def _lifespan(receive: Receive, send: Send) -> None:
    """Open what the hot path needs before the first request, close it after the last."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await runtime.start()
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await runtime.stop()
            await send({"type": "lifespan.shutdown.complete"})
            return
