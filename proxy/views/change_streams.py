"""Streams that tell a caller of changed lists and resources: GET of a session, `subscriptions/listen`.

A stream looks every LOOK_EVERY_S at the caller's epochs and at the lists that this process knows. It ends with the
right to listen, with the session, after LONGEST_S, and when the process begins to stop. docs/decisions/0110, 0113
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

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
from proxy.calls.watched_resources import WatchedResources
from proxy.hot_path_database import DatabaseUnavailable
from proxy.protocol import jsonrpc, sse
from proxy.protocol.item_kinds import UPDATED
from proxy.request_context import RequestContext
from proxy.sessions.client_session import ClientSession
from proxy.sessions.session_subscriptions import Subscription
from proxy.sessions.stream_places import Announced, ListSignal
from proxy.views import compact_calls, mcp_sessions, responses
from proxy.views.mcp_requests import check_scope, vendor_of
from proxy.views.progress_response import PING_EVERY_S, accepts_events
from proxy.views.responses import HttpError
from proxy.views.route import Route, ServedRequest, count

log = structlog.get_logger(__name__)
STEP_S = 2.5  # between looks at whether the process stops
LOOK_EVERY_S = 5.0
LEAST_GAP_S = 1.0  # between looks, however often lists change
LONGEST_S = 3_600.0
READ_AGAIN_S = 60.0  # between readings of a session's subscriptions, if no process says that they changed
RETRY_MS = 2_000  # for a client that comes back


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages of a stream. `first` gets the addresses that are honoured; b"": none."""

    changed: Callable[[Listed], bytes]
    updated: Callable[[str], bytes]
    first: Callable[[Sequence[str]], bytes] = lambda addresses: b""
    last: bytes = b""


class ChangeWatch:
    """The changes of one caller's lists, and of the resources it is subscribed to. `signal`: of `StreamPlaces`."""

    def __init__(
        self, context: RequestContext, vendor: Vendor | None, kinds: Iterable[Listed], signal: ListSignal
    ) -> None:
        self._context, self._vendor, self._kinds, self._signal = context, vendor, tuple(kinds), signal
        self._known = self._seen()
        self._is_begun = False
        self._read_again_s = 0.0
        self._mark = b""  # of the session's subscriptions, as they were read
        self.resources = WatchedResources(context, signal.set)
        self.connected = ConnectedVendors(context)

    async def begin(self, subscriptions: Iterable[Subscription]) -> list[str]:
        """Hear of changes from now on. Returns the addresses that are watched. `subscriptions`: without a session."""
        await self._context.runtime.shared_changes.follow()
        if self._context.session is None:
            await self.resources.watch(subscriptions)
        else:
            await self._read_subscriptions()
        return self.resources.addresses

    async def wait(self, timeout_s: float) -> bool:
        """Whether something of the organization has changed meanwhile."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._signal.wait()
        except TimeoutError:
            return False
        return True

    async def look(self) -> tuple[list[Listed], list[str]] | None:
        """The lists and the resources that have changed since the last look; None if the caller may not listen any
        more."""
        before = self._context.caller
        try:
            if not await self._is_allowed():
                return None
        except InvalidBearer:
            return None
        except (CoordinationUnavailable, DatabaseUnavailable) as fault:
            log.debug("changes not looked for", fault=type(fault).__name__)
            return [], []
        is_other_caller = self._context.caller is not before
        is_set, announced = self._signal.is_set(), self._signal.take()
        addresses = await self._look_at_resources(is_other_caller=is_other_caller)
        if not is_set and not is_other_caller:
            return [], addresses
        return self._look_at_lists(announced), addresses

    def _look_at_lists(self, announced: frozenset[Announced]) -> list[Listed]:
        has_missed, self._signal.has_missed = self._signal.has_missed, False
        known, self._known = self._known, self._seen()
        places = {kind: {place for place, name in announced if name == kind.value} for kind in self._kinds}
        return [kind for kind in self._kinds if has_missed or has_changed(known[kind], self._known[kind], places[kind])]

    async def _look_at_resources(self, *, is_other_caller: bool) -> list[str]:
        context = self._context
        # An exchange that loses everything loses the epochs, too: the caller is another one then.
        is_due = is_other_caller or self._signal.is_nudged or asyncio.get_running_loop().time() >= self._read_again_s
        if context.session is not None and is_due:
            await self._read_subscriptions()
        if is_other_caller or self.resources.needs_review:
            await self._forget(await self.resources.review())
        return self.resources.take_news()

    async def _read_subscriptions(self) -> None:
        session = self._context.session
        if session is None:
            return
        self._signal.is_nudged = False
        self._read_again_s = asyncio.get_running_loop().time() + READ_AGAIN_S
        try:
            found = await self._kept(session)
        except CoordinationUnavailable as fault:
            log.info("subscriptions of a session not read", fault=str(fault))
            self._signal.is_nudged = True
            return
        await self.resources.watch(found, has_gap=not self._is_begun)
        self._is_begun = True

    async def _kept(self, session: ClientSession) -> list[Subscription]:
        """The session's subscriptions. If the exchange has lost them, those of this stream are kept again.

        Raises: CoordinationUnavailable.
        """
        principal, kept = self._context.caller.principal, self._context.runtime.subscriptions
        read = await kept.of(principal, session)
        if self._mark and read.mark != self._mark:
            known = {each.address for each in read.found}
            lost = [each for each in self.resources.subscriptions if each.address not in known]
            for each in lost:
                await kept.add(principal, session, each)
            if lost:  # a table without any ends as well
                log.info("subscriptions of a session were lost, and are kept again", count=len(lost))
                read = await kept.of(principal, session)
        self._mark = read.mark
        return read.found

    async def _forget(self, addresses: Iterable[str]) -> None:
        """The caller has lost the right to them: the session is not subscribed to them any more."""
        context, subscriptions = self._context, self._context.runtime.subscriptions
        if context.session is None:
            return
        for address in addresses:
            try:
                await subscriptions.remove(context.caller.principal, context.session, address)
            except CoordinationUnavailable as fault:
                log.info("subscription of a session not removed", fault=str(fault))

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


async def stream_of(
    context: RequestContext,
    vendor: Vendor | None,
    kinds: Iterable[Listed],
    messages: Messages,
    subscriptions: Iterable[Subscription] = (),
) -> EventStream | None:
    """A stream with a message of each change; None if too many are open. `subscriptions`: without a session."""
    places, principal = context.runtime.streams, context.caller.principal
    session_id = None if context.session is None else context.session.id
    signal = None if draining.is_draining() else places.take(principal, session_id)
    if signal is None:
        return None
    watch: ChangeWatch | None = None

    async def end() -> None:
        if watch is not None:
            watch.resources.close()
        places.give_back(principal, signal)

    try:
        watch = ChangeWatch(context, vendor, kinds, signal)
        # Before the head of the answer: a client that has it hears of all that follows.
        first = messages.first(await watch.begin(subscriptions))
    except BaseException:
        await end()
        raise
    return EventStream(_events(watch, messages, first), on_end=end)


async def _events(watch: ChangeWatch, messages: Messages, first: bytes) -> AsyncIterator[bytes]:
    now_s = asyncio.get_running_loop().time
    until_s, look_s, said_s = now_s() + LONGEST_S, now_s() + LOOK_EVERY_S, now_s()
    yield b"retry: %d\n\n" % RETRY_MS
    if first:
        yield sse.encode_event(first)
    while now_s() < until_s and not draining.is_draining():
        has_news = await watch.wait(min(STEP_S, max(look_s - now_s(), 0.0)))
        if has_news or now_s() >= look_s:
            found = await watch.look()
            if found is None:
                break
            told = (*map(messages.changed, found[0]), *map(messages.updated, found[1]), *watch.connected.take())
            for message in told:
                yield sse.encode_event(message)
                said_s = now_s()
            look_s = now_s() + LOOK_EVERY_S
            if has_news or any(found):
                await asyncio.sleep(LEAST_GAP_S)
        if now_s() - said_s >= PING_EVERY_S:
            yield sse.COMMENT_PING
            said_s = now_s()
    if messages.last:
        yield sse.encode_event(messages.last)


_OF_SESSION = Messages(
    changed=lambda kind: jsonrpc.notification(kind.notification),
    updated=lambda address: jsonrpc.notification(UPDATED, {"uri": address}),
)


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
        is_compact = compact_calls.applies(context, route)
        kinds = [kind for kind in Listed if kind is not Listed.TOOLS or not is_compact]
        stream = await stream_of(context, vendor, kinds, _OF_SESSION)
        if stream is None:
            raise responses.no_more_streams()
        response = stream
    except Exception as fault:
        response = await served.refusal(fault)
    return served.finish(response)
