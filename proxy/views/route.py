"""Shared by all hot routes: CORS, origin, authentication, timing headers, and errors that fail closed.

Order: origin, preflight, authentication, method, media type. Clients probe with GET and expect the challenge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.http import HttpResponse
from django.http.response import HttpResponseBase

from audit.call_status import CallSource
from audit.writer import AuditUnavailable
from gateway.coordination.store import CoordinationUnavailable
from gateway.hot_path_request import HotPathRequest
from gateway.incoming_body import BodyRefused, ClientDisconnected
from gateway.lib import strict_json
from gateway.lib.client_address import client_address
from gateway.lib.event_stream import EventStream
from oauth_ext.bearer import InvalidBearer
from proxy import runtime
from proxy.authenticate import MalformedAuthorization, NoBearer, authenticate, bearer_of
from proxy.caller_cache import DatabaseUnavailable
from proxy.calls.admit import admit
from proxy.failed_auth_throttle import AuthThrottled
from proxy.outcomes import CacheStatus
from proxy.request_context import RequestContext
from proxy.timing import Timing
from proxy.vendors import fair_scheduler
from proxy.views import responses
from proxy.views.responses import HttpError

log = structlog.get_logger(__name__)
LARGE_BODY_BYTES = 64 * 1024  # parsing from here on would delay other calls
MAX_ORIGIN_CHARACTERS = 300  # a host name has 253 at most
BODY_SLOT_WAIT_S = 10.0  # until a large body is parsed, in line with other organizations'
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class Route:
    """The differences between routes."""

    source: CallSource
    method: str
    resource_path: str
    scope: str = "mcp:all"
    agent_keys: bool = False  # keys of agents are accepted
    vendor: str | None = None  # slug in the path
    reports_cache: bool = False  # answers have X-Cache

    @property
    def is_cli(self) -> bool:
        return self.source is CallSource.CLI

    @property
    def audiences(self) -> frozenset[str]:
        """Resources whose tokens are accepted: the unified endpoint and the vendor's own."""
        return _audiences(settings.BASE_URL, self.vendor)


@lru_cache(maxsize=256)  # bounded: strangers may invent slugs
def _audiences(base_url: str, vendor: str | None) -> frozenset[str]:
    own = {f"{base_url}/v1/{vendor}/mcp"} if vendor else set()
    return frozenset({f"{base_url}/v1/mcp", *own})


Handler = Callable[[RequestContext, HotPathRequest], Awaitable[HttpResponseBase]]


async def serve(
    request: HotPathRequest, route: Route, handler: Handler, extra: Mapping[str, str] | None = None
) -> HttpResponseBase:
    """Every answer has the timing headers. Spec: §4.14 · D102"""
    timing = Timing()
    context: RequestContext | None = None
    response: HttpResponseBase
    try:
        _check_origin(request)
        if request.method == "OPTIONS":
            return _preflight(request, route)
        context = await _open(request, route, timing)
        request.owner = context.caller.principal.org_id
        response = await _handle(context, request, route, handler)
    except ClientDisconnected:
        raise
    except HttpError as refusal:
        response = responses.http_error_response(refusal, cli=route.is_cli)
    except InvalidBearer as fault:
        response = responses.http_error_response(_invalid_token(route, fault), cli=route.is_cli)
    except AuthThrottled as fault:
        response = responses.http_error_response(responses.auth_throttled(fault.admission), cli=route.is_cli)
    except (DatabaseUnavailable, AuditUnavailable, CoordinationUnavailable):
        response = responses.http_error_response(responses.unavailable(), cli=route.is_cli)
    except Exception:
        log.exception("request failed", path=request.path)
        response = responses.http_error_response(responses.internal_error(), cli=route.is_cli)
    for name, value in {**cors_headers(request.META.get("HTTP_ORIGIN")), **(extra or {})}.items():
        response.headers[name] = value
    if route.reports_cache:
        response.headers["X-Cache"] = (CacheStatus.BYPASS if context is None else context.cache).value
    known = timing.headers_so_far() if isinstance(response, EventStream) else timing.headers()
    request.response_headers = [*known, *_limits(context)]
    return response


async def _open(request: HotPathRequest, route: Route, timing: Timing) -> RequestContext:
    live = runtime.current()
    with timing.auth:
        try:
            bearer = bearer_of(_authorization(request))
        except NoBearer:
            raise responses.unauthorized(route.resource_path, route.scope, None) from None
        except MalformedAuthorization:
            raise HttpError(400, "invalid_request", "Send Authorization: Bearer and one token.") from None
        address = _ip_address(request)
        caller = await authenticate(
            live.caller_cache, bearer, address=address, audiences=route.audiences, agent_keys=route.agent_keys
        )
    # It refers to the request; a reference back would be a cycle (see uvicorn_fast_path).
    return RequestContext(
        runtime=live,
        source=route.source,
        bearer=bearer,
        caller=caller,
        timing=timing,
        request_id=request.request_id,
        ip_address=address,
        request_bytes=0,  # set when the body is read
        client=request,
    )


async def _handle(context: RequestContext, request: HotPathRequest, route: Route, handler: Handler) -> HttpResponseBase:
    """Refusals count as requests, once. Spec: §8 · D22"""
    try:
        if request.method != route.method and (request.method, route.method) != ("HEAD", "GET"):  # D30
            raise HttpError(405, "method_not_allowed", f"Use {route.method}.", {"Allow": route.method})
        return await handler(context, request)
    except HttpError:
        if context.admission is None:
            await count(context)
        raise


def _limits(context: RequestContext | None) -> list[tuple[bytes, bytes]]:
    """The rest of the caller's limit, if the shared count was available. Spec: D19"""
    admission = context.admission if context else None
    return responses.limit_headers(admission) if admission is not None and admission.epochs is not None else []


def _authorization(request: HotPathRequest) -> str | None:
    value: str | None = request.META.get("HTTP_AUTHORIZATION")
    if value is not None and "," in value:  # headers of one name are joined by commas
        scope_headers = request.scope["headers"]
        if sum(1 for name, _ in scope_headers if name == b"authorization") > 1:
            # Choosing one of two would be a guess.
            raise InvalidBearer("The Authorization header was sent twice.")
    return value


def _invalid_token(route: Route, fault: InvalidBearer) -> HttpError:
    return responses.unauthorized(route.resource_path, route.scope, fault.reason)


async def count(context: RequestContext) -> None:
    """For requests that are no tool call. Raises: HttpError with 429; as `admit`. Spec: D22"""
    with context.timing.auth:
        admission = await admit(context, settings.BACKSTOP)
    if not admission.allowed:
        raise responses.rate_limited(admission.retry_after_s)


async def _count_large(context: RequestContext, size_bytes: int) -> None:
    """As a request of the caller, and by size for the organization. Raises: HttpError with 429; as `admit`."""
    await count(context)
    key, units = f"org:{context.caller.principal.org_id}", -(-size_bytes // settings.BODY_UNIT_BYTES)
    with context.timing.auth:
        admission = await context.runtime.store.charge(settings.LARGE_BODIES, key, units)
    if not admission.allowed:
        raise responses.too_many_large_bodies(admission)


async def body_of(context: RequestContext, request: HotPathRequest) -> object:
    """The body as JSON. Raises: StrictJSONError; HttpError with 408, 413, 429 or 503; ClientDisconnected; as
    `admit`."""
    is_here_and_small = request.incoming is None and len(request.body) < LARGE_BODY_BYTES
    body = request.body if is_here_and_small else await _load_body(context, request)
    context.request_bytes = len(body)
    if len(body) < LARGE_BODY_BYTES:
        return strict_json.loads(body, max_depth=settings.JSON_DEPTH)
    # In a thread that serves organizations round robin.
    work = partial(strict_json.loads, body, max_depth=settings.JSON_DEPTH)
    deadline = asyncio.get_running_loop().time() + BODY_SLOT_WAIT_S
    try:
        return await fair_scheduler.run_in_thread(context.caller.principal.org_id, work, deadline)
    except TimeoutError:
        raise responses.overloaded() from None


async def _load_body(context: RequestContext, request: HotPathRequest) -> bytes:
    declared = 0 if request.incoming is None else request.incoming.declared_bytes or 0
    # Counted before it is read, if its length is declared.
    if declared >= LARGE_BODY_BYTES:
        await _count_large(context, declared)
    try:
        body = await request.load_body()
    except BodyRefused as refused:
        raise responses.body_refused(refused) from None
    if len(body) >= LARGE_BODY_BYTES > declared:
        await _count_large(context, len(body))
    return body


def require_json(request: HotPathRequest) -> None:
    if request.content_type != "application/json":
        raise HttpError(415, "unsupported_media_type", "Send Content-Type: application/json.")


def _check_origin(request: HotPathRequest) -> None:
    """Only our pages, this computer's and configured ones may call from a browser (DNS rebinding). Spec: A.2"""
    origin = request.META.get("HTTP_ORIGIN")
    if origin is not None and not _acceptable(origin):
        raise HttpError(403, "forbidden_origin", "This origin may not call the gateway.")


def _preflight(request: HotPathRequest, route: Route) -> HttpResponse:
    response = responses.preflight()
    response.headers["Access-Control-Allow-Methods"] = f"{route.method}, OPTIONS"
    response.headers["Access-Control-Allow-Headers"] = responses.ALLOWED_HEADERS
    response.headers["Access-Control-Max-Age"] = "600"
    for name, value in cors_headers(request.META.get("HTTP_ORIGIN")).items():
        response.headers[name] = value
    return response


def cors_headers(origin: str | None) -> dict[str, str]:
    """{} for an origin that may not call."""
    if origin is None or not _acceptable(origin):
        return {}
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": responses.EXPOSED_HEADERS,
        "Vary": "Origin",
    }


def _acceptable(origin: str) -> bool:
    if len(origin) > MAX_ORIGIN_CHARACTERS:  # urllib caches parsed addresses
        return False
    if origin == settings.BASE_URL or origin in settings.ALLOWED_ORIGINS:
        return True
    try:
        return urlsplit(origin).hostname in _LOOPBACK
    except ValueError:
        return False


def _ip_address(request: HotPathRequest) -> str:
    peer = request.META.get("REMOTE_ADDR", "")
    return client_address(peer, request.META.get("HTTP_X_FORWARDED_FOR"), settings.TRUSTED_PROXIES)
