"""The ASGI entry: lifespan, the hot path through HotPathApp, other requests through Django's handler."""

from __future__ import annotations

import os
import resource

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")
os.environ["GATEWAY_PROCESS"] = "web"  # see gateway.settings.database

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()
del os.environ["GATEWAY_PROCESS"]  # the settings are loaded; child processes are no web servers

# The views of the hot path import models, so the apps must be loaded first.
from django.conf import settings  # noqa: E402

from gateway import connection_limit, graceful_stop  # noqa: E402
from gateway.hot_path_app import RETRY_AFTER_S, HotPathApp, Send, max_body_bytes  # noqa: E402
from gateway.hot_path_request import HotPathRequest, Scope  # noqa: E402
from gateway.http_protocol import PROBE_PATHS, BoundedHttpProtocol  # noqa: E402
from gateway.lib.client_address import is_trusted_proxy  # noqa: E402
from gateway.lib.machine_paths import OAUTH_ENDPOINTS  # noqa: E402
from gateway.middleware.body_limit import BodyLimit  # noqa: E402
from gateway.middleware.concurrency_limit import ConcurrencyLimit  # noqa: E402
from gateway.middleware.refusal import (  # noqa: E402
    Receive,
    Refusal,
    SendRefusal,
    send_oauth_refusal,
    send_refusal,
)
from proxy import runtime  # noqa: E402

_RENDER_ERROR = "proxy.views.early.early_refusal"


class ProbeApp(HotPathApp):
    """HotPathApp for probes. Their Host is the address of a container or pod. Spec: D157"""

    def _check_host(self, request: HotPathRequest) -> None:
        """Accept any Host: the answers do not depend on it."""


_hot_path = HotPathApp("proxy.views.urls", max_body_bytes=max_body_bytes(), render_error=_RENDER_ERROR)
_probes = ProbeApp("proxy.views.urls", max_body_bytes=1024, render_error=_RENDER_ERROR)


def _limit_concurrency(size: int, send_refusal: SendRefusal) -> BodyLimit:
    limit = ConcurrencyLimit(django_application, size=size, wait_s=settings.PAGE_WAIT_S)  # type: ignore[arg-type]
    return BodyLimit(limit, max_bytes=settings.WEB_BODY_BYTES, send_refusal=send_refusal)


async def _reject(scope: Scope, receive: Receive, send: Send) -> None:
    """503 for a connection above the limit, in the shape of its route."""
    if scope["path"].startswith(HOT_PATH_PREFIXES):
        await _hot_path.refuse(scope, receive, send, 503, "overloaded", _OVERLOADED)
    else:
        refuse = send_oauth_refusal if scope["path"] in OAUTH_ENDPOINTS else send_refusal
        await refuse(scope, send, Refusal(503, "overloaded", _OVERLOADED, retry_after_s=RETRY_AFTER_S))


def _bound_connections() -> None:
    # Each connection takes a file. A quarter of the files is left for databases and vendors.
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    bound = settings.CONNECTIONS_PER_PROCESS if files < 0 else min(settings.CONNECTIONS_PER_PROCESS, files * 3 // 4)
    connection_limit.limit.configure(
        total=bound,
        of_address=min(bound, settings.CONNECTIONS_PER_ADDRESS),
        is_proxy=lambda peer: is_trusted_proxy(peer, settings.TRUSTED_PROXIES),
    )
    BoundedHttpProtocol.reject = staticmethod(_reject)


_OVERLOADED = "Too many connections are open. Try again in a moment."
_bound_connections()
_pages = _limit_concurrency(settings.PAGE_CONCURRENCY, send_refusal)
_oauth = _limit_concurrency(settings.OAUTH_CONCURRENCY, send_oauth_refusal)
# Without /oauth/authorize: it is slow, because it may fetch a client's metadata document from another server.
HOT_PATH_PREFIXES = ("/v1/",)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        path = scope["path"]
        if path.startswith(HOT_PATH_PREFIXES):
            await _hot_path(scope, receive, send)
        elif path in PROBE_PATHS:
            await _probes(scope, receive, send)
        elif path in OAUTH_ENDPOINTS:
            await _oauth(scope, receive, send)
        else:
            await _pages(scope, receive, send)
    elif scope["type"] == "lifespan":
        await _lifespan(receive, send)
    else:
        await send({"type": "websocket.close", "code": 1000})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await runtime.start()
            graceful_stop.begin_on_signals(delay_s=settings.DRAIN_DELAY_SECONDS, drain_s=settings.DRAIN_SECONDS)
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await runtime.stop()
            await send({"type": "lifespan.shutdown.complete"})
            return
