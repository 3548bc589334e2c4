"""Cells for the tests."""

from __future__ import annotations

from typing import Any

from bench.results import Cell, Place

QUIET = Place(0, 16)


def make_cell(target: str, place: Place = QUIET, number: int = 0, **changes: Any) -> Cell:
    """A cell in which all went well: 2,000 calls in 2 s, 0.2 ms of CPU each."""
    values: dict[str, Any] = {
        "target": target,
        "place": place,
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
    return Cell(**{**values, **changes})
