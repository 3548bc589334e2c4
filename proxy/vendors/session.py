"""An MCP session with one vendor under one set of credentials, shared by many concurrent calls.

Vendors of the earlier revisions have a `HandshakeSession`, those of 2026-07-28 a `ModernSession`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Set
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, TypeGuard

from credentials.bearer_challenge import scopes_wanted
from gateway.lib import clock
from proxy.protocol import replies, sse, versions
from proxy.protocol.item_kinds import UPDATED, Capability
from proxy.vendors import errors
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.era_verdicts import Verdict
from proxy.vendors.errors import Evidence
from proxy.vendors.handshake import base_headers, session_headers
from proxy.vendors.message_reader import Mask, ReplyMask, read_single, read_stream
from proxy.vendors.response import VendorResponse
from proxy.vendors.resumption import HttpExchange, PendingResponse, RpcResponse
from proxy.vendors.retry_after import parse_retry_after
from proxy.vendors.rpc_request import RpcRequest
from proxy.vendors.transport import Prepared, VendorTransport
from proxy.vendors.vendor_access import VendorAccess

CLOSE_DEADLINE_S = 2.0
BEGIN_LISTENING_S = 5.0  # for the head of the vendor's own stream
LONGEST_LISTENING_S = 1_800.0  # a connection that died without a word is noticed by then
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
class VendorSession(ABC):
    """Unique request ids keep answers to the calls that share a session apart. Spec: D104"""

    is_modern: ClassVar[bool]  # whether it is of the revision 2026-07-28
    transport: VendorTransport
    access: VendorAccess | None  # None while parked
    destination: Destination | None = None  # opens the access of a parked session again
    listener: SessionListener | None = None  # not without a destination
    on_connected: Callable[[], None] | None = None  # called for each new connection
    last_used_s: float = 0.0
    protocol_version: str = versions.NEWEST
    capabilities: frozenset[str] = frozenset()  # of `item_kinds`, as the vendor declared them
    verdict: Verdict | None = None  # why it is of this revision; None if the vendor was not asked
    owner: Hashable = field(init=False, default=None)  # the organization, for fair scheduling
    is_ended: bool = False  # by the pool: it is closed after its last request
    is_lost: bool = False  # the vendor does not know it: there is nothing to close
    _last_id: int = 0  # of a request
    _under_way: int = 0  # requests
    _prepared: Prepared | None = None

    def __post_init__(self) -> None:
        if self.destination is not None:
            self.owner = self.destination.key.org_id

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"  # the headers are the credential

    @property
    def is_in_use(self) -> bool:
        return self._under_way > 0

    @property
    def has_asked(self) -> bool:
        """Whether the vendor was sent a request."""
        return self._last_id > 0

    @property
    @abstractmethod
    def needs_closing(self) -> bool:
        """Whether the vendor holds something that `close` would end."""

    @abstractmethod
    async def close(self) -> None:
        """Ask the vendor to end the session; errors are only logged."""

    def park(self) -> bool:
        """Drop all that can be made again without the vendor. The next request makes it again.

        False if the session is in use and was not parked.
        """
        if self.destination is None or self.is_in_use:
            return False
        self.access = self._prepared = None
        return True

    async def request(self, request: RpcRequest) -> RpcResponse:
        """Raises: VendorProblem; StaleSession when the vendor does not know the session, or seems not to."""
        self._under_way += 1
        try:
            return await self._round_trip(request)
        finally:
            self._ended_request()

    async def listen(self, ear: Ear, addresses: Collection[str]) -> None:
        """Hear the vendor's own messages until their stream ends. `addresses`: for a vendor of the modern revision.

        Raises: VendorProblem; StaleSession.
        """
        self._under_way += 1
        try:
            await self._listen(ear, addresses)
        finally:
            self._ended_request()

    @abstractmethod
    async def _round_trip(self, request: RpcRequest) -> RpcResponse:
        """As `request`."""

    @abstractmethod
    async def _listen(self, ear: Ear, addresses: Collection[str]) -> None:
        """As `listen`."""

    @abstractmethod
    async def _answer(self, message: replies.VendorMessage, pending: PendingResponse | None) -> None:
        """Answer a request of the vendor; other messages are dropped. `pending`: what it came in the middle of; None:
        it came in place of a response.
        """

    def _ended_request(self) -> None:
        self._under_way -= 1
        self.last_used_s = asyncio.get_running_loop().time()
        if self.is_ended and not self._under_way and self.listener is not None:
            self.listener.ended_session_unused(self)

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
            if mask.has_found:
                self._echoed_secret(UPDATED)

    async def _heard(
        self, message: replies.VendorMessage, ear: Ear, sent: HttpExchange, pending: PendingResponse
    ) -> None:
        if not isinstance(message, replies.VendorNotification) or message.method != UPDATED:
            await self._handle_other(message, pending)
        elif (address := replies.updated_address(message.raw)) is not None:
            ear.updated(address)

    async def _read_single(self, answer: VendorResponse, message_id: int, mask: Mask) -> RpcResponse:
        try:  # no generator such as `read_stream`, which would need closing
            message = await read_single(answer, self.owner, mask)
        except replies.BadVendorReply as fault:
            raise errors.bad_response(str(fault)) from fault
        if is_response(message, message_id):
            return message
        await self._answer(message, None)
        raise errors.no_response()

    async def _read_stream(self, answer: VendorResponse, pending: PendingResponse) -> RpcResponse | None:
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

    async def _handle_other(self, message: replies.VendorMessage, pending: PendingResponse) -> None:
        """Raises: TimeoutError while the caller's relay is full."""
        if not isinstance(message, replies.VendorNotification):
            await self._answer(message, pending)
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

    def _echoed_secret(self, name: str) -> None:
        if self.listener is not None and self.destination is not None:
            self.listener.secret_echoed(self.destination.key, name)

    def _open_access(self) -> VendorAccess:
        if self.access is None:
            if self.destination is None:
                raise RuntimeError("a session without a destination was parked")
            self.access = VendorAccess.of(self.destination)
        return self.access

    def _headers(self) -> dict[str, str]:
        """Of each request after `initialize`."""
        return {**base_headers(), **self._open_access().headers, **session_headers(self.protocol_version, None)}

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


def is_response(message: replies.VendorMessage, message_id: int) -> TypeGuard[RpcResponse]:
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
