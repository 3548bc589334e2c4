"""Serves the hot path's views through Django's own handler as well.   docs/decisions/0054

`gateway.asgi` hands /v1/* to HotPathApp, whose requests pass straight to the view. Any other request is Django's.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from asgiref.sync import async_to_sync, markcoroutinefunction
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse
from django.http.response import HttpResponseBase

from gateway.hot_path_request import FOREIGN_HOST, HotPathRequest, check_head
from gateway.lib.event_stream import EventStream
from gateway.lib.hot_path_response import HotPathResponse
from gateway.middleware.refusal import Refusal
from gateway.middleware.request_id import HEADER
from proxy.views.early import early_refusal

HotPathView = Callable[..., Coroutine[Any, Any, HttpResponseBase]]


def served_by_both(view: HotPathView) -> HotPathView:
    @wraps(view)
    def serve(request: HotPathRequest | ASGIRequest, **arguments: str) -> Coroutine[Any, Any, HttpResponseBase]:
        if isinstance(request, HotPathRequest):
            return view(request, **arguments)
        return _serve(view, request, arguments)

    serve.csrf_exempt = True  # type: ignore[attr-defined]  # callers send a bearer; no cookie is read
    return markcoroutinefunction(serve)


async def _serve(view: HotPathView, django_request: ASGIRequest, arguments: dict[str, str]) -> HttpResponseBase:
    request = HotPathRequest(dict(django_request.scope))
    request.request_id = getattr(django_request, "request_id", request.request_id)
    try:
        response = await _respond(view, request, django_request, arguments)
    except BaseException:
        request.release()
        raise
    return _as_django_response(response, request)


async def _respond(
    view: HotPathView, request: HotPathRequest, django_request: ASGIRequest, arguments: dict[str, str]
) -> HttpResponseBase:
    max_bytes: int = settings.MCP_BODY_BYTES
    try:
        check_head(request, max_bytes)
        body: bytes = django_request.read(max_bytes + 1)  # Django has received the whole of it
        if len(body) > max_bytes:
            raise Refusal.too_large(max_bytes)
        request.set_body(body)
        request.get_host()
        return await _until_disconnect(view(request, **arguments), request)
    except Refusal as refusal:
        return early_refusal(request, refusal.status, refusal.error, refusal.message)
    except DisallowedHost:
        return early_refusal(request, 400, *FOREIGN_HOST)


async def _until_disconnect(
    response: Coroutine[Any, Any, HttpResponseBase], request: HotPathRequest
) -> HttpResponseBase:
    running = asyncio.ensure_future(response)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:  # Django's handler cancels a view whose client has left
        request.client_disconnected = True
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        raise


def _as_django_response(response: HttpResponseBase, request: HotPathRequest) -> HttpResponseBase:
    """With the headers and the duties that HotPathApp adds. Django closes a response at the end of its request."""
    if isinstance(response, HotPathResponse):  # without the members that middleware may look at
        response = HttpResponse(response.content, headers=response.headers)
    for name, value in request.response_headers:
        response.headers[name.decode()] = value.decode("latin-1")
    response.headers[HEADER] = request.request_id
    if isinstance(response, EventStream):
        response._resource_closers.append(async_to_sync(response.on_end))  # type: ignore[attr-defined]
    elif isinstance(response, HttpResponse) and response.status_code != 204:
        response.headers["Content-Length"] = str(len(response.content))
    # Called once: by Django, or when a response that Django dropped is collected.
    released = weakref.finalize(response, request.release)
    response._resource_closers.append(released)  # type: ignore[attr-defined]
    return response
