"""An MCP session with one vendor under one set of credentials, shared by many concurrent calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable, Mapping, Set
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeGuard

import msgspec
import structlog

from credentials.bearer_challenge import scopes_wanted
from gateway.lib import clock
from gateway.lib.background_tasks import BackgroundTasks
from proxy.progress_relay import ProgressRelay
from proxy.protocol import jsonrpc, progress, questions, refused_questions, replies, sse, versions
from proxy.protocol.item_kinds import UPDATED, Capability
from proxy.protocol.lost_sessions import SessionState, session_state
from proxy.protocol.modern import eras
from proxy.protocol.questions import Reply
from proxy.timing import Timing
from proxy.vendors import errors, fair_scheduler, resumption
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.era_verdicts import Verdict
from proxy.vendors.errors import Evidence, OtherEra, StaleSession
from proxy.vendors.handshake import (
    INITIALIZED,
    base_headers,
    declared_capabilities,
    declares_logging,
    initialize_params,
    session_headers,
    spoken_version,
)
from proxy.vendors.message_reader import Mask, ReplyMask, mask_message, read_single, read_stream
from proxy.vendors.response import VendorResponse
from proxy.vendors.resumption import HttpExchange, PendingResponse, RpcResponse
from proxy.vendors.retry_after import parse_retry_after
from proxy.vendors.tool_request import ToolRequest
from proxy.vendors.transport import Prepared, VendorTransport
from proxy.vendors.vendor_access import VendorAccess

log = structlog.get_logger(__name__)
_BACKGROUND_DEADLINE_S = 5.0
_MAX_IN_BACKGROUND = 10  # messages in flight; further ones are dropped, so a vendor cannot pile up work
CLOSE_DEADLINE_S = 2.0
_INITIALIZE_ID = 1  # of the first request of a session
LONGEST_QUESTION_S = 600.0  # a bound beside the shorter one of the question desk
BEGIN_LISTENING_S = 5.0  # for the head of the vendor's own stream
LONGEST_LISTENING_S = 1_800.0  # a connection that died without a word is noticed by then
SET_LEVEL = "logging/setLevel"
TOOLS_CHANGED = "notifications/tools/list_changed"
ITEMS_CHANGED = {
    "notifications/resources/list_changed": Capability.RESOURCES,
    "notifications/prompts/list_changed": Capability.PROMPTS,
    UPDATED: Capability.UPDATES,
}


class SessionListener(Protocol):
    """The owner of a session. Methods may not block."""

    def ended_session_unused(self, session: VendorSession) -> None:
        """The last request of a session with `is_ended` is answered."""
        ...

    def tools_changed(self, key: PoolKey) -> None:
        """The vendor announced a change of its tools."""
        ...

    def responded(self, destination: Destination) -> None:
        """The vendor works: it asks something in the middle of a call that may still run for long."""
        ...

    def era_doubted(self, session: VendorSession) -> None:
        """The vendor seems to speak another revision than the session."""
        ...

    def items_changed(self, key: PoolKey, capability: Capability) -> None:
        """The vendor announced a change of its resources or prompts."""
        ...

    def resource_updated(self, key: PoolKey, address: str) -> None:
        """The vendor announced a change of a resource, in the middle of a call."""
        ...

    def secret_echoed(self, key: PoolKey, tool: str) -> None:
        """The answer of this tool contained a stored credential."""
        ...


class Ear(Protocol):
    """Hears a vendor's own stream. Methods may not block."""

    def opened(self, honoured: Set[str] | None) -> None:
        """The stream has begun. `honoured`: the addresses whose changes come; None: those that are subscribed to."""
        ...

    def updated(self, address: str) -> None:
        """The vendor says that a resource has changed."""
        ...


@dataclass(slots=True, repr=False)
class VendorSession:
    """Initialized session; unique request ids keep answers to the calls that share it apart. Spec: D104"""

    transport: VendorTransport
    access: VendorAccess | None  # None while parked
    destination: Destination | None = None  # opens the access of a parked session again
    listener: SessionListener | None = None  # not without a destination
    on_connected: Callable[[], None] | None = None  # called for each new connection
    last_used_s: float = 0.0
    protocol_version: str = versions.NEWEST
    capabilities: frozenset[str] = frozenset()  # of `item_kinds`, as the vendor declared them
    session_id: str | None = None
    verdict: Verdict | None = None  # why it is of this revision; None if the vendor was not asked
    owner: Hashable = field(init=False, default=None)  # the organization, for fair scheduling
    is_ended: bool = False  # by the pool: it is closed after its last request
    is_lost: bool = False  # the vendor does not know it: there is nothing to close
    takes_log_level: bool = False  # of its one caller
    log_level: str | None = None  # the one it has
    has_answers: bool = False  # of its one caller: the vendor may remember them
    _last_id: int = 0  # of a request
    _under_way: int = 0  # requests
    _prepared: Prepared | None = None
    _background: BackgroundTasks | None = None

    def __post_init__(self) -> None:
        if self.destination is not None:
            self.owner = self.destination.key.org_id

    def __repr__(self) -> str:
        return "VendorSession()"  # the headers are the credential

    @property
    def is_in_use(self) -> bool:
        return self._under_way > 0

    @property
    def has_asked(self) -> bool:
        """Whether the vendor was sent a request."""
        return self._last_id > 0

    @property
    def is_modern(self) -> bool:
        return False

    @property
    def _is_of_one_caller(self) -> bool:
        return self.destination is not None and self.destination.capabilities is not None

    @property
    def needs_closing(self) -> bool:
        return self.session_id is not None and not self.is_lost

    def park(self) -> bool:
        """Drop all that can be made again without the vendor. The next request makes it again.

        False if the session is in use and was not parked.
        """
        if self.destination is None or self.is_in_use or self._background:
            return False
        self.access = self._prepared = self._background = None
        return True

    async def initialize(self, *, deadline: float) -> None:
        """Raises: VendorProblem."""
        self._prepared = self._prepare_with({**base_headers(), **self._open_access().headers})
        capabilities = None if self.destination is None else self.destination.capabilities
        answer = await self._round_trip("initialize", initialize_params(capabilities), deadline, first=True)
        if isinstance(answer, replies.RpcError):
            raise errors.bad_response("it refused to initialize")
        version = spoken_version(answer.raw_result)
        if version is None:
            raise errors.bad_response("it uses a protocol version that is not supported")
        self.protocol_version = version
        self.capabilities = declared_capabilities(answer.raw_result)
        self.takes_log_level = self._is_of_one_caller and declares_logging(answer.raw_result)
        self.prepare()
        async with self._send("POST", INITIALIZED, deadline) as sent:
            if sent.status >= 400:
                raise errors.bad_response(f"HTTP {sent.status} to the handshake")

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        deadline: float,
        relay: ProgressRelay | None = None,
        timing: Timing | None = None,
        tool: ToolRequest | None = None,
    ) -> replies.VendorResult | replies.RpcError:
        """With a `relay`, the vendor is asked for progress. `timing` learns of waits for a connection.

        Raises: VendorProblem; StaleSession when the vendor does not know the session, or seems not to.
        """
        self._under_way += 1
        try:
            if self.takes_log_level and relay is not None and relay.chosen_log_level not in (None, self.log_level):
                await self._set_log_level(str(relay.chosen_log_level), deadline)
            answer = await self._round_trip(method, params, deadline, relay=relay, timing=timing, tool=tool)
            if self.has_answers and isinstance(answer, replies.VendorResult):
                return msgspec.structs.replace(answer, is_personal=True)
            return answer
        finally:
            self._under_way -= 1
            self.last_used_s = asyncio.get_running_loop().time()
            if self.is_ended and not self._under_way and self.listener is not None:
                self.listener.ended_session_unused(self)

    async def listen(self, ear: Ear, addresses: Collection[str]) -> None:
        """Hear the vendor's own messages until their stream ends. `addresses`: for a vendor of the modern revision.

        Raises: VendorProblem; StaleSession.
        """
        self._under_way += 1
        try:
            await self._listen(ear, addresses)
        finally:
            self._under_way -= 1
            self.last_used_s = asyncio.get_running_loop().time()
            if self.is_ended and not self._under_way and self.listener is not None:
                self.listener.ended_session_unused(self)

    async def _listen(self, ear: Ear, addresses: Collection[str]) -> None:
        headers = {**self._headers(), "Accept": "text/event-stream"}
        del headers["Content-Type"]
        now_s = asyncio.get_running_loop().time
        prepared = self._prepare_with(headers)
        sent = self.transport.send(
            "GET", prepared, None, deadline=now_s() + BEGIN_LISTENING_S, on_connected=self.on_connected
        )
        async with sent as answer:
            if answer.status == 200 and answer.is_event_stream:
                sent.move_deadline(now_s() + LONGEST_LISTENING_S)
                ear.opened(None)
                await self._hear(answer, ear, sent, None)
                return
            raise_if_refused(answer)
        # Many servers answer 404 where they have no stream. A request says whether the session has ended.
        await self._round_trip("ping", {}, now_s() + BEGIN_LISTENING_S)
        raise errors.bad_response("it has no stream for its own messages")

    async def _hear(self, answer: VendorResponse, ear: Ear, sent: HttpExchange, message_id: int | None) -> None:
        """Until the end of the stream, or the result of `message_id`. Raises: VendorProblem."""
        mask = ReplyMask(self._open_access().secrets)
        stream = sse.SSEParser(max_stream_bytes=self.transport.body_bytes)
        pending = PendingResponse(-1, answer.deadline, None, stream, mask, is_resumable=False)
        try:
            async with aclosing(read_stream(answer, self.owner, stream, mask)) as found:
                async for message in found:
                    if message_id is not None and is_response(message, message_id):
                        return
                    await self._heard(message, ear, sent, pending)
        except (replies.BadVendorReply, sse.SSETooLarge) as fault:
            raise errors.bad_response(str(fault)) from fault
        finally:
            if mask.has_found and self.listener is not None and self.destination is not None:
                self.listener.secret_echoed(self.destination.key, UPDATED)

    async def _heard(
        self, message: replies.VendorMessage, ear: Ear, sent: HttpExchange, pending: PendingResponse
    ) -> None:
        if not isinstance(message, replies.VendorNotification) or message.method != UPDATED:
            await self._handle_other(message, pending)
        elif (address := replies.updated_address(message.raw)) is not None:
            ear.updated(address)

    async def _set_log_level(self, level: str, deadline: float) -> None:
        """A vendor that refuses sends what it likes: the relay lets no less severe message pass."""
        self.log_level = level
        answer = await self._round_trip(SET_LEVEL, {"level": level}, deadline)
        if isinstance(answer, replies.RpcError):
            log.info("vendor takes no log level", code=answer.code)

    async def close(self) -> None:
        """Ask the vendor to end the session; errors are only logged."""
        for task in self._background or ():
            task.cancel()
        if not self.needs_closing:
            return
        deadline = asyncio.get_running_loop().time() + CLOSE_DEADLINE_S
        try:
            async with self._send("DELETE", None, deadline):
                pass
        except errors.VendorProblem as problem:
            log.debug("vendor session not closed", fault=problem.fault.value)

    async def _round_trip(
        self,
        method: str,
        params: Mapping[str, Any],
        deadline: float,
        *,
        first: bool = False,
        relay: ProgressRelay | None = None,
        timing: Timing | None = None,
        tool: ToolRequest | None = None,
    ) -> replies.VendorResult | replies.RpcError:
        prepared = self._prepared or self.prepare()
        self._last_id = message_id = self._last_id + 1
        mask = ReplyMask(self._open_access().secrets)
        if relay is not None and relay.wants_progress:  # unique in this session, as tokens must be
            params = progress.with_token(params, message_id)
        body = jsonrpc.request(message_id, method, params)
        try:
            sent = self.transport.send(  # not through `_send`, to save a Python call per request
                "POST", prepared, body, deadline=deadline, on_connected=self.on_connected, timing=timing
            )
            async with sent as answer:
                if answer.status != 200:
                    return await self._refusal(answer, message_id, mask)
                if first:
                    self.session_id = answer.header("Mcp-Session-Id")
                if not answer.is_event_stream:
                    return await self._read_single(answer, message_id, mask)
                stream = sse.SSEParser(max_stream_bytes=self.transport.body_bytes)
                ask = tool.ask if tool is not None and self._is_of_one_caller else None
                pending = PendingResponse(
                    *(message_id, deadline, relay, stream, mask),
                    is_resumable=not first,
                    ask=ask,
                    timing=timing or Timing(),
                    exchange=sent,
                )
                found = await self._read_stream(answer, pending)
            found = found or await resumption.read_resumed(pending, partial(self._resume, timing))
            return await self._with_refused(found, pending.refused) if pending.refused else found
        except errors.VendorProblem as problem:
            if problem.is_own_timeout and not first:
                self._cancel_later(message_id)
            raise
        except StaleSession:  # the vendor doesn't work on it
            raise
        except BaseException:  # the call ends for a reason of our side, such as rights that ended or cannot be read
            if not first:
                self._cancel_later(message_id)
            raise
        finally:
            if mask.has_found and self.listener is not None and self.destination is not None:
                self.listener.secret_echoed(self.destination.key, str(params.get("name") or method))

    async def _read_single(
        self, answer: VendorResponse, message_id: int, mask: Mask
    ) -> replies.VendorResult | replies.RpcError:
        try:  # no generator such as `read_stream`, which would need closing
            message = await read_single(answer, self.owner, mask)
        except replies.BadVendorReply as fault:
            raise errors.bad_response(str(fault)) from fault
        if is_response(message, message_id):
            return message
        self._reply_to_request(message)
        raise errors.no_response()

    async def _read_stream(
        self, answer: VendorResponse, pending: PendingResponse
    ) -> replies.VendorResult | replies.RpcError | None:
        """The answer among the other messages of the stream; None if the stream ends first."""
        try:
            async with aclosing(read_stream(answer, self.owner, pending.stream, pending.mask)) as found:
                async for message in found:
                    if is_response(message, pending.message_id):
                        return message
                    await self._handle_other(message, pending)
        except TimeoutError as fault:  # the caller did not read the vendor's progress
            raise errors.timeout(Evidence.RESPONDED) from fault
        except (replies.BadVendorReply, sse.SSETooLarge) as fault:
            raise errors.bad_response(str(fault)) from fault
        except errors.VendorProblem as problem:
            if not problem.is_interrupted or pending.event_id is None:
                raise
        return None

    async def _resume(
        self, timing: Timing | None, pending: PendingResponse, event_id: str
    ) -> replies.VendorResult | replies.RpcError | None:
        headers = {**self._headers(), "Accept": "text/event-stream", "Last-Event-ID": event_id}
        del headers["Content-Type"]
        prepared = self._prepare_with(headers)
        sent = self.transport.send(
            "GET", prepared, None, deadline=pending.deadline, on_connected=self.on_connected, timing=timing
        )
        async with sent as answer:
            if answer.status == 200 and answer.is_event_stream:
                pending.exchange = sent
                return await self._read_stream(answer, pending)
            raise_if_refused(answer)
            raise errors.no_response()

    async def _with_refused(self, found: RpcResponse, refused: list[str]) -> RpcResponse:
        size_bytes = len(found.raw_error if isinstance(found, replies.RpcError) else found.raw_result)
        return await fair_scheduler.run_small_inline(
            self.owner, partial(refused_questions.told, found, refused), size_bytes
        )

    def _cancel_later(self, message_id: int) -> None:
        """A closed connection does not cancel a request. Spec: protocol.md A.5"""
        self._send_later(jsonrpc.notification("notifications/cancelled", {"requestId": message_id}))

    async def _refusal(self, answer: VendorResponse, message_id: int, mask: Mask) -> replies.RpcError:
        """The JSON-RPC error in a 400 or 404, sent by many servers for a bad request. Spec: D105

        Raises: StaleSession; VendorProblem for other statuses, or without such an error.
        """
        raise_if_refused(answer)
        status = answer.status
        body = await answer.body(self.owner) if status in (400, 404) else b""
        error = replies.refusal(await mask_message(answer, self.owner, mask, body), message_id)
        if eras.refuses_earlier(status, error):
            raise OtherEra(status, error)
        # A vendor without sessions may be replaced by a release that has some.
        if self.session_id is not None or (status == 400 and message_id > _INITIALIZE_ID):
            state = session_state(status, body, error)
            if state is not SessionState.KNOWN:
                raise StaleSession(status, error, is_certain=state is SessionState.UNKNOWN)
        if error is None:
            raise errors.bad_response(f"HTTP {status}")
        return error

    async def _handle_other(self, message: replies.VendorMessage, pending: PendingResponse) -> None:
        """Raises: TimeoutError while the caller's relay is full."""
        if not isinstance(message, replies.VendorNotification):
            if isinstance(message, replies.VendorRequest) and message.method != "ping":
                await self._answer_question(message, pending)
            else:
                self._reply_to_request(message)
        elif message.method == TOOLS_CHANGED and self.listener is not None and self.destination is not None:
            self.listener.tools_changed(self.destination.list_key)
        elif message.method in ITEMS_CHANGED and self.listener is not None and self.destination is not None:
            capability, key = ITEMS_CHANGED[message.method], self.destination.list_key
            if capability is not Capability.UPDATES:
                self.listener.items_changed(key, capability)
            elif (address := replies.updated_address(message.raw)) is not None:
                self.listener.resource_updated(key, address)
        elif pending.relay is not None:
            await pending.relay.put(message, pending.message_id, deadline=pending.deadline)

    async def _answer_question(self, message: replies.VendorRequest, pending: PendingResponse) -> None:
        """With the caller's answer, or with a refusal if the caller cannot be asked. Raises: CallEnded."""
        reply = await self._reply_of_caller(message, pending)
        if reply is None:
            self._reply_to_request(message)
            refused_questions.noted(pending.refused, message.method)
        else:
            self.has_answers = True
            await self._send_in_background(reply.message(message.id))

    async def _reply_of_caller(self, message: replies.VendorRequest, pending: PendingResponse) -> Reply | None:
        if pending.ask is None:
            return None
        size_bytes = len(message.raw) * questions.READING_FACTOR
        question = await fair_scheduler.run_small_inline(self.owner, partial(questions.read, message.raw), size_bytes)
        if question is None:
            return None
        loop = asyncio.get_running_loop()
        left_s = pending.deadline - loop.time()
        # Nothing is read meanwhile: the rest of the stream waits in the connection, within its bound.
        pending.move_deadline(loop.time() + LONGEST_QUESTION_S + left_s)
        if self.listener is not None and self.destination is not None:
            self.listener.responded(self.destination)
        try:
            with pending.timing.caller_wait():
                return await pending.ask(question)
        finally:
            pending.move_deadline(loop.time() + left_s)

    def _reply_to_request(self, message: replies.VendorMessage) -> None:
        if not isinstance(message, replies.VendorRequest):
            return
        # The vendor waits for an answer in the middle of a call, so it gets one at once.
        if message.method == "ping":
            self._send_later(jsonrpc.result(message.id, {}))
        else:
            text = "The gateway can't ask this of this client in the middle of this call."
            self._send_later(jsonrpc.error(message.id, jsonrpc.METHOD_NOT_FOUND, text))

    def _send_later(self, body: bytes) -> None:
        if self._background is None:
            self._background = BackgroundTasks()
        if len(self._background) < _MAX_IN_BACKGROUND:
            self._background.start(self._send_in_background(body))

    async def _send_in_background(self, body: bytes) -> None:
        deadline = asyncio.get_running_loop().time() + _BACKGROUND_DEADLINE_S
        try:
            async with self._send("POST", body, deadline):
                pass
        except errors.VendorProblem as problem:
            log.info("vendor not told", fault=problem.fault.value)

    def _send(self, method: str, body: bytes | None, deadline: float) -> AbstractAsyncContextManager[VendorResponse]:
        """Raises: VendorProblem, if the credential of a parked session does not open any more."""
        prepared = self._prepared or self.prepare()
        return self.transport.send(method, prepared, body, deadline=deadline, on_connected=self.on_connected)

    def _open_access(self) -> VendorAccess:
        if self.access is None:
            if self.destination is None:
                raise RuntimeError("a session without a destination was parked")
            self.access = VendorAccess.of(self.destination)
        return self.access

    def prepare(self) -> Prepared:
        """Address and headers of all requests after `initialize`, encoded once. Raises: VendorProblem."""
        self._prepared = self._prepare_with(self._headers())
        return self._prepared

    def _prepare_with(self, headers: Mapping[str, str]) -> Prepared:
        target, url = self.destination, self._open_access().url
        if target is None:
            return self.transport.prepare(url, headers)
        key, has_own_address = target.key, not target.fixed_address
        return self.transport.prepare(
            url, headers, key.vendor, organization=key.org_id, has_own_address=has_own_address
        )

    def _headers(self) -> dict[str, str]:
        own = session_headers(self.protocol_version, self.session_id)
        return {**base_headers(), **self._open_access().headers, **own}


def is_response(message: replies.VendorMessage, message_id: int) -> TypeGuard[replies.VendorResult | replies.RpcError]:
    return isinstance(message, replies.VendorResult | replies.RpcError) and message.id == message_id


def raise_if_refused(answer: VendorResponse) -> None:
    """Raises: VendorProblem for statuses about credentials, limits and the vendor's own faults."""
    if answer.status in (401, 403):
        wanted = scopes_wanted(answer.header("WWW-Authenticate")) if answer.status == 403 else ""
        raise errors.rejected_credentials(answer.status, wanted)
    if answer.status == 429:
        raise errors.rate_limited(parse_retry_after(answer.header("Retry-After"), now=clock.now()))
    if answer.status >= 500:
        raise errors.unavailable(f"The vendor answered HTTP {answer.status}.", Evidence.RESPONDED, answer.status)
