"""The ASGI handler of the hot path: body in, async Django view, answer out. No middleware, no threads, no signals.

Django's own handler starts a thread and hops through it several times for every request (its middleware, its signals,
closing the response), which costs more than the whole call. Views on these paths are plain async Django views; what the
middleware chain does for pages, `proxy.views.exchange` does for them in the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any

import structlog
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import Resolver404, ResolverMatch, get_resolver
from django.utils.module_loading import import_string

from gateway.lean_request import LeanRequest, Scope
from gateway.lib.event_stream import EventStream
from gateway.lib.whole_answer import WholeAnswer
from gateway.middleware.request_id import HEADER, request_id_of
from gateway.whole_exchange import EXTENSION, WholeExchange

log = structlog.get_logger(__name__)
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
View = Callable[..., Awaitable[HttpResponseBase]]
Refuse = Callable[[Scope, int, str, str], HttpResponse]  # status, error, description
BODY_TIMEOUT_S = 30.0
SEND_TIMEOUT_S = 30.0
MAX_KNOWN_HOSTS = 256
WATCH_AFTER_S = 0.25


class _Refused(Exception):
    def __init__(self, status: int, error: str, description: str) -> None:
        super().__init__(error)
        self.status, self.error, self.description = status, error, description


class ClientGone(Exception):
    """The client closed the connection before its request was complete, or answered; there is nobody to answer."""


class _ClientWatch:
    """Cancels a view that works for nobody any more. A view that is done soon is not watched: it costs a timer only."""

    __slots__ = ("_receive", "_request", "_task", "_timer", "_watching")

    def __init__(self, request: LeanRequest, receive: Receive) -> None:
        self._request, self._receive = request, receive
        self._task = asyncio.current_task()
        self._watching: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER_S, self._begin)

    def caught(self) -> None:
        """The cancellation was ours and ends here."""
        if self._task is not None:
            self._task.uncancel()

    def end(self) -> None:
        """The view is done."""
        self._timer.cancel()
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None  # its cancellation knows this watch: nothing may lead back to it

    def _begin(self) -> None:
        self._watching = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._request.client_left = True
        if self._task is not None:
            self._task.cancel()


class LeanHandler:
    """Serves the URL patterns of one URLconf."""

    def __init__(self, urlconf: str, *, max_body_bytes: int, refuse: str) -> None:
        """`refuse` names the function that words what never reaches a view: see Refuse."""
        self._max_body_bytes = max_body_bytes
        self._refuse: Refuse = import_string(refuse)
        # Vendor slugs are few; the bound is for those who invent paths.
        self._resolve = lru_cache(maxsize=2048)(get_resolver(urlconf).resolve)
        self._known_hosts: set[tuple[str, ...]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        request_id = request_id_of(_header(scope, b"x-request-id"))
        try:
            response = await self._respond(scope, receive, request_id)
        except ClientGone:
            return
        except Exception:
            log.exception("request failed", request_id=request_id, path=scope["path"])
            response = self._refuse(scope, 500, "internal_error", "Something went wrong on our side.")
        await _send_response(response, request_id, scope, receive, send)

    async def _respond(self, scope: Scope, receive: Receive, request_id: str) -> HttpResponseBase:
        try:
            match = self._match(scope["path"])
            body = await self._read_body(scope, receive)
            request = LeanRequest(scope, body, request_id)
            self._check_host(request)
        except _Refused as refusal:
            response = self._refuse(scope, refusal.status, refusal.error, refusal.description)
            if refusal.status in (408, 413):
                response.headers["Connection"] = "close"  # the rest of the body is not waited for
            return response
        except DisallowedHost:
            return self._refuse(scope, 400, "invalid_request", "The Host header is not ours.")
        request.resolver_match = match
        view: View = match.func
        watch = _ClientWatch(request, receive)
        try:
            return await view(request, *match.args, **match.kwargs)
        except asyncio.CancelledError:
            if not request.client_left:
                raise
            watch.caught()
            raise ClientGone from None
        finally:
            watch.end()

    def _check_host(self, request: LeanRequest) -> None:
        """Django's own check, done once for each spelling of our own hosts. Raises: DisallowedHost."""
        host = request.META.get("HTTP_HOST")
        key = (host or "", *settings.ALLOWED_HOSTS)
        if host is None or settings.USE_X_FORWARDED_HOST or key not in self._known_hosts:
            request.get_host()
            if len(self._known_hosts) < MAX_KNOWN_HOSTS:
                self._known_hosts.add(key)

    def _match(self, path: str) -> ResolverMatch:
        try:
            return self._resolve(path)
        except Resolver404:
            raise _Refused(404, "not_found", "There is no such address.") from None

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes:
        declared = _header(scope, b"content-length")
        if declared and declared.isdigit() and int(declared) > self._max_body_bytes:
            raise _Refused(413, "body_too_large", f"The body may hold {self._max_body_bytes} bytes.")
        if _header(scope, b"content-encoding"):
            raise _Refused(415, "unsupported_encoding", "Send the body without Content-Encoding.")
        whole = _whole_exchange(scope)
        body = whole.body() if whole is not None else None
        if body is None:
            return await self._read_parts(receive)
        if len(body) > self._max_body_bytes:
            raise _Refused(413, "body_too_large", f"The body may hold {self._max_body_bytes} bytes.")
        return body

    async def _read_parts(self, receive: Receive) -> bytes:
        try:
            # The first part counts as well: a client may send its headers and nothing else.
            async with asyncio.timeout(BODY_TIMEOUT_S):
                return await self._join_parts(receive)
        except TimeoutError:
            raise _Refused(408, "request_timeout", "The body did not arrive in time.") from None

    async def _join_parts(self, receive: Receive) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunk: bytes = message.get("body", b"")
            size += len(chunk)
            if size > self._max_body_bytes:
                raise _Refused(413, "body_too_large", f"The body may hold {self._max_body_bytes} bytes.")
            chunks.append(chunk)
            if not message.get("more_body"):
                return b"".join(chunks)


@lru_cache(maxsize=256)  # header names of answers are ours
def _encoded_name(name: str) -> bytes:
    return name.lower().encode("latin-1")


_REQUEST_ID = _encoded_name(HEADER)


def _header(scope: Scope, name: bytes) -> str | None:
    for key, value in scope["headers"]:
        if key == name:
            decoded: str = value.decode("latin-1")
            return decoded
    return None


def _whole_exchange(scope: Scope) -> WholeExchange | None:
    extensions = scope.get("extensions")
    found: WholeExchange | None = extensions.get(EXTENSION) if extensions else None
    return found


async def _send_response(
    response: HttpResponseBase, request_id: str, scope: Scope, receive: Receive, send: Send
) -> None:
    headers = [(_encoded_name(name), value.encode("latin-1")) for name, value in response.headers.items()]
    headers.extend(getattr(response, "more_headers", ()))
    headers.append((_REQUEST_ID, request_id.encode()))
    if isinstance(response, EventStream):
        try:
            await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
            await _stream(response, receive, send)
        finally:
            await response.on_end()
        return
    content: bytes = getattr(response, "content", b"")
    if response.status_code != 204:
        headers.append((b"content-length", str(len(content)).encode()))
    if type(response) is WholeAnswer:
        whole = _whole_exchange(scope)
        if whole is not None and whole.answer(response.status_code, headers, content):
            return
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": content})


async def _stream(response: EventStream, receive: Receive, send: Send) -> None:
    """Send parts as they come, until the last one, or the client leaves or takes nothing for too long."""

    async def pump() -> None:
        async for part in response:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.ensure_future(pump()), asyncio.ensure_future(watch())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, Exception):  # a client that takes nothing, or a connection that broke
                log.info("stream broken off", fault=type(ended).__name__)


def max_body_bytes() -> int:
    """The body limit of the hot path. Spec: D18"""
    limit: int = settings.MCP_BODY_BYTES
    return limit
