"""OpenTelemetry traces, exported over OTLP. Its library is loaded only where it is switched on.   docs/decisions/0077

A span is made when it has ended, with ids that were chosen before: a vendor learns its parent's id while the span runs.
The library reads its own variables (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER, OTEL_SERVICE_NAME and others).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from opentelemetry import trace as api
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from gateway.lib import build_info

SERVICE_NAME = "mcp-gateway"  # OTEL_SERVICE_NAME wins
Attributes = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class SpanTimes:
    """A span that has ended, in nanoseconds since 1970."""

    name: str
    span_id: int
    began_ns: int
    ended_ns: int


@dataclass(frozen=True, slots=True)
class Parentage:
    """The span above: `span_id` 0 for none, with the trace that the new span begins or goes on with."""

    trace_id: int
    span_id: int
    is_sampled: bool
    is_remote: bool
    state: str = ""


class _ChosenIds(IdGenerator):
    """Gives the ids that were set last."""

    trace_id = span_id = 0

    def generate_span_id(self) -> int:
        return self.span_id

    def generate_trace_id(self) -> int:
        return self.trace_id


class Tracing:
    """One for each process. Threads may share it."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        self._ids = _ChosenIds()
        self._lock = threading.Lock()
        info = build_info.current()
        own = {"service.name": SERVICE_NAME, "service.version": info.version, "vcs.ref.head.revision": info.commit}
        # The attributes of the environment win.
        resource = Resource.create(own).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(id_generator=self._ids, resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("gateway")

    def is_sampled(self, parent: Parentage) -> bool:
        """The sampler's decision about a request with this trace."""
        sampler = self._provider.sampler
        decision = sampler.should_sample(_context(parent), parent.trace_id, "request", SpanKind.SERVER).decision
        return decision is Decision.RECORD_AND_SAMPLE

    def export(
        self, times: SpanTimes, parent: Parentage, attributes: Attributes, *, kind: SpanKind, is_error: bool = False
    ) -> None:
        """Queue one span; a thread of the library sends it."""
        with self._lock:
            self._ids.trace_id, self._ids.span_id = parent.trace_id, times.span_id
            span = self._tracer.start_span(
                times.name, context=_context(parent), kind=kind, attributes=attributes, start_time=times.began_ns
            )
        if is_error:
            span.set_status(Status(StatusCode.ERROR))
        span.end(end_time=times.ended_ns)

    def close(self) -> None:
        """Send what waits. Blocks."""
        self._provider.shutdown()


def _context(parent: Parentage) -> Context:
    if not parent.span_id:
        return Context()
    flags = TraceFlags(TraceFlags.SAMPLED if parent.is_sampled else TraceFlags.DEFAULT)
    state = TraceState.from_header([parent.state]) if parent.state else None
    found = SpanContext(parent.trace_id, parent.span_id, parent.is_remote, flags, state)
    return api.set_span_in_context(NonRecordingSpan(found), Context())
