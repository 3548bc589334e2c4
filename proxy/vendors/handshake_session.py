"""Sessions with vendors of the revisions before 2026-07-28: they begin with a handshake and may have an id.

Spec: protocol.md A · D104, D105
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import msgspec
import structlog

from gateway.lib.background_tasks import BackgroundTasks
from proxy.outcomes import VendorFault
from proxy.protocol import jsonrpc, progress, questions, refused_questions, replies, sse
from proxy.protocol.lost_sessions import SessionState, session_state
from proxy.protocol.modern import eras
from proxy.protocol.questions import Reply
from proxy.timing import Timing
from proxy.vendors import errors, fair_scheduler, resumption
from proxy.vendors.errors import OtherEra, StaleSession
from proxy.vendors.handshake import (
    INITIALIZED,
    base_headers,
    declared_capabilities,
    declares_logging,
    initialize_params,
    session_headers,
    spoken_version,
)
from proxy.vendors.message_reader import Mask, ReplyMask, mask_message
from proxy.vendors.response import VendorResponse
from proxy.vendors.resumption import PendingResponse, RpcResponse
from proxy.vendors.rpc_request import RpcRequest
from proxy.vendors.session import (
    BEGIN_LISTENING_S,
    CLOSE_DEADLINE_S,
    LONGEST_LISTENING_S,
    Ear,
    VendorSession,
    raise_if_refused,
)
from proxy.vendors.transport import VendorExchange

log = structlog.get_logger(__name__)
_BACKGROUND_DEADLINE_S = 5.0
_MAX_IN_BACKGROUND = 10  # messages in flight; further ones are dropped, so a vendor cannot pile up work
_INITIALIZE_ID = 1  # of the first request of a session
LONGEST_QUESTION_S = 600.0  # a bound beside the shorter one of the question desk
SET_LEVEL = "logging/setLevel"


@dataclass(slots=True, repr=False)
class HandshakeSession(VendorSession):
    """Usable once it is initialized. The vendor may ask something in the middle of a request."""

    is_modern: ClassVar[bool] = False
    session_id: str | None = None
    takes_log_level: bool = False  # of its one caller
    log_level: str | None = None  # the one it has
    has_answers: bool = False  # of its one caller: the vendor may remember them
    _background: BackgroundTasks | None = None

    @property
    def _is_of_one_caller(self) -> bool:
        return self.destination is not None and self.destination.capabilities is not None

    @property
    def needs_closing(self) -> bool:
        return self.session_id is not None and not self.is_lost

    def park(self) -> bool:
        if self._background or not VendorSession.park(self):
            return False
        self._background = None
        return True

    async def initialize(self, *, deadline: float) -> None:
        """Raises: VendorProblem."""
        self._prepared = self._prepare_with({**base_headers(), **self._open_access().headers})
        capabilities = None if self.destination is None else self.destination.capabilities
        answer = await self._round_trip(RpcRequest("initialize", initialize_params(capabilities), deadline))
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

    async def _set_log_level(self, level: str, deadline: float) -> None:
        """A vendor that refuses sends what it likes: the relay lets no less severe message pass."""
        self.log_level = level
        answer = await self._round_trip(RpcRequest(SET_LEVEL, {"level": level}, deadline))
        if isinstance(answer, replies.RpcError):
            log.info("vendor takes no log level", code=answer.code)

    async def close(self) -> None:
        for task in self._background or ():
            task.cancel()
        if not self.needs_closing:
            return
        fault = await self._tell("DELETE", None, CLOSE_DEADLINE_S)
        if fault is not None:
            log.debug("vendor session not closed", fault=fault.value)

    async def _round_trip(self, request: RpcRequest) -> RpcResponse:
        relay = request.relay
        if self.takes_log_level and relay is not None and relay.chosen_log_level not in (None, self.log_level):
            await self._set_log_level(str(relay.chosen_log_level), request.deadline)
        self._last_id = message_id = self._last_id + 1
        mask = ReplyMask(self._open_access().secrets)
        try:
            found = await self._exchange(request, message_id, mask)
        except BaseException as fault:
            if message_id != _INITIALIZE_ID and _may_be_at_work(fault):
                self._cancel_later(message_id)
            raise
        finally:
            if mask.has_found:
                self._echoed_secret(request.name)
        if self.has_answers and isinstance(found, replies.VendorResult):
            return msgspec.structs.replace(found, is_personal=True)
        return found

    async def _exchange(self, request: RpcRequest, message_id: int, mask: Mask) -> RpcResponse:
        prepared, params, relay = self._prepared or self.prepare(), request.params, request.relay
        if relay is not None and relay.wants_progress:  # unique in this session, as tokens must be
            params = progress.with_token(params, message_id)
        body = jsonrpc.request(message_id, request.method, params)
        sent = self.transport.send(  # not through `_send`, to save a Python call per request
            "POST",
            prepared,
            body,
            deadline=request.deadline,
            on_connected=self.on_connected,
            timing=request.timing,
        )
        async with sent as answer:
            if answer.status != 200:
                return await self._refusal(answer, message_id, mask)
            if message_id == _INITIALIZE_ID:
                self.session_id = answer.header("Mcp-Session-Id")
            if not answer.is_event_stream:
                return await self._read_single(answer, message_id, mask)
            stream = sse.SSEParser(max_stream_bytes=self.transport.body_bytes)
            pending = PendingResponse(
                message_id,
                request.deadline,
                relay,
                stream,
                mask,
                is_resumable=message_id != _INITIALIZE_ID,
                ask=request.tool.ask if request.tool is not None and self._is_of_one_caller else None,
                timing=request.timing,
                exchange=sent,
            )
            found = await self._read_stream(answer, pending)
        found = found or await resumption.read_resumed(pending, self._resume)
        return await self._with_refused(found, pending.refused) if pending.refused else found

    async def _resume(self, pending: PendingResponse, event_id: str) -> RpcResponse | None:
        sent = self._send_for_stream(pending.deadline, {"Last-Event-ID": event_id}, pending.timing)
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

    async def _listen(self, ear: Ear, addresses: Collection[str]) -> None:
        now_s = asyncio.get_running_loop().time
        sent = self._send_for_stream(now_s() + BEGIN_LISTENING_S)
        async with sent as answer:
            if answer.status == 200 and answer.is_event_stream:
                sent.move_deadline(now_s() + LONGEST_LISTENING_S)
                ear.opened(None)
                await self._hear(answer, ear, sent, None)
                return
            raise_if_refused(answer)
        # Many servers answer 404 where they have no stream. A request says whether the session has ended.
        await self._round_trip(RpcRequest("ping", {}, now_s() + BEGIN_LISTENING_S))
        raise errors.bad_response("it has no stream for its own messages")

    async def _answer(self, message: replies.VendorMessage, pending: PendingResponse | None) -> None:
        if not isinstance(message, replies.VendorRequest):
            return
        # The vendor waits for an answer in the middle of a call, so it gets one at once.
        if message.method == "ping":
            self._send_later(jsonrpc.result(message.id, {}))
        elif pending is None:
            self._refuse_question(message)
        else:
            await self._answer_question(message, pending)

    async def _answer_question(self, message: replies.VendorRequest, pending: PendingResponse) -> None:
        """With the caller's answer, or with a refusal if the caller cannot be asked. Raises: CallEnded."""
        reply = await self._reply_of_caller(message, pending)
        if reply is None:
            self._refuse_question(message)
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

    def _refuse_question(self, message: replies.VendorRequest) -> None:
        text = "The gateway can't ask this of this client in the middle of this call."
        self._send_later(jsonrpc.error(message.id, jsonrpc.METHOD_NOT_FOUND, text))

    def _send_later(self, body: bytes) -> None:
        if self._background is None:
            self._background = BackgroundTasks()
        if len(self._background) < _MAX_IN_BACKGROUND:
            self._background.start(self._send_in_background(body))

    async def _send_in_background(self, body: bytes) -> None:
        fault = await self._tell("POST", body, _BACKGROUND_DEADLINE_S)
        if fault is not None:
            log.info("vendor not told", fault=fault.value)

    async def _tell(self, method: str, body: bytes | None, within_s: float) -> VendorFault | None:
        """Send what has no answer to read. Returns why it failed."""
        deadline = asyncio.get_running_loop().time() + within_s
        try:
            async with self._send(method, body, deadline):
                return None
        except errors.VendorProblem as problem:
            return problem.fault

    def _send(self, method: str, body: bytes | None, deadline: float) -> VendorExchange:
        """Raises: VendorProblem, if the credential of a parked session does not open any more."""
        prepared = self._prepared or self.prepare()
        return self.transport.send(method, prepared, body, deadline=deadline, on_connected=self.on_connected)

    def _send_for_stream(
        self, deadline: float, more: Mapping[str, str] | None = None, timing: Timing | None = None
    ) -> VendorExchange:
        """GET; the answer is an event stream."""
        headers = {**self._headers(), "Accept": "text/event-stream", **(more or {})}
        del headers["Content-Type"]
        prepared = self._prepare_with(headers)
        return self.transport.send(
            "GET", prepared, None, deadline=deadline, on_connected=self.on_connected, timing=timing
        )

    def _headers(self) -> dict[str, str]:
        return {**VendorSession._headers(self), **session_headers(None, self.session_id)}


def _may_be_at_work(fault: BaseException) -> bool:
    """Whether the vendor may still work on a request that ended so."""
    if isinstance(fault, errors.VendorProblem):
        return fault.is_own_timeout
    # All else but a lost session is a reason of our side, such as rights that ended or cannot be read.
    return not isinstance(fault, StaleSession)
