"""Pure: the states of several vendors summarized in words."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import reduce
from typing import Protocol

from gateway.lib.sentences import sentence
from proxy.control_plane.health.states import HealthStatus

EXPLAINED = {
    HealthStatus.DOWN: sentence("Failed three checks in a row. Tool calls will probably fail."),
    HealthStatus.DEGRADED: sentence("Responds slowly, or didn’t respond to the last check. Tool calls may fail."),
    HealthStatus.UNKNOWN: sentence("Waiting for the first check."),
    HealthStatus.REACHABLE: sentence("Responds and requires credentials. Tool calls should work."),
    HealthStatus.HEALTHY: sentence("Responds in time. If the response isn’t MCP, the details say so."),
}


class VendorStatus(Protocol):
    @property
    def vendor_slug(self) -> str: ...
    @property
    def status(self) -> HealthStatus: ...
    @property
    def last_checked(self) -> datetime | None: ...
    @property
    def monitored(self) -> bool: ...


def summarize(entries: Sequence[VendorStatus]) -> str:
    """For example "2 not responding, 1 degraded, 14 fine". Spec: §3"""
    # Vendors that are never probed count as no trouble.
    watched = [entry.status for entry in entries if entry.monitored]
    counted = (
        sentence("%(count)s not responding", count=watched.count(HealthStatus.DOWN)),
        sentence("%(count)s degraded", count=watched.count(HealthStatus.DEGRADED)),
        sentence(
            "%(count)s healthy", count=watched.count(HealthStatus.HEALTHY) + watched.count(HealthStatus.REACHABLE)
        ),
        sentence("%(count)s being checked", count=watched.count(HealthStatus.UNKNOWN)),
        sentence("%(count)s not monitored", count=len(entries) - len(watched)),
    )
    shown = [each for each in counted if not each.startswith("0 ")]
    return reduce(lambda first, rest: sentence("%(first)s, %(rest)s", first=first, rest=rest), shown) if shown else ""


def is_collecting(entries: Sequence[VendorStatus]) -> bool:
    """True right after the monitor's start, while every state is unknown: no reason for alarm."""
    watched = [entry for entry in entries if entry.monitored]
    return bool(watched) and all(entry.status is HealthStatus.UNKNOWN for entry in watched)


def has_trouble(entries: Sequence[VendorStatus]) -> bool:
    return any(entry.monitored and entry.status in (HealthStatus.DOWN, HealthStatus.DEGRADED) for entry in entries)


def oldest_check(entries: Sequence[VendorStatus]) -> datetime | None:
    return min((entry.last_checked for entry in entries if entry.last_checked is not None), default=None)


def format_age(age: timedelta) -> str:
    """For example "24 s ago"."""
    seconds = max(0, int(age.total_seconds()))
    if seconds < 120:
        return sentence("%(seconds)s s ago", seconds=seconds)
    return sentence("%(minutes)s min ago", minutes=seconds // 60)


def fingerprint(entries: Sequence[VendorStatus]) -> str:
    """Changes exactly when a vendor's status changes, so that screen readers announce only changes."""
    labels = sorted(f"{entry.vendor_slug}={entry.status.value}" for entry in entries)
    return hashlib.sha256(" ".join(labels).encode()).hexdigest()[:16]
