"""Measured points for the tests."""

from __future__ import annotations

from typing import Any

from bench.results import MeasuredPoint, VendorLoad

QUIET = VendorLoad(0, 16)


def make_point(target: str, load: VendorLoad = QUIET, number: int = 0, **changes: Any) -> MeasuredPoint:
    """A point at which all went well: 2,000 calls in 2 s, 0.2 ms of CPU each."""
    values: dict[str, Any] = {
        "target": target,
        "load": load,
        "round": number,
        "seconds": 2.0,
        "good": 2000,
        "bad": 0,
        "answered": 2400,
        "unanswered": 0,
        "vendor_calls": 2400,
        "p50_ms": 4.0,
        "p95_ms": 6.0,
        "p99_ms": 8.0,
        "max_ms": 20.0,
        "target_cpu_s": 0.4,
        "foreign_cores": 0.0,
        "peak_rss_bytes": 90_000_000,
    }
    return MeasuredPoint(**{**values, **changes})
