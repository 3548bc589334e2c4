"""How a vendor's messages are read, JSON or event stream: bounded, in slots of the fair scheduler, and masked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Hashable
from contextlib import aclosing, asynccontextmanager
from functools import partial

from proxy.protocol import replies, sse
from proxy.protocol.secret_mask import SecretMask
from proxy.vendors import errors, fair_scheduler
from proxy.vendors.response import VendorResponse

FEED_BYTES = 4 * 1024  # per step: even with the shortest lines, less than a millisecond
LONG_STREAM_BYTES = 64 * 1024  # from here on, steps wait for their slice of the event loop
LONG_BODY_BYTES = 1024 * 1024  # longer messages wait for their slice
INLINE_MASK_BYTES = 128 * 1024  # less than a millisecond
Mask = Callable[[bytes], bytes]  # for any thread


class ReplyMask:
    """A mask that records whether it found a secret."""

    __slots__ = ("_secrets", "has_found")

    def __init__(self, secrets: SecretMask) -> None:
        self._secrets = secrets
        self.has_found = False

    def __call__(self, message: bytes) -> bytes:
        masked_message = self._secrets.masked(message)
        if masked_message is not message:
            self.has_found = True
        return masked_message


async def read_single(
    response: VendorResponse, owner: Hashable = None, mask: Mask | None = None
) -> replies.VendorMessage:
    """The message of an answer that is no event stream. Raises: BadVendorReply; VendorProblem from the transport."""
    body = await response.body(owner)
    if len(body) <= INLINE_MASK_BYTES:
        return replies.parse_message(body if mask is None else mask(body))
    return await _parse(response, owner, mask, body)


async def read_stream(
    response: VendorResponse, owner: Hashable = None, stream: sse.SSEParser | None = None, mask: Mask | None = None
) -> AsyncGenerator[replies.VendorMessage, None]:
    """The messages of an answer as they come, each after `mask`. To be closed by the reader (`aclosing`).

    `owner`: an organization or the service itself, for fair scheduling. `stream`: the parser so far, when resuming.
    Raises: BadVendorReply, SSETooLarge; VendorProblem from the transport.
    """
    if not response.is_event_stream:
        yield await read_single(response, owner, mask)
        return
    parser = stream or sse.SSEParser()
    async with aclosing(response.chunks(owner)) as chunks:
        async for chunk in chunks:
            for start in range(0, len(chunk), FEED_BYTES):
                for each in await _feed(response, owner, mask, parser, chunk[start : start + FEED_BYTES]):
                    yield await _parse(response, owner, mask, each) if isinstance(each, bytes) else each
            await response.retain(owner, parser.kept_bytes)


async def mask_message(response: VendorResponse, owner: Hashable, mask: Mask | None, data: bytes) -> bytes:
    """A long message is masked in a thread. Raises: VendorProblem at the answer's deadline."""
    if mask is None:
        return data
    if len(data) <= INLINE_MASK_BYTES:
        return mask(data)
    try:
        return await fair_scheduler.run_in_thread(owner, partial(mask, data), response.deadline)
    except TimeoutError as fault:
        raise errors.timeout(errors.Evidence.RESPONDED) from fault


async def _parse(response: VendorResponse, owner: Hashable, mask: Mask | None, data: bytes) -> replies.VendorMessage:
    data = await mask_message(response, owner, mask, data)
    if len(data) <= LONG_BODY_BYTES:
        return replies.parse_message(data)
    async with _slot(response, owner):
        return replies.parse_message(data)


async def _feed(
    response: VendorResponse, owner: Hashable, mask: Mask | None, parser: sse.SSEParser, fed: bytes
) -> list[replies.VendorMessage | bytes]:
    if parser.fed_bytes + len(fed) <= LONG_STREAM_BYTES:
        return _events_in(parser, fed, mask)
    async with _slot(response, owner):
        return _events_in(parser, fed, mask)


@asynccontextmanager
async def _slot(response: VendorResponse, owner: Hashable) -> AsyncIterator[None]:
    """Raises: VendorProblem at the answer's deadline."""
    try:
        async with fair_scheduler.current().slot(owner, response.deadline):
            yield
    except TimeoutError as fault:
        raise errors.timeout(errors.Evidence.RESPONDED) from fault


def _events_in(parser: sse.SSEParser, fed: bytes, mask: Mask | None) -> list[replies.VendorMessage | bytes]:
    """The complete messages so far; one that takes long to mask stays bytes."""
    found: list[replies.VendorMessage | bytes] = []
    for event in parser.feed(fed):
        if event.data and mask is not None and len(event.data) > INLINE_MASK_BYTES:
            found.append(event.data)
        elif event.data:
            found.append(replies.parse_message(event.data if mask is None else mask(event.data)))
    return found
