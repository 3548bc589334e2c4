"""The rest of an event stream that ended, or broke off, before its answer: asked for from the last event on.

A vendor that does not keep a stream open for as long as its tool runs gives its events ids, and may say when to come
back. What it sent after the last one is fetched with GET; the request itself is never sent again.

Spec: protocol.md A.2, A.6 · MCP 2025-11-25, Resumability and Redelivery
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from proxy.progress_relay import ProgressRelay
from proxy.protocol import replies, sse
from proxy.vendors import errors
from proxy.vendors.errors import Sign
from proxy.vendors.handshake import Mask

PAUSE_S = 1.0  # where the vendor names none
SHORTEST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
MOST_ID_CHARACTERS = 1024
MOST_WITHOUT_NEWS = 2  # resumptions in a row that fail, or bring no new event id and were not asked for
_HEADER_VALUE = re.compile(r"[!-~](?:[\t -~]*[!-~])?")


@dataclass(slots=True)
class Awaited:
    """An answer that comes on an event stream, or on several one after the other; `stream` reads them all."""

    message_id: int
    deadline: float  # in the loop's time
    relay: ProgressRelay | None
    stream: sse.SSEParser
    mask: Mask | None = None
    is_resumable: bool = True

    @property
    def event_id(self) -> str | None:
        """After which event the vendor can be asked for more. It is its own text, and has to go into a header."""
        newest = self.stream.last_event_id
        if newest is None or not self.is_resumable or len(newest) > MOST_ID_CHARACTERS:
            return None
        return newest if _HEADER_VALUE.fullmatch(newest) else None


Answer = replies.VendorResult | replies.VendorError


async def read_on(awaited: Awaited, resume: Callable[[Awaited, str], Awaitable[Answer | None]]) -> Answer:
    """The answer to what was awaited, on as many streams as it takes before the deadline.

    `resume` asks for what came after an event, and reads it; None if that ends without the answer as well.
    Raises: VendorProblem.
    """
    without_news = 0
    while without_news < MOST_WITHOUT_NEWS and (event_id := awaited.event_id) is not None:
        await _pause(awaited)
        awaited.stream.close()
        without_news += 1
        try:
            answer = await resume(awaited, event_id)
        except errors.VendorProblem as problem:
            may_pass = problem.sign in (Sign.UNREACHED, Sign.UNANSWERED, Sign.SENT_LATE)
            if problem.sign is not Sign.UNREACHED:
                problem.sign = Sign.ANSWERED  # the request was, with the head of a stream
            if without_news == MOST_WITHOUT_NEWS or not may_pass:
                raise
        else:
            if answer is not None:
                return answer
            if awaited.event_id != event_id or awaited.stream.retry_ms is not None:
                without_news = 0  # who says when to come back wants to be asked again, news or not
    raise errors.no_answer()


def pause_s(asked_ms: int | None) -> float:
    """How long to wait if the vendor asks for so many milliseconds, or for none. Not for ever, nor over and over."""
    return PAUSE_S if asked_ms is None else min(max(asked_ms / 1000, SHORTEST_PAUSE_S), LONGEST_PAUSE_S)


async def _pause(awaited: Awaited) -> None:
    """What is not there by the deadline need not be waited for."""
    wait_s = pause_s(awaited.stream.retry_ms)
    if asyncio.get_running_loop().time() + wait_s >= awaited.deadline:
        raise errors.timeout(Sign.ANSWERED)
    await asyncio.sleep(wait_s)
