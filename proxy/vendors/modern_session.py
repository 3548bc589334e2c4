"""Requests to a vendor that speaks MCP 2026-07-28: no handshake, no session id, each request stands for itself.

Spec: MCP 2026-07-28, basic/transports/streamable-http · docs/decisions/0106
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import msgspec

from proxy.protocol import jsonrpc, questions, replies, sse
from proxy.protocol.modern import (
    eras,
    headers,
    input_required,
    listed_tools,
    param_headers,
    subscriptions,
    vendor_requests,
)
from proxy.protocol.modern.eras import Era
from proxy.protocol.modern.errors import HEADER_MISMATCH
from proxy.vendors import errors, fair_scheduler
from proxy.vendors.errors import OtherEra
from proxy.vendors.handshake import CLIENT_INFO
from proxy.vendors.message_reader import Mask, ReplyMask, mask_message
from proxy.vendors.response import VendorResponse
from proxy.vendors.resumption import HttpExchange, PendingResponse, RpcResponse
from proxy.vendors.rpc_request import RpcRequest
from proxy.vendors.session import (
    BEGIN_LISTENING_S,
    LONGEST_LISTENING_S,
    Ear,
    VendorSession,
    is_response,
    raise_if_refused,
)
from proxy.vendors.tool_request import ToolRequest
from proxy.vendors.transport import VendorExchange

DISCOVER = "server/discover"
MAX_DISCOVERY_BYTES = 256 * 1024  # instructions may be long; a longer answer is no answer to the question


@dataclass(slots=True, repr=False)
class ModernSession(VendorSession):
    """Usable at once."""

    is_modern: ClassVar[bool] = True
    protocol_version: str = vendor_requests.VERSION

    @property
    def needs_closing(self) -> bool:
        return False

    async def close(self) -> None:
        """There is nothing to end."""

    async def discover(self, *, deadline: float) -> tuple[Era, bytes]:
        """The meaning of the vendor's answer to `server/discover`, and the result, b"" without one.

        Raises: VendorProblem, if there is no answer or if it is about the credentials.
        """
        message_id = self._next_id()
        mask = ReplyMask(self._open_access().secrets)
        async with self._send_request(RpcRequest(DISCOVER, {}, deadline), message_id) as answer:
            if answer.status in (401, 429):
                raise_if_refused(answer)
            said = eras.of_status(answer.status)
            if said is not None:
                return said, b""
            found = await self._read_discovery(answer, message_id, mask)
            raw = found.raw_result if isinstance(found, replies.VendorResult) else b""
            return eras.of_answer(answer.status, found), raw

    async def _read_discovery(self, answer: VendorResponse, message_id: int, mask: Mask) -> RpcResponse | None:
        """None for anything but an answer to the question."""
        stream = sse.SSEParser(max_stream_bytes=MAX_DISCOVERY_BYTES)
        try:
            if answer.status != 200:
                return replies.refusal(mask(await self._short_body(answer)), message_id)
            if answer.is_event_stream:
                pending = PendingResponse(message_id, answer.deadline, None, stream, mask, is_resumable=False)
                return await self._read_stream(answer, pending)
            found = replies.parse_message(mask(await self._short_body(answer)))
        except replies.BadVendorReply:
            return None
        except errors.VendorProblem as problem:
            if problem.evidence is not errors.Evidence.RESPONDED or problem.is_own_timeout:
                raise
            return None
        return found if is_response(found, message_id) else None

    async def _short_body(self, answer: VendorResponse) -> bytes:
        """Raises: BadVendorReply for a long one, of which the rest is not read; VendorProblem from the transport."""
        pieces: list[bytes] = []
        size = 0
        async with aclosing(answer.chunks(self.owner)) as chunks:
            async for chunk in chunks:
                pieces.append(chunk)
                size += len(chunk)
                if size > MAX_DISCOVERY_BYTES:
                    raise replies.BadVendorReply("it is too large")
        return b"".join(pieces)

    async def _round_trip(self, request: RpcRequest) -> RpcResponse:
        message_id = self._next_id()
        mask = ReplyMask(self._open_access().secrets)
        try:
            more = await self._headers_of_arguments(request)
        except param_headers.TooLong as fault:  # nothing is sent: without them the vendor had to refuse
            return _refused_here(message_id, str(fault))
        try:
            found = await self._exchange(request, message_id, mask, more)
        finally:
            if mask.has_found:
                self._echoed_secret(request.name)
        if isinstance(found, replies.RpcError):
            return _told_in_words(found, request.tool)
        return await self._complete(request.method, found)

    async def _headers_of_arguments(self, request: RpcRequest) -> Mapping[str, str]:
        """Raises: TooLong."""
        if request.tool is None or not request.tool.definition:
            return {}
        definition = request.tool.definition
        work = partial(param_headers.of_call, definition, request.params.get("arguments") or {})
        return await fair_scheduler.run_small_inline(self.owner, work, len(definition))

    async def _exchange(self, request: RpcRequest, message_id: int, mask: Mask, more: Mapping[str, str]) -> RpcResponse:
        """`more`: headers."""
        found: RpcResponse | None
        async with self._send_request(request, message_id, more) as answer:
            if answer.status != 200:
                found = await self._refusal(answer, message_id, mask)
            elif answer.is_event_stream:
                stream = sse.SSEParser(max_stream_bytes=self.transport.body_bytes)
                pending = PendingResponse(message_id, request.deadline, request.relay, stream, mask, is_resumable=False)
                found = await self._read_stream(answer, pending)
            else:
                found = await self._read_single(answer, message_id, mask)
        if found is None:
            raise errors.no_response()
        return found

    async def _listen(self, ear: Ear, addresses: Collection[str]) -> None:
        message_id = self._next_id()
        params = {"notifications": {"resourceSubscriptions": list(addresses)}}
        deadline = asyncio.get_running_loop().time() + BEGIN_LISTENING_S  # for the acknowledgement, too
        sent = self._send_request(RpcRequest(subscriptions.LISTEN, params, deadline), message_id)
        async with sent as answer:
            if answer.status != 200:
                await self._refusal(answer, message_id, ReplyMask(self._open_access().secrets))
            if answer.status != 200 or not answer.is_event_stream:
                raise errors.bad_response("it refused to announce changes")
            await self._hear(answer, ear, sent, message_id)

    async def _heard(
        self, message: replies.VendorMessage, ear: Ear, sent: HttpExchange, pending: PendingResponse
    ) -> None:
        # Methods of a class with slots have no super() without its name.
        if isinstance(message, replies.VendorNotification) and message.method == subscriptions.ACKNOWLEDGED:
            sent.move_deadline(asyncio.get_running_loop().time() + LONGEST_LISTENING_S)
            ear.opened(replies.honoured_addresses(message.raw))
        else:
            await VendorSession._heard(self, message, ear, sent, pending)

    async def _complete(self, method: str, found: replies.VendorResult) -> RpcResponse:
        """The result as the earlier revisions have it. Raises: VendorProblem for one that is not complete."""
        try:
            look = partial(vendor_requests.result_type, found.raw_result)
            kind = await fair_scheduler.run_small_inline(self.owner, look, len(found.raw_result))
            if kind == input_required.INPUT_REQUIRED and method in input_required.MAY_ASK:
                size_bytes = len(found.raw_result) * questions.READING_FACTOR
                return await fair_scheduler.run_small_inline(
                    self.owner, partial(input_required.read, found), size_bytes
                )
        except replies.BadVendorReply as fault:
            raise errors.bad_response(fault.reason) from fault
        if kind is None:
            self._doubt()  # a vendor of an earlier revision that does not look at versions: this answer counts
            return found
        if kind != vendor_requests.COMPLETE:
            raise errors.bad_response("its result is of a type that the gateway does not know")
        strip = listed_tools.usable if method == "tools/list" else vendor_requests.without_type
        work = partial(strip, found.raw_result)
        raw = await fair_scheduler.run_small_inline(self.owner, work, len(found.raw_result))
        return replies.VendorResult(found.id, raw, found.is_error)

    async def _refusal(self, answer: VendorResponse, message_id: int, mask: Mask) -> replies.RpcError:
        """The JSON-RPC error in a 400 or 404. Raises: OtherEra; VendorProblem as for the earlier revisions."""
        raise_if_refused(answer)
        status = answer.status
        body = await answer.body(self.owner) if status in (400, 404) else b""
        error = replies.refusal(await mask_message(answer, self.owner, mask, body), message_id)
        if eras.refuses_modern(status, body, error):
            raise OtherEra(status, error)
        if eras.casts_doubt(status, error):
            self._doubt()
        if error is None:
            raise errors.bad_response(f"HTTP {status}")
        if error.code == HEADER_MISMATCH and self.listener is not None and self.destination is not None:
            # The vendor's definition of the tool asks for other headers by now.
            self.listener.tools_changed(self.destination.list_key)
        return error

    def _send_request(
        self, request: RpcRequest, message_id: int, more: Mapping[str, str] | None = None
    ) -> VendorExchange:
        """`more`: headers."""
        prepared, relay, tool = self._prepared or self.prepare(), request.relay, request.tool
        full = vendor_requests.with_meta(
            request.params,
            CLIENT_INFO,
            token=message_id if relay is not None and relay.wants_progress else None,
            log_level=None if relay is None else relay.asked_log_level,
            capabilities=None if tool is None else tool.capabilities,
        )
        own = {**headers.of_request(request.method, request.params), **(more or {})}
        return self.transport.send(
            "POST",
            prepared.with_headers(own),
            jsonrpc.request(message_id, request.method, full),
            deadline=request.deadline,
            on_connected=self.on_connected,
            timing=request.timing,
        )

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _doubt(self) -> None:
        if self.listener is not None:
            self.listener.era_doubted(self)

    async def _answer(self, message: replies.VendorMessage, pending: PendingResponse | None) -> None:
        """The revision has no requests of servers: nothing could take the answer."""


def _refused_here(message_id: int, text: str) -> replies.RpcError:
    raw = msgspec.json.encode({"code": jsonrpc.INVALID_PARAMS, "message": text})
    return replies.RpcError(message_id, jsonrpc.INVALID_PARAMS, text, raw)


def _told_in_words(error: replies.RpcError, tool: ToolRequest | None) -> RpcResponse:
    """A refusal for want of a capability, as a result for a caller that knows no such error."""
    if tool is None or not tool.definition or tool.capabilities is not None:
        return error
    needed = input_required.capabilities_needed(error)
    if needed is None or error.id is None:
        return error
    return replies.VendorResult(error.id, input_required.failed_result(input_required.in_vain(needed)), True)
