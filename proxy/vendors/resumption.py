"""Resumes an event stream that ended before its answer: GET with the id of the last event. The request is never resent.

    reading --stream ended--> pause --GET, Last-Event-ID--> reading --answer--> done
       +--no event id, deadline, or MOST_WITHOUT_NEWS in a row--> VendorProblem
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

PAUSE_S = 1.0  # without a `retry` of the vendor
SHORTEST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
MOST_ID_CHARACTERS = 1024  # longer ids are not sent back
MOST_WITHOUT_NEWS = 2  # resumptions in a row that fail, or bring no new event id and no `retry`
_HEADER_VALUE = re.compile(r"[!-~](?:[\t -~]*[!-~])?")


@dataclass(slots=True)
class Awaited:
    """An expected answer, on one event stream or several in a row; `stream` parses them all."""

    message_id: int
    deadline: float  # in the loop's time
    relay: ProgressRelay | None
    stream: sse.SSEParser
    mask: Mask | None = None
    is_resumable: bool = True

    @property
    def event_id(self) -> str | None:
        """The last event id, if it can be sent in a header: it is the vendor's own text."""
        newest = self.stream.last_event_id
        if newest is None or not self.is_resumable or len(newest) > MOST_ID_CHARACTERS:
            return None
        return newest if _HEADER_VALUE.fullmatch(newest) else None


Answer = replies.VendorResult | replies.VendorError


async def read_on(awaited: Awaited, resume: Callable[[Awaited, str], Awaitable[Answer | None]]) -> Answer:
    """Resume until the answer; `resume` returns None if its stream ends without one. Raises: VendorProblem."""
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
                problem.sign = Sign.ANSWERED  # the request was answered, with the head of a stream
            if without_news == MOST_WITHOUT_NEWS or not may_pass:
                raise
        else:
            if answer is not None:
                return answer
            if awaited.event_id != event_id or awaited.stream.retry_ms is not None:
                without_news = 0  # a `retry` is a request to come back
    raise errors.no_answer()


def pause_s(asked_ms: int | None) -> float:
    """The vendor's `retry`, bounded; the default without one."""
    return PAUSE_S if asked_ms is None else min(max(asked_ms / 1000, SHORTEST_PAUSE_S), LONGEST_PAUSE_S)


async def _pause(awaited: Awaited) -> None:
    wait_s = pause_s(awaited.stream.retry_ms)
    if asyncio.get_running_loop().time() + wait_s >= awaited.deadline:
        raise errors.timeout(Sign.ANSWERED)
    await asyncio.sleep(wait_s)
