"""The start of every conversation with a vendor, and the reader of its messages, in JSON or as an event stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Hashable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any

from proxy.protocol import replies, sse, versions
from proxy.vendors import errors, fair_scheduler
from proxy.vendors.transport import VendorResponse

# Empty capabilities: a vendor that keeps to them sends no requests that would have to be refused.
INITIALIZE_PARAMS: dict[str, Any] = {
    "protocolVersion": versions.NEWEST,
    "capabilities": {},
    "clientInfo": {"name": "mcp-gateway", "version": "1"},
}
FED_BYTES = 4 * 1024  # per step: even with the shortest lines, less than a millisecond
LONG_STREAM_BYTES = 64 * 1024  # from here on, steps wait for their slice of the event loop
LONG_BODY_BYTES = 1024 * 1024  # longer messages wait for their slice
MASKED_AT_ONCE_BYTES = 128 * 1024  # less than a millisecond
Mask = Callable[[bytes], bytes]  # for any thread


def base_headers() -> dict[str, str]:
    return {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "User-Agent": "mcp-gateway",
    }


async def read_single(
    answer: VendorResponse, owner: Hashable = None, mask: Mask | None = None
) -> replies.VendorMessage:
    """The message of an answer that is no event stream. Raises: BadVendorReply; VendorProblem from the transport."""
    body = await answer.body(owner)
    if len(body) <= MASKED_AT_ONCE_BYTES:
        return replies.parse_message(body if mask is None else mask(body))
    return await _message(answer, owner, mask, body)


async def messages(
    answer: VendorResponse, owner: Hashable = None, stream: sse.SSEParser | None = None, mask: Mask | None = None
) -> AsyncGenerator[replies.VendorMessage, None]:
    """The messages of an answer as they come, each after `mask`. To be closed by the reader (`aclosing`).

    `owner`: an organization or the service itself, for fair scheduling. `stream`: the parser so far, when resuming.
    Raises: BadVendorReply, SSETooLarge; VendorProblem from the transport.
    """
    if not answer.is_event_stream:
        yield await read_single(answer, owner, mask)
        return
    parser = stream or sse.SSEParser()
    async with aclosing(answer.chunks(owner)) as chunks:
        async for chunk in chunks:
            for start in range(0, len(chunk), FED_BYTES):
                for each in await _read(answer, owner, mask, parser, chunk[start : start + FED_BYTES]):
                    yield await _message(answer, owner, mask, each) if isinstance(each, bytes) else each
            await answer.keep(owner, parser.kept_bytes)


async def masked(answer: VendorResponse, owner: Hashable, mask: Mask | None, data: bytes) -> bytes:
    """A long message is masked in a thread. Raises: VendorProblem at the answer's deadline."""
    if mask is None:
        return data
    if len(data) <= MASKED_AT_ONCE_BYTES:
        return mask(data)
    try:
        return await fair_scheduler.in_thread(owner, partial(mask, data), answer.deadline)
    except TimeoutError as fault:
        raise errors.timeout(errors.Sign.ANSWERED) from fault


async def _message(answer: VendorResponse, owner: Hashable, mask: Mask | None, data: bytes) -> replies.VendorMessage:
    data = await masked(answer, owner, mask, data)
    if len(data) <= LONG_BODY_BYTES:
        return replies.parse_message(data)
    async with _turn(answer, owner):
        return replies.parse_message(data)


async def _read(
    answer: VendorResponse, owner: Hashable, mask: Mask | None, parser: sse.SSEParser, fed: bytes
) -> list[replies.VendorMessage | bytes]:
    if parser.fed_bytes + len(fed) <= LONG_STREAM_BYTES:
        return _messages_in(parser, fed, mask)
    async with _turn(answer, owner):
        return _messages_in(parser, fed, mask)


@asynccontextmanager
async def _turn(answer: VendorResponse, owner: Hashable) -> AsyncIterator[None]:
    """Raises: VendorProblem at the answer's deadline."""
    try:
        async with fair_scheduler.current().turn(owner, answer.deadline):
            yield
    except TimeoutError as fault:
        raise errors.timeout(errors.Sign.ANSWERED) from fault


def _messages_in(parser: sse.SSEParser, fed: bytes, mask: Mask | None) -> list[replies.VendorMessage | bytes]:
    """The complete messages so far; one that takes long to mask stays bytes."""
    found: list[replies.VendorMessage | bytes] = []
    for event in parser.feed(fed):
        if event.data and mask is not None and len(event.data) > MASKED_AT_ONCE_BYTES:
            found.append(event.data)
        elif event.data:
            found.append(replies.parse_message(event.data if mask is None else mask(event.data)))
    return found
