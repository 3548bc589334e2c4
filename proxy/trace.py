"""The trace of one request: its ids, while it runs. The spans are made when it has ended, by `gateway.lib.tracing`."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

from proxy.protocol.trace_context import TRACEPARENT, TRACESTATE, Parent, render_traceparent


def new_span_id() -> int:
    return secrets.randbits(64) or 1


def new_trace_id() -> int:
    return secrets.randbits(128) or 1


@dataclass(slots=True)
class Trace:
    """`sample` decides, by trace id and parent, whether the trace is exported."""

    sample: Callable[[int, Parent | None], bool]
    parent: Parent | None = None
    trace_id: int = 0
    is_sampled: bool = False
    request_id: int = field(default_factory=new_span_id)  # of the request's span
    vendor_id: int = field(default_factory=new_span_id)  # of the span around the vendor's work
    began_ns: int = field(default_factory=time.time_ns)
    began_s: float = field(default_factory=perf_counter)

    def __post_init__(self) -> None:
        self.adopt(self.parent)

    def adopt(self, parent: Parent | None) -> None:
        """Go on with the caller's trace; without one, begin a trace."""
        self.parent = parent
        self.trace_id = parent.trace_id if parent is not None else new_trace_id()
        self.is_sampled = self.sample(self.trace_id, parent)

    def adopt_late(self, parent: Parent | None) -> None:
        """The parent that the body named. A parent of the head wins."""
        if parent is not None and self.parent is None:
            self.adopt(parent)

    def for_vendor(self) -> dict[str, str]:
        """Members of `_meta` for the vendor. Its parent is our span, never the caller's."""
        members = {TRACEPARENT: render_traceparent(self.trace_id, self.vendor_id, is_sampled=self.is_sampled)}
        if self.parent is not None and self.parent.state:
            members[TRACESTATE] = self.parent.state
        return members

    def nanoseconds(self, moment_s: float) -> int:
        """The time since 1970 of a moment of `perf_counter`."""
        return self.began_ns + int((moment_s - self.began_s) * 1e9)
