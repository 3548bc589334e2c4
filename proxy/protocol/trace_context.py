"""Pure: the `traceparent` of W3C Trace Context, which callers send in a header or in `_meta`.

Source: https://www.w3.org/TR/trace-context/#traceparent-header
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
MAX_STATE_CHARACTERS: Final = 512
_TRACEPARENT: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<rest>-.*)?"
)
_STATE: Final = re.compile(r"[\x20-\x7e]+")


@dataclass(frozen=True, slots=True)
class Parent:
    """The caller's span. `state`: its tracestate, possibly empty."""

    trace_id: int
    span_id: int
    is_sampled: bool
    state: str = ""


def parse_parent(traceparent: object, tracestate: object = None) -> Parent | None:
    """None for anything that is not a valid traceparent."""
    found = _TRACEPARENT.fullmatch(traceparent) if isinstance(traceparent, str) else None
    if found is None or found["version"] == "ff" or (found["version"] == "00" and found["rest"]):
        return None
    trace_id, span_id = int(found["trace"], 16), int(found["span"], 16)
    if not trace_id or not span_id:
        return None
    is_state = isinstance(tracestate, str) and len(tracestate) <= MAX_STATE_CHARACTERS and _STATE.fullmatch(tracestate)
    return Parent(trace_id, span_id, bool(int(found["flags"], 16) & 1), str(tracestate) if is_state else "")


def render_traceparent(trace_id: int, span_id: int, *, is_sampled: bool) -> str:
    return f"00-{trace_id:032x}-{span_id:016x}-{int(is_sampled):02x}"


def take_parent(meta: dict[str, Any]) -> Parent | None:
    """Removes the trace context from a caller's `_meta`, good or bad, and returns the good one."""
    return parse_parent(meta.pop(TRACEPARENT, None), meta.pop(TRACESTATE, None))
