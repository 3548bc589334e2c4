"""How every conversation with a vendor begins, and how its messages are read, JSON or event stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Any

from proxy.protocol import replies, sse, versions
from proxy.vendors import errors, turns
from proxy.vendors.transport import VendorAnswer

# Empty capabilities: what a vendor cannot ask of us, it need not be refused.
INITIALIZE_PARAMS: dict[str, Any] = {
    "protocolVersion": versions.NEWEST,
    "capabilities": {},
    "clientInfo": {"name": "mcp-gateway", "version": "1"},
}
FED_BYTES = 4 * 1024  # at once: of lines as short as they can be, less than a millisecond
LONG_STREAM_BYTES = 64 * 1024
LONG_BODY_BYTES = 1024 * 1024


def base_headers() -> dict[str, str]:
    """The headers of a request without credentials."""
    return {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "User-Agent": "mcp-gateway",
    }


async def only_message(answer: VendorAnswer, owner: Hashable = None) -> replies.VendorMessage:
    """The message of an answer that is no event stream; see `messages`.

    Raises: BadVendorReply; VendorProblem from the transport.
    """
    body = await answer.body(owner)
    if len(body) <= LONG_BODY_BYTES:
        return replies.parse_message(body)
    async with _turn(answer, owner):
        return replies.parse_message(body)


async def messages(
    answer: VendorAnswer, owner: Hashable = None, stream: sse.SSEParser | None = None
) -> AsyncIterator[replies.VendorMessage]:
    """Every message of an answer as it comes. Long answers take turns, so that other calls do not wait for them.

    `owner` is whose answer it is, an organization or the service itself: each has its turn, however much it reads.
    `stream` is what has read the event stream so far, if this answer goes on with one.

    Raises: BadVendorReply, SSETooLarge; VendorProblem from the transport.
    """
    if not answer.is_event_stream:
        yield await only_message(answer, owner)
        return
    parser = stream or sse.SSEParser()
    async for chunk in answer.chunks(owner):
        for start in range(0, len(chunk), FED_BYTES):
            fed = chunk[start : start + FED_BYTES]
            if parser.fed_bytes + len(fed) <= LONG_STREAM_BYTES:
                found = _messages_in(parser, fed)
            else:
                async with _turn(answer, owner):
                    found = _messages_in(parser, fed)
            for each in found:
                yield each


@asynccontextmanager
async def _turn(answer: VendorAnswer, owner: Hashable) -> AsyncIterator[None]:
    """Raises: VendorProblem when it does not come before the answer's deadline."""
    try:
        async with turns.current().turn(owner, answer.deadline):
            yield
    except TimeoutError as fault:
        raise errors.timeout(errors.Sign.ANSWERED) from fault


def _messages_in(parser: sse.SSEParser, fed: bytes) -> list[replies.VendorMessage]:
    return [replies.parse_message(event.data) for event in parser.feed(fed) if event.data]
