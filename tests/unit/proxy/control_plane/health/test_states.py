"""The table of the specification, row by row, and what holds for any row of probes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.control_plane.health.states import UNKNOWN, HealthStatus, ProbeResult, VendorHealth, after_probe, as_read

NOW = datetime(2030, 1, 1, tzinfo=UTC)
THRESHOLD_MS = 2000


def probe(status: int | None = 200, latency_ms: int = 20, fault: str = "") -> ProbeResult:
    return ProbeResult(NOW, latency_ms, status, version="1.2", fault=fault)


def after(*results: ProbeResult) -> VendorHealth:
    state = UNKNOWN
    for result in results:
        state = after_probe(state, result, latency_threshold_ms=THRESHOLD_MS)
    return state


@pytest.mark.parametrize(
    ("results", "status"),
    [
        ([probe()], "healthy"),
        ([probe(status=400)], "healthy"),
        ([probe(status=404)], "healthy"),
        ([probe(latency_ms=2000)], "healthy"),
        ([probe(latency_ms=2001)], "degraded"),
        ([probe(status=401)], "reachable"),
        ([probe(status=403, latency_ms=9000)], "reachable"),
        ([probe(status=500)], "degraded"),
        ([probe(status=None, fault="timed out after 5 s")], "degraded"),
        ([probe(status=None)] * 2, "degraded"),
        ([probe(status=None)] * 3, "down"),
        ([probe(status=None)] * 5, "down"),
        ([probe(status=503), probe(status=None), probe(status=500)], "down"),
        ([probe(status=None)] * 2 + [probe()] + [probe(status=None)] * 2, "degraded"),
        ([probe(status=None)] * 4 + [probe(status=401)], "reachable"),
    ],
)
def test_the_table(results: list[ProbeResult], status: str) -> None:
    assert after(*results).status == status


def test_the_detail_is_in_words_and_counts() -> None:
    assert after(probe(status=None, fault="timed out after 5 s")).error_detail == "timed out after 5 s, 1 failure"
    assert after(*[probe(status=503)] * 3).error_detail == "answered HTTP 503, 3 failures in a row"
    assert after(probe(latency_ms=2500)).error_detail == "slow: answered after 2500 ms"
    assert after(probe()).error_detail is None


def test_what_is_odd_about_an_answer_stays_beside_the_state_until_the_next_one() -> None:
    odd = ProbeResult(NOW, 20, 404, remark="answered initialize with HTTP 404")
    assert (after(odd).status, after(odd).error_detail) == (HealthStatus.HEALTHY, None)
    assert after(odd).remark == "answered initialize with HTTP 404"
    assert (after(odd, probe()).remark, after(odd, probe(status=None)).remark) == ("", "")


results = st.builds(
    ProbeResult,
    at=st.just(NOW),
    latency_ms=st.integers(min_value=0, max_value=6000),
    http_status=st.one_of(st.none(), st.integers(min_value=200, max_value=599)),
)


@given(st.lists(results, min_size=1, max_size=12))
def test_what_holds_for_any_probes(row: list[ProbeResult]) -> None:
    state = after(*row)
    assert state.status is not HealthStatus.UNKNOWN
    assert (state.error_detail is not None) == (state.status in (HealthStatus.DEGRADED, HealthStatus.DOWN))
    last = 0
    for result in row:
        last = last + 1 if result.failed else 0
    assert state.failures == last
    assert (state.status is HealthStatus.DOWN) == (last >= 3)
    if not row[-1].failed:  # one answer is enough to come back, whatever was before
        assert state == after(row[-1])


def test_a_state_that_nobody_refreshed_says_nothing() -> None:
    state = after(probe())
    fresh = as_read(state, now=NOW + timedelta(seconds=180), interval_s=60)
    assert fresh.status == "healthy"
    stale = as_read(state, now=NOW + timedelta(seconds=181), interval_s=60)
    assert (stale.status, stale.last_checked, stale.latency_ms, stale.version, stale.error_detail) == (
        "unknown",
        None,
        None,
        "",
        None,
    )
    assert as_read(None, now=NOW, interval_s=60) == UNKNOWN


def test_a_row_of_failures_keeps_the_time_of_the_first() -> None:
    later = ProbeResult(NOW + timedelta(minutes=1), 20, 503)
    assert after(probe(status=503), later, later).failing_since == NOW
    assert after(probe(status=503), probe(), later).failing_since == later.at
    assert after(probe(status=503), probe()).failing_since is None
    # An earlier release noted no time.
    assert (
        after_probe(VendorHealth(HealthStatus.DOWN, NOW, failures=3), later, latency_threshold_ms=1).failing_since
        is None
    )
