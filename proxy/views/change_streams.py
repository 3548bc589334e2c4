"""Streams that tell a caller that a list it sees has changed: GET of a session, `subscriptions/listen`.

A stream looks every LOOK_EVERY_S at the caller's epochs and at the lists that this process knows. It ends with the
right to listen, with the session, after LONGEST_S, and when the process begins to stop. docs/decisions/0110
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace

import structlog
from django.http.response import HttpResponseBase

from gateway import draining
from gateway.catalog.vendor import Vendor
from gateway.coordination.store import CoordinationUnavailable
from gateway.hot_path_request import HotPathRequest
from gateway.lib import clock
from gateway.lib.event_stream import EventStream
from oauth_ext.bearer import InvalidBearer
from proxy.calls.connected_vendors import ConnectedVendors
from proxy.calls.seen_lists import Listed, Seen, has_changed, seen
from proxy.hot_path_database import DatabaseUnavailable
from proxy.protocol import jsonrpc, sse
from proxy.request_context import RequestContext
from proxy.sessions.stream_places import ListSignal
from proxy.views import mcp_sessions, responses
from proxy.views.mcp_requests import check_scope, vendor_of
from proxy.views.progress_response import PING_EVERY_S, accepts_events
from proxy.views.responses import HttpError
from proxy.views.route import Route, ServedRequest, count

log = structlog.get_logger(__name__)
STEP_S = 2.5  # between looks at whether the process stops
LOOK_EVERY_S = 5.0
LEAST_GAP_S = 1.0  # between looks, however often lists change
LONGEST_S = 3_600.0
RETRY_MS = 2_000  # for a client that comes back

Message = Callable[[Listed], bytes]


class ListWatch:
    """The changes of one caller's lists. `signal`: of `StreamPlaces`."""

    def __init__(
        self, context: RequestContext, vendor: Vendor | None, kinds: Iterable[Listed], signal: ListSignal
    ) -> None:
        self._context, self._vendor, self._kinds, self._signal = context, vendor, tuple(kinds), signal
        self._known = self._seen()
        self.connected = ConnectedVendors(context)

    async def wait(self, timeout_s: float) -> bool:
        """Whether a list of the organization has changed meanwhile."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._signal.wait()
        except TimeoutError:
            return False
        return True

    async def look(self) -> list[Listed] | None:
        """The lists that have changed since the last look; None if the caller may not listen any more."""
        before = self._context.caller
        try:
            if not await self._is_allowed():
                return None
        except InvalidBearer:
            return None
        except (CoordinationUnavailable, DatabaseUnavailable) as fault:
            log.debug("changes of lists not looked for", fault=type(fault).__name__)
            return []
        if not self._signal.is_set() and self._context.caller is before:
            return []
        announced = self._signal.take()
        known, self._known = self._known, self._seen()
        places = {kind: {place for place, name in announced if name == kind.value} for kind in self._kinds}
        return [kind for kind in self._kinds if has_changed(known[kind], self._known[kind], places[kind])]

    async def _is_allowed(self) -> bool:
        """Writes `context.caller`. Raises: InvalidBearer; DatabaseUnavailable; CoordinationUnavailable."""
        context = self._context
        live, known = context.runtime, context.caller
        if clock.now().timestamp() >= known.own.expires_at_s:
            return False
        session = () if context.session is None else (context.session.epoch,)
        epochs = await live.store.read_epochs((*known.epoch_names, *session))
        if epochs is None:  # nothing is told until they are known again: the right may have ended
            raise CoordinationUnavailable("away")
        if context.session is not None:
            state = await live.session_states.at(context.session, epochs[-1])
            if state.is_ended:
                return False
        context.caller = await context.caller_source.revalidated(
            context.bearer, known, epochs[: len(known.epoch_names)]
        )
        return True

    def _seen(self) -> dict[Listed, Seen]:
        return seen(self._context.runtime, self._context.caller, self._vendor, self._kinds)


def stream_of(
    context: RequestContext,
    vendor: Vendor | None,
    kinds: Iterable[Listed],
    message: Message,
    *,
    first: bytes = b"",
    last: bytes = b"",
) -> EventStream | None:
    """A stream with `message` of each change, between two messages; None if too many are open."""
    places, principal = context.runtime.streams, context.caller.principal
    signal = None if draining.is_draining() else places.take(principal)
    if signal is None:
        return None
    try:
        watch = ListWatch(context, vendor, kinds, signal)
    except BaseException:
        places.give_back(principal, signal)
        raise

    async def end() -> None:
        places.give_back(principal, signal)

    return EventStream(_events(watch, message, first, last), on_end=end)


async def _events(watch: ListWatch, message: Message, first: bytes, last: bytes) -> AsyncIterator[bytes]:
    now_s = asyncio.get_running_loop().time
    until_s, look_s, said_s = now_s() + LONGEST_S, now_s() + LOOK_EVERY_S, now_s()
    yield b"retry: %d\n\n" % RETRY_MS
    if first:
        yield sse.encode_event(first)
    while now_s() < until_s and not draining.is_draining():
        has_news = await watch.wait(min(STEP_S, max(look_s - now_s(), 0.0)))
        if has_news or now_s() >= look_s:
            changed = await watch.look()
            if changed is None:
                break
            for each in (*map(message, changed), *watch.connected.take()):
                yield sse.encode_event(each)
                said_s = now_s()
            look_s = now_s() + LOOK_EVERY_S
            if has_news:
                await asyncio.sleep(LEAST_GAP_S)
        if now_s() - said_s >= PING_EVERY_S:
            yield sse.COMMENT_PING
            said_s = now_s()
    if last:
        yield sse.encode_event(last)


async def of_session(request: HotPathRequest, route: Route) -> HttpResponseBase:
    """GET with a session. 405 without room, as the specification has it for a server without such streams."""
    served = ServedRequest(request, replace(route, method="GET"))
    response: HttpResponseBase
    try:
        context = await served.open()
        if context is None:
            return served.preflight()
        vendor = vendor_of(context, route)
        mcp_sessions.open_session(context, request, route)
        if not accepts_events(request.META.get("HTTP_ACCEPT")):
            raise HttpError(406, "not_acceptable", "Accept text/event-stream.")
        await count(context)
        if vendor is not None:
            check_scope(context, route, vendor)
        kinds = [kind for kind in Listed if kind is not Listed.TOOLS or not route.is_compact]
        stream = stream_of(context, vendor, kinds, lambda kind: jsonrpc.notification(kind.notification))
        if stream is None:
            raise responses.no_more_streams()
        response = stream
    except Exception as fault:
        response = await served.refusal(fault)
    return served.finish(response)
