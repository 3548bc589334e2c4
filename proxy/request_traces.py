"""The spans of a request: itself, and below it the phases of its calls. Spec: contract.md 7 · docs/decisions/0077"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from opentelemetry.trace import SpanKind

from gateway.lib.tracing import Attributes, Parentage, SpanTimes, Tracing
from proxy.protocol.trace_context import TRACEPARENT, TRACESTATE, Parent, parse_parent
from proxy.timing import Timing
from proxy.trace import Trace, new_span_id, new_trace_id


class RequestTraces:
    """Begins the trace of each request and exports it. The library behind it is loaded only with this module."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing

    def begin(self, headers: Mapping[str, str]) -> Trace:
        """`headers`: as in a request's META."""
        traceparent = headers.get(f"HTTP_{TRACEPARENT.upper()}")
        return Trace(self._is_sampled, parse_parent(traceparent, headers.get(f"HTTP_{TRACESTATE.upper()}")))

    def end(
        self,
        trace: Trace,
        timing: Timing,
        ended_s: float,
        attributes: Attributes,
        *,
        is_error: bool,
        is_authenticated: bool,
    ) -> None:
        above = _parentage(trace.trace_id, trace.parent)
        if not is_authenticated:
            if not self._takes_a_request_of_nobody():
                return
            above = replace(above, is_sampled=True, state="")
        elif not trace.is_sampled:
            return
        request = SpanTimes("request", trace.request_id, trace.began_ns, trace.nanoseconds(ended_s))
        self._tracing.export(request, above, attributes, kind=SpanKind.SERVER, is_error=is_error)
        own = Parentage(trace.trace_id, trace.request_id, is_sampled=True, is_remote=False, state=above.state)
        for name, began_s, seconds in timing.phases():
            is_vendor = name == "vendor"
            span_id = trace.vendor_id if is_vendor else new_span_id()
            kind = SpanKind.CLIENT if is_vendor else SpanKind.INTERNAL
            began_ns = trace.nanoseconds(began_s)
            # A phase that was entered again, as by a retry, is one span of its whole time.
            times = SpanTimes(name, span_id, began_ns, began_ns + int(seconds * 1e9))
            self._tracing.export(times, own, {}, kind=kind)

    def close(self) -> None:
        """Blocks."""
        self._tracing.close()

    def _takes_a_request_of_nobody(self) -> bool:
        # By an id of ours: the caller's, which stays in the span, may have been chosen to be sampled.
        return self._is_sampled(new_trace_id(), None)

    def _is_sampled(self, trace_id: int, parent: Parent | None) -> bool:
        return self._tracing.is_sampled(_parentage(trace_id, parent))


def _parentage(trace_id: int, parent: Parent | None) -> Parentage:
    if parent is None:
        return Parentage(trace_id, 0, is_sampled=False, is_remote=False)
    return Parentage(trace_id, parent.span_id, parent.is_sampled, is_remote=True, state=parent.state)
