"""How every conversation with a vendor begins, and how its messages are read, JSON or event stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from proxy.protocol import replies, sse, versions
from proxy.vendors.transport import VendorAnswer

# Empty capabilities: what a vendor cannot ask of us, it need not be refused.
INITIALIZE_PARAMS: dict[str, Any] = {
    "protocolVersion": versions.NEWEST,
    "capabilities": {},
    "clientInfo": {"name": "mcp-gateway", "version": "1"},
}
FED_BYTES = 16 * 1024  # at once: of lines as short as they can be, a few milliseconds


def base_headers() -> dict[str, str]:
    """The headers of a request without credentials."""
    return {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "User-Agent": "mcp-gateway",
    }


async def messages(answer: VendorAnswer) -> AsyncIterator[replies.VendorMessage]:
    """Every message of an answer as it comes.

    Raises: BadVendorReply, SSETooLarge; VendorProblem from the transport.
    """
    if not answer.is_event_stream:
        yield replies.parse_message(await answer.body())
        return
    parser = sse.SSEParser()
    async for chunk in answer.chunks():
        for start in range(0, len(chunk), FED_BYTES):
            if start:
                await asyncio.sleep(0)  # thousands of messages in one piece must not hold up all other calls
            for event in parser.feed(chunk[start : start + FED_BYTES]):
                if event.data:
                    yield replies.parse_message(event.data)
