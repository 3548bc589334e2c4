"""Resumes an event stream that ended before its answer: GET with the id of the last event. The request is never resent.

    reading --stream ended--> pause --GET, Last-Event-ID--> reading --answer--> done
       +--no event id, deadline, or MAX_EMPTY_RESUMPTIONS in a row--> VendorProblem
Spec: protocol.md A.2, A.6 · MCP 2025-11-25, Resumability and Redelivery
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from proxy.progress_relay import ProgressRelay
from proxy.protocol import replies, sse
from proxy.timing import Timing
from proxy.vendors import errors
from proxy.vendors.errors import Evidence
from proxy.vendors.message_reader import Mask
from proxy.vendors.tool_request import Ask

PAUSE_S = 1.0  # without a `retry` of the vendor
SHORTEST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
MAX_EVENT_ID_CHARACTERS = 1024  # longer ids are not sent back
MAX_EMPTY_RESUMPTIONS = 2  # resumptions in a row that fail, or bring no new event id and no `retry`
_HEADER_VALUE = re.compile(r"[!-~](?:[\t -~]*[!-~])?")


class HttpExchange(Protocol):
    """One request and its answer."""

    def move_deadline(self, deadline: float) -> None: ...


@dataclass(slots=True)
class PendingResponse:
    """An expected answer, on one event stream or several in a row; `stream` parses them all."""

    message_id: int
    deadline: float  # in the loop's time
    relay: ProgressRelay | None
    stream: sse.SSEParser
    mask: Mask | None = None
    is_resumable: bool = True
    refused: list[str] = field(default_factory=list)  # methods of the vendor's own requests
    ask: Ask | None = None  # asks the caller what the vendor asks; None: it cannot be asked
    timing: Timing = field(default_factory=Timing)  # of the call
    exchange: HttpExchange | None = None  # the one under way

    def move_deadline(self, deadline: float) -> None:
        """The vendor's time stands still while it waits for the caller."""
        self.deadline = deadline
        if self.exchange is not None:
            self.exchange.move_deadline(deadline)

    @property
    def event_id(self) -> str | None:
        """The last event id, if it can be sent in a header: it is the vendor's own text."""
        newest = self.stream.last_event_id
        if newest is None or not self.is_resumable or len(newest) > MAX_EVENT_ID_CHARACTERS:
            return None
        return newest if _HEADER_VALUE.fullmatch(newest) else None


RpcResponse = replies.VendorResult | replies.RpcError


async def read_resumed(
    pending: PendingResponse, resume: Callable[[PendingResponse, str], Awaitable[RpcResponse | None]]
) -> RpcResponse:
    """Resume until the answer; `resume` returns None if its stream ends without one. Raises: VendorProblem."""
    empty_resumptions = 0
    while empty_resumptions < MAX_EMPTY_RESUMPTIONS and (event_id := pending.event_id) is not None:
        await _pause(pending)
        pending.stream.close()
        empty_resumptions += 1
        try:
            answer = await resume(pending, event_id)
        except errors.VendorProblem as problem:
            may_pass = problem.evidence in (Evidence.CONNECT_FAILED, Evidence.NO_RESPONSE, Evidence.SENT_LATE)
            if problem.evidence is not Evidence.CONNECT_FAILED:
                problem.evidence = Evidence.RESPONDED  # the request was answered, with the head of a stream
            if empty_resumptions == MAX_EMPTY_RESUMPTIONS or not may_pass:
                raise
        else:
            if answer is not None:
                return answer
            if pending.event_id != event_id or pending.stream.retry_ms is not None:
                empty_resumptions = 0  # a `retry` is a request to come back
    raise errors.no_response()


def pause_s(asked_ms: int | None) -> float:
    """The vendor's `retry`, bounded; the default without one."""
    return PAUSE_S if asked_ms is None else min(max(asked_ms / 1000, SHORTEST_PAUSE_S), LONGEST_PAUSE_S)


async def _pause(pending: PendingResponse) -> None:
    wait_s = pause_s(pending.stream.retry_ms)
    if asyncio.get_running_loop().time() + wait_s >= pending.deadline:
        raise errors.timeout(Evidence.RESPONDED)
    await asyncio.sleep(wait_s)
