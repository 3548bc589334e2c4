"""The ASGI handler of the hot path: no middleware, no threads, no signals.   docs/decisions/0003"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from functools import lru_cache
from typing import Any

import structlog
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import Resolver404, ResolverMatch, get_resolver
from django.utils.module_loading import import_string

from gateway import draining
from gateway.hot_path_request import FOREIGN_HOST, HotPathRequest, Scope, check_head
from gateway.incoming_body import IncomingBody
from gateway.lib.byte_budget import FREE_BYTES
from gateway.lib.event_stream import EventStream
from gateway.lib.hot_path_response import HotPathResponse, SharedBodyResponse
from gateway.lib.shared_body import SharedBody
from gateway.middleware.body_parts import ClientDisconnected
from gateway.middleware.refusal import Receive, Refusal
from gateway.middleware.request_id import HEADER
from gateway.uvicorn_fast_path import EXTENSION, FastPath

log = structlog.get_logger(__name__)
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
View = Callable[..., Awaitable[HttpResponseBase]]
# Django's handler starts a thread for each request and enters it several times (middleware, signals, closing the
# response), which costs more than the whole call. Views here are plain async views; `proxy.views.route` does the work
# of the middleware in the event loop.
RenderError = Callable[[HotPathRequest, int, str, str], HttpResponse]  # status, error, description
# Of one part of an event stream. A round number below UNREAD_TIMEOUT_S of the HTTP protocol, which aborts the
# connection: the stream ends first, and gives its bytes back.
SEND_TIMEOUT_S = 30.0
RETRY_AFTER_S = 2
SLICE_BYTES = 256 * 1024  # of an answer, written at once; the next slice waits until the client took it
MAX_KNOWN_HOSTS = 256  # spellings of Host that passed Django's check
MAX_HOST_CHARACTERS = 255  # RFC 1035; a port with many leading zeros must not fill the cache
MAX_PATH_CHARACTERS = 200  # no route is as long; strangers choose the keys of the cache
WATCH_AFTER_S = 0.25  # a view that ends earlier costs only a timer


class _DisconnectWatcher:
    """Cancels a view when its client disconnects, or when the process stops and the view's time is over."""

    __slots__ = ("_is_known_to_stop", "_receive", "_request", "_task", "_timer", "_watching")

    def __init__(self, request: HotPathRequest, receive: Receive) -> None:
        self._request, self._receive = request, receive
        self._task = asyncio.current_task()
        self._is_known_to_stop = False
        self._watching: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER_S, self._begin)

    def clear_cancellation(self) -> None:
        """The cancellation was this watch's own and ends here."""
        if self._task is not None:
            self._task.uncancel()

    def end(self) -> None:
        self._timer.cancel()
        if self._is_known_to_stop:
            draining.forget(self._cut_off)
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None  # breaks a reference cycle with the cancelled task

    def _begin(self) -> None:
        if not self._is_known_to_stop:
            self._is_known_to_stop = True
            draining.at_end(self._cut_off)
        if self._request.incoming is not None:  # the reader of the body sees a disconnect itself
            self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER_S, self._begin)
            return
        self._watching = asyncio.ensure_future(self._watch())

    def _cut_off(self) -> None:
        self._request.is_cut_off = True
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._request.client_disconnected = True
        if self._task is not None:
            self._task.cancel()


class HotPathApp:
    """Serves the URL patterns of one URLconf. `render_error` names a function of type RenderError."""

    def __init__(self, urlconf: str, *, max_body_bytes: int, render_error: str) -> None:
        self._max_body_bytes = max_body_bytes
        self._render_error: RenderError = import_string(render_error)
        # Routes with their vendor slugs are few; the bound is for invented paths.
        self._resolve = lru_cache(maxsize=2048)(get_resolver(urlconf).resolve)
        self._known_hosts: set[tuple[str, ...]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HotPathRequest(scope)
        try:
            try:
                match = self._open(request, receive)
                response = await self._respond(request, match, receive)
            except ClientDisconnected:
                return
            except Refusal as refusal:
                response = self._render_error(request, refusal.status, refusal.error, refusal.message)
                if refusal.status in (408, 413):
                    response.headers["Connection"] = "close"  # the rest of the body stays unread
            except DisallowedHost:
                response = self._render_error(request, 400, *FOREIGN_HOST)
            except Exception:
                log.exception("request failed", request_id=request.request_id, path=scope["path"])
                response = self._render_error(request, 500, "internal_error", "Something went wrong on our side.")
            await _send_response(response, request, receive, send)
        finally:
            if request.reservations:
                request.release()

    async def refuse(
        self, scope: Scope, receive: Receive, send: Send, status: int, error: str, description: str
    ) -> None:
        """Answer without reading the request, and close its connection."""
        request = HotPathRequest(scope)
        response = self._render_error(request, status, error, description)
        response.headers["Connection"] = "close"
        response.headers["Retry-After"] = str(RETRY_AFTER_S)
        await _send_response(response, request, receive, send)

    def _open(self, request: HotPathRequest, receive: Receive) -> ResolverMatch:
        """Check the head, take the body if it is complete, and find the view. Raises: Refusal; DisallowedHost."""
        match = self._match(request.path)
        length = check_head(request, self._max_body_bytes)
        fast_path = _fast_path(request.scope)
        # A body that did not come with the head is read when the view asks for it, after the caller is known.
        body = fast_path.take_body() if fast_path is not None else None
        if body is None:
            request.incoming = IncomingBody(receive, declared_bytes=length, max_bytes=self._max_body_bytes)
        elif len(body) > self._max_body_bytes:
            raise Refusal.too_large(self._max_body_bytes)
        else:
            request.set_body(body)
        self._check_host(request)
        request.resolver_match = match
        return match

    async def _respond(self, request: HotPathRequest, match: ResolverMatch, receive: Receive) -> HttpResponseBase:
        view: View = match.func
        watcher = _DisconnectWatcher(request, receive)
        try:
            return await view(request, *match.args, **match.kwargs)
        except asyncio.CancelledError:
            if request.is_cut_off and not request.client_disconnected:
                watcher.clear_cancellation()
                raise Refusal(503, "unavailable", draining.CUT_OFF) from None
            if not request.client_disconnected:
                raise
            watcher.clear_cancellation()
            raise ClientDisconnected from None
        finally:
            watcher.end()

    def _check_host(self, request: HotPathRequest) -> None:
        """Raises: DisallowedHost."""
        # Django's own check, once for each accepted spelling of Host.
        host = request.META.get("HTTP_HOST")
        key = (host or "", *settings.ALLOWED_HOSTS)
        if host is None or settings.USE_X_FORWARDED_HOST or key not in self._known_hosts:
            request.get_host()
            if len(self._known_hosts) < MAX_KNOWN_HOSTS and len(key[0]) <= MAX_HOST_CHARACTERS:
                self._known_hosts.add(key)

    def _match(self, path: str) -> ResolverMatch:
        try:
            if len(path) > MAX_PATH_CHARACTERS:
                raise Resolver404
            return self._resolve(path)
        except Resolver404:
            raise Refusal(404, "not_found", "There is no such address.") from None


@lru_cache(maxsize=256)  # the gateway itself chooses the names of response headers
def _encoded_name(name: str) -> bytes:
    return name.lower().encode("latin-1")


_REQUEST_ID = _encoded_name(HEADER)


def _fast_path(scope: Scope) -> FastPath | None:
    extensions = scope.get("extensions")
    found: FastPath | None = extensions.get(EXTENSION) if extensions else None
    return found


async def _send_response(response: HttpResponseBase, request: HotPathRequest, receive: Receive, send: Send) -> None:
    headers = [(_encoded_name(name), value.encode("latin-1")) for name, value in response.headers.items()]
    headers.extend(request.response_headers)
    headers.append((_REQUEST_ID, request.request_id.encode()))
    start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
    if isinstance(response, EventStream):
        try:
            await send(start)
            await _stream(response, request, receive, send)
        finally:
            await response.on_end()
        return
    if isinstance(response, SharedBodyResponse):
        headers.append((b"content-length", str(sum(map(len, response.parts))).encode()))
        await _send_shared(start, response.parts, request, send)
        return
    content: bytes = getattr(response, "content", b"")
    if response.status_code != 204:
        headers.append((b"content-length", str(len(content)).encode()))
    if len(content) > FREE_BYTES:
        await send(start)
        await _send_part(content, request, send)
        await send({"type": "http.response.body", "body": b""})
        return
    if type(response) is HotPathResponse:
        fast_path = _fast_path(request.scope)
        if fast_path is not None and fast_path.send_response(response.status_code, headers, content):
            return
    await send(start)
    await send({"type": "http.response.body", "body": content})


async def _send_part(part: bytes, request: HotPathRequest, send: Send) -> None:
    """Send in slices as the client takes them; meanwhile a large part counts in the budget of answers."""
    if len(part) <= FREE_BYTES:
        await send({"type": "http.response.body", "body": part, "more_body": True})
        return
    request.count_response_bytes(len(part))
    await _send_slices(part, send)


async def _send_shared(
    start: MutableMapping[str, Any], parts: Sequence[bytes | SharedBody], request: HotPathRequest, send: Send
) -> None:
    """The slice on its way counts in the budget, and a part that is kept nowhere."""
    request.count_response_bytes(SLICE_BYTES)
    for part in parts:
        if isinstance(part, SharedBody):
            request.hold(part)
    await send(start)
    for part in parts:
        await _send_slices(bytes(part), send)
    await send({"type": "http.response.body", "body": b""})


async def _send_slices(part: bytes, send: Send) -> None:
    for begin in range(0, len(part), SLICE_BYTES):
        await send({"type": "http.response.body", "body": part[begin : begin + SLICE_BYTES], "more_body": True})


async def _stream(response: EventStream, request: HotPathRequest, receive: Receive, send: Send) -> None:
    """Send parts until the last one, a disconnect, or a send that takes longer than SEND_TIMEOUT_S."""

    async def send_parts() -> None:
        async for part in response:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await _send_part(part, request, send)
        await send({"type": "http.response.body", "body": b""})

    async def wait_disconnect() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.ensure_future(send_parts()), asyncio.ensure_future(wait_disconnect())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, Exception):  # a client that reads nothing, or a lost connection
                log.info("stream broken off", fault=type(ended).__name__)


def max_body_bytes() -> int:
    """The body limit of the hot path. Spec: D18"""
    limit: int = settings.MCP_BODY_BYTES
    return limit
