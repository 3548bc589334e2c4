"""Shared by all hot routes: authentication, method, what becomes of faults, timing headers.

Order: origin, preflight, authentication, method, media type. Clients probe with GET and expect the challenge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog
from django.conf import settings
from django.http import HttpResponse
from django.http.response import HttpResponseBase

from audit.call_status import CallSource
from audit.pending_record import AuditUnavailable
from gateway.coordination import limit_headers
from gateway.coordination.store import CoordinationUnavailable
from gateway.hot_path_request import HotPathRequest
from gateway.lib.client_address import client_address
from gateway.lib.event_stream import EventStream
from gateway.lib.metrics.names import CALLS, NO_VENDOR, CallOutcome
from oauth_ext.bearer import InvalidBearer
from proxy import runtime
from proxy.authenticate import MalformedAuthorization, NoBearer, accepted_audiences, authenticate, bearer_of
from proxy.calls.admit import admit
from proxy.failed_auth_throttle import AuthThrottled
from proxy.hot_path_database import DatabaseUnavailable
from proxy.outcomes import CacheStatus
from proxy.request_context import RequestContext
from proxy.sessions.client_session import SessionEnded
from proxy.timing import Timing
from proxy.trace import Trace
from proxy.views import request_end, responses
from proxy.views.origin import check_origin, cors_headers, preflight_response
from proxy.views.responses import HttpError

log = structlog.get_logger(__name__)


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
    # Lists tools to find, describe and call others. None: the setting of the agent says so.
    is_compact: bool | None = False
    has_sessions: bool = False  # clients end them by DELETE
    headers: Mapping[str, str] = field(default_factory=dict)  # of every answer but a preflight's

    @property
    def name(self) -> str:
        """In metrics, traces and logs. Contract: 7"""
        return "cli" if self.is_cli else "mcp" if self.vendor is None else "vendor_mcp"

    @property
    def is_cli(self) -> bool:
        return self.source is CallSource.CLI

    @property
    def audiences(self) -> frozenset[str]:
        """Resources whose tokens are accepted: the unified endpoint and the vendor's own."""
        return accepted_audiences(settings.BASE_URL, self.vendor)


class ServedRequest:
    """One request at one route: `open`, then the view's work, then `finish`; `refusal` makes a response of a fault."""

    __slots__ = ("_context", "_request", "_route", "_timing", "_trace")

    def __init__(self, request: HotPathRequest, route: Route) -> None:
        self._request, self._route = request, route
        self._timing = Timing()
        self._context: RequestContext | None = None  # of an authenticated request
        self._trace: Trace | None = None

    async def open(self) -> RequestContext | None:
        """The authenticated request; None for a preflight, which names no caller.

        Raises: HttpError; InvalidBearer; AuthThrottled; DatabaseUnavailable; CoordinationUnavailable.
        """
        request, method = self._request, self._route.method
        check_origin(request)
        if request.method == "OPTIONS":
            return None
        traces = runtime.current().traces
        if traces is not None:
            self._trace = traces.begin(request.META)
        self._context = await _authenticate(request, self._route, self._timing)
        self._context.trace = self._trace
        request.owner = self._context.caller.principal.org_id
        if request.method != method and (request.method, method) != ("HEAD", "GET"):  # D30
            raise HttpError(405, "method_not_allowed", f"Use {method}.", {"Allow": method})
        return self._context

    def preflight(self) -> HttpResponse:
        more = ", DELETE" if self._route.has_sessions else ""
        return preflight_response(self._request, f"{self._route.method}{more}")

    async def refusal(self, fault: Exception) -> HttpResponse:
        """The response to a fault of `open` or of the view. Refusals count as requests, once. Spec: §8 · D22"""
        context = self._context
        # An internal error too: a request that meets one must not be free.
        is_of_a_store = isinstance(fault, DatabaseUnavailable | AuditUnavailable | CoordinationUnavailable)
        if context is not None and context.admission is None and not is_of_a_store:
            try:
                await count(context)
            except Exception as fault_of_count:
                return self._refusal(fault_of_count)
        return self._refusal(fault)

    def _refusal(self, fault: Exception) -> HttpResponse:
        route = self._route
        if isinstance(fault, HttpError):
            error = fault
        elif isinstance(fault, InvalidBearer):
            error = responses.unauthorized(route.resource_path, route.scope, fault.reason)
        elif isinstance(fault, SessionEnded):
            error = responses.unknown_session()
        elif isinstance(fault, AuthThrottled):
            error = responses.auth_throttled(fault.admission)
        elif isinstance(fault, DatabaseUnavailable | AuditUnavailable | CoordinationUnavailable):
            if self._context is None:  # a call of a caller that is known is counted by itself
                CALLS.add(NO_VENDOR, route.name, CallOutcome.UNAVAILABLE)
            error = responses.unavailable()
        else:
            log.error("request failed", path=self._request.path, exc_info=fault)
            error = responses.internal_error()
        return responses.http_error_response(error, cli=route.is_cli)

    def finish(self, response: HttpResponseBase) -> HttpResponseBase:
        """Every answer has the timing headers. Spec: §4.14 · D102"""
        request, route, context, timing = self._request, self._route, self._context, self._timing
        for name, value in {**cors_headers(request.META.get("HTTP_ORIGIN")), **route.headers}.items():
            response.headers[name] = value
        if route.reports_cache:
            response.headers["X-Cache"] = (CacheStatus.BYPASS if context is None else context.cache).value
        known = timing.headers_so_far() if isinstance(response, EventStream) else timing.headers()
        request.response_headers = [*known, *_limits(context)]
        if request_end.is_reported():
            if isinstance(response, EventStream):
                self._report_after(response)
            else:
                self._report(response.status_code)
        return response

    def _report(self, status: int) -> None:
        request_end.report(
            request_id=self._request.request_id,
            route=self._route.name,
            status=status,
            timing=self._timing,
            context=self._context,
            trace=self._trace,
        )

    def _report_after(self, stream: EventStream) -> None:
        end = stream.on_end

        async def end_and_report() -> None:
            await end()
            self._report(stream.status_code)

        stream.on_end = end_and_report


async def _authenticate(request: HotPathRequest, route: Route, timing: Timing) -> RequestContext:
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


def _limits(context: RequestContext | None) -> list[tuple[bytes, bytes]]:
    """The rest of the caller's limit, if the shared count was available. Spec: D19"""
    admission = context.admission if context else None
    return limit_headers.encoded(admission) if admission is not None and admission.epochs is not None else []


def _authorization(request: HotPathRequest) -> str | None:
    value: str | None = request.META.get("HTTP_AUTHORIZATION")
    if value is not None and "," in value:  # headers of one name are joined by commas
        scope_headers = request.scope["headers"]
        if sum(1 for name, _ in scope_headers if name == b"authorization") > 1:
            # Choosing one of two would be a guess.
            raise InvalidBearer("The Authorization header was sent twice.")
    return value


async def count(context: RequestContext) -> None:
    """For requests that are no tool call. Raises: HttpError with 429; as `admit`. Spec: D22"""
    with context.timing.auth:
        admission, context.caller = await admit(context, settings.BACKSTOP)
    if not admission.allowed:
        raise responses.rate_limited(admission.retry_after_s)


def _ip_address(request: HotPathRequest) -> str:
    peer = request.META.get("REMOTE_ADDR", "")
    return client_address(peer, request.META.get("HTTP_X_FORWARDED_FOR"), settings.TRUSTED_PROXIES)
