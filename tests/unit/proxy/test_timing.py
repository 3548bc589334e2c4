"""The four timing headers."""

from __future__ import annotations

import time

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
