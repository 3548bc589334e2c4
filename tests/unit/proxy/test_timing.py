"""The four timing headers."""

from __future__ import annotations

import contextlib
import time

import pytest

from proxy import timing as timings
from proxy.timing import Timing


def test_phases_add_up_and_a_phase_never_reached_is_zero() -> None:
    timing = Timing()
    for _ in range(2):
        with timing.vendor:
            time.sleep(0.006)
    headers = dict(timing.headers())
    assert set(timing.headers_so_far()) == {(name, headers[name]) for name in (b"x-auth-ms", b"x-session-ms")}
    assert set(headers) == {b"x-auth-ms", b"x-session-ms", b"x-vendor-ms", b"x-total-ms"}
    assert headers[b"x-auth-ms"] == headers[b"x-session-ms"] == b"0"
    assert int(headers[b"x-vendor-ms"]) >= 12
    assert int(headers[b"x-total-ms"]) >= int(headers[b"x-vendor-ms"])


def test_a_wait_of_ours_inside_the_vendors_phase_is_the_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr(timings, "perf_counter", lambda: now_s)
    timing = Timing()
    for _ in range(2):
        with timing.session:
            now_s += 1
        with timing.vendor:
            now_s += 2
            with timing.queue_wait():
                now_s += 4
            now_s += 8
    with contextlib.suppress(TimeoutError), timing.vendor, timing.queue_wait():
        now_s += 16
        raise TimeoutError
    assert [each.ms for each in (timing.auth, timing.session, timing.vendor)] == [0, 26_000, 20_000]
    assert timing.total_ms() == 46_000
