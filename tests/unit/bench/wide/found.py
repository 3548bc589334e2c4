"""The results of a wide run for the tests."""

from __future__ import annotations

from typing import Any

from bench.results import VendorLoad
from bench.wide.results import (
    KNOWN,
    NARROW,
    UNKNOWN_CALLER,
    UNKNOWN_LIST,
    UNKNOWN_ORGANIZATION,
    WIDE,
    FirstCalls,
    Limit,
    Memory,
    Minute,
    Revocation,
    Steady,
    WideResults,
    alone,
    behind_proxy,
)
from tests.unit.bench.points import make_point

LOADS = (VendorLoad(0, 16), VendorLoad(0, 64))


def whole_run(**changes: Any) -> WideResults:
    """Wide calls take a tenth more CPU than narrow ones, and two processes serve twice as many as one."""
    targets = [(alone(kind), kind, 1) for kind in (NARROW, WIDE)]
    targets += [(behind_proxy(kind, count), kind, count) for count in (1, 2, 4) for kind in (NARROW, WIDE)]
    points = [
        make_point(name, load, good=2000 * count, target_cpu_s=count * (0.44 if kind == WIDE else 0.4))
        for load in LOADS
        for name, kind, count in targets
    ]
    counts = {"INSERT INTO audit_requestauditentry": 1.0, "caller": 2.0}
    found: dict[str, Any] = {
        "cores": 4,
        "points": points,
        "busy_cores": {name: [1.0, 2.0, 1.2] for name, _, _ in targets},
        "first_calls": [
            FirstCalls(UNKNOWN_ORGANIZATION, 50, 2.0, 5.0, 3.0, {**counts, "organization": 1.0}),
            FirstCalls(UNKNOWN_CALLER, 50, 1.5, 3.0, 1.0, counts),
            FirstCalls(UNKNOWN_LIST, 50, 1.8, 4.0, 3.0, counts),
            FirstCalls(KNOWN, 50, 1.0, 2.0, 1.0, {"INSERT INTO audit_requestauditentry": 1.0}),
        ],
        "memory": Memory(100_000_000, 150_000_000, 4_000.0, 2_000.0, 3_000.0),
        "limit": Limit(4, 40, 120, 40),
        "revocation": Revocation([0.01, 0.2]),
        "steady": Steady(
            700.0,
            [Minute(42_000, 0, 5.0, 10.0, 200_000_000), Minute(42_000, 0, 5.0, 12.0, 204_000_000)],
            84,
            300_000,
            301_000,
        ),
    }
    return WideResults(**{**found, **changes})
