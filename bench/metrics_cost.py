"""CPU time that figures for Prometheus take of a web process.

    python -m bench.metrics_cost              # for a call of 650 us
    python -m bench.metrics_cost --call 700

Every call is counted, with METRICS_ADDRESS or without. A process with METRICS_ADDRESS also writes its figures to a file
once a second, here with the series of fifty vendors. `--call` is the CPU time of a call in `make bench`. The share of
the file is that of a process without a moment to spare.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import timeit
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from types import SimpleNamespace
from typing import Any, cast

MOST_SHARE = 0.02
RUNS, TIMES, WRITES = 12, 1_500, 20
VENDORS, ROUTES, OUTCOMES = 50, ("mcp", "cli"), ("success", "error", "denied", "rate_limited")


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU time in microseconds. `file_us`: of one second."""

    call_us: float
    count_us: float
    file_us: float
    series: int

    @property
    def share(self) -> float:
        """Of a process that is always at work."""
        return self.count_us / self.call_us + self.file_us / 1e6

    def lines(self) -> list[str]:
        return [
            f"counting a call: {self.count_us:.2f} us, {self.count_us / self.call_us:.2%} of {self.call_us:.0f} us",
            f"writing {self.series:,} series: {self.file_us:,.0f} us, {self.file_us / 1e6:.2%} of a second",
            f"together: {self.share:.2%}, at most {MOST_SHARE:.0%}",
        ]


def measure(call_us: float, folder: Path) -> Cost:
    """The smallest of several runs each: other work of the machine only adds to a run."""
    from gateway.lib.metrics import call_tally
    from gateway.lib.metrics.figures import reset_all

    count, write = _counting(), _writing(folder)
    try:
        count_us = 1e6 * min(timeit.repeat(count, number=TIMES, repeat=RUNS, timer=process_time)) / TIMES
        # A thread writes; process_time has the time of all threads.
        file_us = 1e6 * min(timeit.repeat(write, number=WRITES, repeat=RUNS, timer=process_time)) / WRITES
        return Cost(call_us, count_us, file_us, _series())
    finally:
        call_tally.forget()
        reset_all()


def _counting() -> Callable[[], None]:
    """The steps of a call for its figures."""
    from gateway.coordination.store import Admission
    from proxy.calls import call_figures
    from proxy.outcomes import CacheStatus, Delivered
    from proxy.timing import Timing

    timing = Timing()
    for phase in (timing.auth, timing.session, timing.vendor):
        with phase:
            pass
    context = cast(
        Any,
        SimpleNamespace(
            caller=SimpleNamespace(catalog=SimpleNamespace(by_slug={"vendor-1": None})),
            admission=Admission(cast(Any, None), allowed=True, remaining=1, retry_after_s=0, epochs=()),
            cache=CacheStatus.BYPASS,
            timing=timing,
            called=None,
        ),
    )
    outcome = Delivered(b"{}", is_error=False)

    def count() -> None:
        call_figures.count_commit(context, perf_counter())
        call_figures.count_outcome(context, "mcp", outcome, "success", vendor="vendor-1", tool="list_devices")

    return count


def _writing(folder: Path) -> Callable[[], None]:
    """A second with calls to every vendor on each route with each outcome, and the file after it."""
    from gateway.lib.metrics import call_tally
    from gateway.lib.metrics.process_file import ProcessFile

    file = ProcessFile(folder, "web")

    def write() -> None:
        for vendor in range(VENDORS):
            for route in ROUTES:
                for outcome in OUTCOMES:
                    call_tally.calls[f"vendor-{vendor}", route, outcome, "bypass", "own", "allowed"] = 1
        call_tally.settle()
        file.write()

    return write


def _series() -> int:
    from gateway.lib.metrics.figures import all_figures

    return sum(len(figure.values) for figure in all_figures())


def main(arguments: Sequence[str]) -> int:
    """1: the figures take more of a process than they may."""
    parser = argparse.ArgumentParser(prog="python -m bench.metrics_cost", description=__doc__)
    parser.add_argument("--call", type=float, default=650.0, help="CPU time of a call in microseconds (650)")
    options = parser.parse_args(arguments)
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    import django

    django.setup()
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as folder:
        found = measure(options.call, Path(folder))
    print("\n".join(found.lines()))
    return int(found.share > MOST_SHARE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
