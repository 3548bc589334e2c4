"""Pure: the five health states and the transitions between them. Spec: §2, §3 · D131-D133

unknown --answer--> healthy | reachable (401, 403) | degraded (slow)
any     --failure-> degraded --third failure in a row--> down --answer--> as above
any     --no probe for three intervals--> unknown (for readers)
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from gateway.lib.sentences import sentence

FAILURES_UNTIL_DOWN = 3
INTERVALS_UNTIL_STALE = 3


class HealthStatus(StrEnum):
    HEALTHY = "healthy"
    REACHABLE = "reachable"
    DEGRADED = "degraded"
    DOWN = "down"
    UNKNOWN = "unknown"


LABELS = {
    HealthStatus.HEALTHY: sentence("Connected"),
    HealthStatus.REACHABLE: sentence("Responding"),
    HealthStatus.DEGRADED: sentence("Degraded"),
    HealthStatus.DOWN: sentence("Not responding"),
    HealthStatus.UNKNOWN: sentence("Checking…"),
}


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of one probe."""

    at: datetime
    latency_ms: int
    # None without an answer; `fault` then gives the reason, without addresses.
    http_status: int | None
    version: str = ""
    fault: str = ""
    # An oddity: the answer to `initialize` was neither an MCP result nor a demand for credentials.
    remark: str = ""

    @property
    def failed(self) -> bool:
        """No answer, or a 5xx. Every other answer shows that the vendor is up. Spec: D131"""
        return self.http_status is None or self.http_status >= 500


@dataclass(frozen=True, slots=True)
class VendorHealth:
    """The stored state. Spec: D131 · protocol.md A.6"""

    status: HealthStatus
    last_checked: datetime | None = None
    latency_ms: int | None = None
    version: str = ""
    # Set exactly while the status is degraded or down.
    error_detail: str | None = None
    failures: int = 0
    remark: str = ""
    # When the first of the failures in a row happened; None without one, and for one that an earlier release noted.
    failing_since: datetime | None = None


UNKNOWN = VendorHealth(HealthStatus.UNKNOWN)


def after_probe(before: VendorHealth, result: ProbeResult, *, latency_threshold_ms: int) -> VendorHealth:
    """The next state. Only consecutive failures count."""
    if result.failed:
        return _after_failure(before, result)
    status, detail = HealthStatus.HEALTHY, None
    if result.http_status in (401, 403):
        status = HealthStatus.REACHABLE
    elif result.latency_ms > latency_threshold_ms:
        status, detail = HealthStatus.DEGRADED, f"slow: answered after {result.latency_ms} ms"
    return VendorHealth(status, result.at, result.latency_ms, result.version, detail, failures=0, remark=result.remark)


def _after_failure(before: VendorHealth, result: ProbeResult) -> VendorHealth:
    failures = before.failures + 1
    what = result.fault or f"answered HTTP {result.http_status}"
    row = "1 failure" if failures == 1 else f"{failures} failures in a row"
    status = HealthStatus.DOWN if failures >= FAILURES_UNTIL_DOWN else HealthStatus.DEGRADED
    since = before.failing_since if before.failures else result.at
    return VendorHealth(
        status, result.at, result.latency_ms, before.version, f"{what}, {row}", failures, failing_since=since
    )


def as_read(stored: VendorHealth | None, *, now: datetime, interval_s: int) -> VendorHealth:
    """The state for readers: unknown after three intervals without a probe. Spec: D133"""
    if stored is None or stored.last_checked is None:
        return UNKNOWN
    if now - stored.last_checked > timedelta(seconds=INTERVALS_UNTIL_STALE * interval_s):
        return UNKNOWN
    return stored
