"""Reports a request that has ended: its spans, and a line in the log on demand. Spec: contract.md 7

Neither has secrets, arguments, results, or a name that a caller chose freely.
"""

from __future__ import annotations

from time import perf_counter

import structlog
from django.conf import settings

from proxy import runtime
from proxy.request_context import RequestContext
from proxy.timing import Timing
from proxy.trace import Trace

log = structlog.get_logger("gateway.requests")
_FAILED = frozenset({"error", "unavailable"})


def is_reported() -> bool:
    return bool(settings.LOG_REQUESTS or settings.TRACES)


def report(
    *, request_id: str, route: str, status: int, timing: Timing, context: RequestContext | None, trace: Trace | None
) -> None:
    ended_s = perf_counter()
    called = None if context is None else context.called
    facts: dict[str, str | int] = {"route": route, "status": status, "request_id": request_id}
    if called is not None:
        facts |= zip(("vendor", "tool", "outcome"), called, strict=True)
    live = runtime.existing()
    if trace is not None and live is not None and live.traces is not None:
        is_error = status >= 500 or (called is not None and called[2] in _FAILED)
        attributes = {f"gateway.{name}": value for name, value in facts.items() if name != "status"}
        attributes["http.response.status_code"] = status
        known = context is not None
        live.traces.end(trace, timing, ended_s, attributes, is_error=is_error, is_authenticated=known)
    if settings.LOG_REQUESTS:
        if context is not None:
            facts |= {"org_id": str(context.caller.principal.org_id), "subject": context.caller.principal.subject}
        if trace is not None:
            facts["trace_id"] = f"{trace.trace_id:032x}"
        times = {f"{name}_ms": round(seconds * 1000) for name, _, seconds in timing.phases()}
        log.info("request", **facts, **times, total_ms=timing.total_ms())
