"""Pure: the five states of a vendor and how a probe moves it from one to the next.

Spec: §2 Vendor health entry, §3 Vendor health status · D131-D133
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

FAILURES_UNTIL_DOWN = 3
INTERVALS_UNTIL_STALE = 3


class HealthStatus(StrEnum):
    """The wire value; `LABELS` has what tenants read."""

    HEALTHY = "healthy"
    REACHABLE = "reachable"
    DEGRADED = "degraded"
    DOWN = "down"
    UNKNOWN = "unknown"


LABELS = {
    HealthStatus.HEALTHY: "Connected",
    HealthStatus.REACHABLE: "Responding",
    HealthStatus.DEGRADED: "Degraded",
    HealthStatus.DOWN: "Not responding",
    HealthStatus.UNKNOWN: "Checking…",
}


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What one probe saw. `http_status` is None when nothing answered; `fault` then says why, without addresses.

    `remark`: what the answer was if it was none to `initialize`; empty where it was one, or credentials are wanted.
    """

    at: datetime
    latency_ms: int
    http_status: int | None
    version: str = ""
    fault: str = ""
    remark: str = ""

    @property
    def failed(self) -> bool:
        """No answer, or the vendor's own fault. Every other answer shows that it lives. Spec: D131"""
        return self.http_status is None or self.http_status >= 500


@dataclass(frozen=True, slots=True)
class VendorHealth:
    """The cached outcome. `error_detail` is there exactly when the status is degraded or down.

    `remark` says of a vendor that answers what is odd about its answer: that something answers is no sign that it
    speaks the protocol. Spec: D131 · protocol.md A.6
    """

    status: HealthStatus
    last_checked: datetime | None = None
    latency_ms: int | None = None
    version: str = ""
    error_detail: str | None = None
    failures: int = 0
    remark: str = ""


UNKNOWN = VendorHealth(HealthStatus.UNKNOWN)


def after_probe(before: VendorHealth, result: ProbeResult, *, latency_threshold_ms: int) -> VendorHealth:
    """The state after one more probe. Only failures in a row count; one answer ends the row."""
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
    return VendorHealth(status, result.at, result.latency_ms, before.version, f"{what}, {row}", failures)


def as_read(stored: VendorHealth | None, *, now: datetime, interval_s: int) -> VendorHealth:
    """What a reader is told: a state that nobody refreshed for three intervals says nothing any more. Spec: D133"""
    if stored is None or stored.last_checked is None:
        return UNKNOWN
    if now - stored.last_checked > timedelta(seconds=INTERVALS_UNTIL_STALE * interval_s):
        return UNKNOWN
    return stored
