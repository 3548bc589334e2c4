"""CPU time and memory of processes."""

from __future__ import annotations

import os
import time

from bench.accounting import CpuMeter, peak_rss_bytes


def test_what_this_process_uses_is_measured() -> None:
    meter = CpuMeter({"self": os.getpid()})
    meter.start()
    until_s = time.process_time() + 0.1
    while time.process_time() < until_s:
        sum(range(1000))
    usage = meter.stop()
    assert 0.05 < usage.cpu_s["self"] < 2.0


def test_the_rest_of_the_machine_is_never_negative() -> None:
    meter = CpuMeter({"self": os.getpid(), "parent": os.getppid()})
    meter.start()
    time.sleep(0.02)
    assert meter.stop().foreign_cores >= 0.0


def test_the_peak_covers_what_was_given_back() -> None:
    block = bytearray(64 * 1024 * 1024)
    block[::4096] = b"x" * len(block[::4096])
    del block
    assert peak_rss_bytes(os.getpid()) > 64 * 1024 * 1024
