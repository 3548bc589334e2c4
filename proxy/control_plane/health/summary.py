"""Pure: the states of several vendors summarized in words."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from proxy.control_plane.health.states import HealthStatus

EXPLAINED = {
    HealthStatus.DOWN: "Did not answer three times in a row. Tool calls will probably fail.",
    HealthStatus.DEGRADED: "Answers slowly, or did not answer just now. Tool calls may fail.",
    HealthStatus.UNKNOWN: "No result yet. Not an error.",
    HealthStatus.REACHABLE: "Answers, wants credentials. Tool calls should work.",
    HealthStatus.HEALTHY: "Answers in time. If it answers with something else than MCP, the detail says so.",
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
    counts = (
        (watched.count(HealthStatus.DOWN), "not responding"),
        (watched.count(HealthStatus.DEGRADED), "degraded"),
        (watched.count(HealthStatus.HEALTHY) + watched.count(HealthStatus.REACHABLE), "fine"),
        (watched.count(HealthStatus.UNKNOWN), "being checked"),
        (len(entries) - len(watched), "not monitored"),
    )
    return ", ".join(f"{count} {what}" for count, what in counts if count)


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
    return f"{seconds} s ago" if seconds < 120 else f"{seconds // 60} min ago"


def fingerprint(entries: Sequence[VendorStatus]) -> str:
    """Changes exactly when a vendor's status changes, so that screen readers announce only changes."""
    labels = sorted(f"{entry.vendor_slug}={entry.status.value}" for entry in entries)
    return hashlib.sha256(" ".join(labels).encode()).hexdigest()[:16]
