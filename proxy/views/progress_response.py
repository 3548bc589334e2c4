"""Answers a call with progress: JSON, or an event stream if the vendor reports any. Spec: D110 · protocol.md A.2, A.5

waiting --answer first--> JSON
   +--notification first--> stream --answer--> ended
                               +--caller leaves--> call cancelled
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import structlog
from django.http import HttpResponse
from django.http.response import HttpResponseBase

from gateway import draining
from gateway.lib.event_stream import EventStream
from proxy.progress_relay import ProgressRelay
from proxy.protocol import jsonrpc, sse
from proxy.views import responses

log = structlog.get_logger(__name__)
PING_EVERY_S = 15.0  # of silence, before a comment keeps the connection alive


def accepts_events(accept: str | None) -> bool:
    """Whether `Accept` names event streams; wildcards do not count, because most clients send them."""
    for part in (accept or "").lower().split(","):
        kind, _, parameters = part.partition(";")
        if kind.strip() == "text/event-stream":
            return parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


async def respond_with_progress(
    message_id: jsonrpc.MessageId,
    relay: ProgressRelay,
    call: Coroutine[Any, Any, bytes],
    respond: Callable[[bytes], HttpResponse] = responses.json_response,
) -> HttpResponseBase:
    """`respond` makes the response of an answer without a stream. A caller who leaves cancels the call.

    Raises: as `call`, while no stream has begun.
    """
    running = asyncio.ensure_future(call)
    running.add_done_callback(lambda _: relay.notify())
    try:
        await relay.wait_changed()
    except asyncio.CancelledError:
        running.cancel()
        await asyncio.wait([running])
        raise
    if running.done() and (not relay.has_pending or running.cancelled() or running.exception() is not None):
        return respond(await running)

    draining.at_end(running.cancel)

    async def end() -> None:
        draining.forget(running.cancel)
        relay.close()
        running.cancel()
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # retrieved, so that asyncio does not log it

    return EventStream(_events(message_id, relay, running), on_end=end)


async def _events(
    message_id: jsonrpc.MessageId, relay: ProgressRelay, running: asyncio.Future[bytes]
) -> AsyncIterator[bytes]:
    """Notifications as they come, then the response; comments during pauses."""
    while True:
        while (message := relay.pop()) is not None:
            yield sse.encode_event(message)
        if running.done():
            break
        if not await relay.wait_changed(PING_EVERY_S):
            yield sse.COMMENT_PING
    yield sse.encode_event(_last_message(message_id, running))


def _last_message(message_id: jsonrpc.MessageId, running: asyncio.Future[bytes]) -> bytes:
    """The response, or an error in place of the 503: no result without its row."""
    try:
        return running.result()
    except asyncio.CancelledError:
        return jsonrpc.error(message_id, jsonrpc.INTERNAL_ERROR, draining.CUT_OFF, {"reason": "unavailable"})
    except Exception as fault:
        log.error("call failed after its stream began", exc_info=fault)
        text = "The gateway cannot serve this right now. Try again."
        return jsonrpc.error(message_id, jsonrpc.INTERNAL_ERROR, text, {"reason": "unavailable"})
