"""Runs the matrix of a plan on a stage that is set."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.accounting import peak_rss_bytes
from bench.plan import Plan
from bench.processes import BenchFailed
from bench.results import MeasuredPoint, Results, VendorLoad
from bench.stage import LoadGenerator, VendorServer
from bench.targets import Target

FIRST_WARM_UP_S = 1.0
FIRST_WARM_UP_CONNECTIONS = 16


class Measurement:
    """Measures point by point; `meters` names every process of the run, so that the rest of the CPU is others'."""

    def __init__(
        self, plan: Plan, load: LoadGenerator, vendor: VendorServer, all_targets: Mapping[str, Target]
    ) -> None:
        self._plan, self._load, self._vendor = plan, load, vendor
        self._targets = all_targets
        self.warm_up_answers: dict[str, int] = dict.fromkeys(all_targets, 0)
        self._meters = {"vendor": vendor.process.pid}
        self._meters |= {f"pid {one.pid}": one.pid for one in all_targets.values() if one.pid is not None}

    def warm_up(self) -> None:
        """Every target has answered rightly, and has loaded what it loads at first use.

        Raises: BenchFailed with the first wrong answer.
        """
        self._vendor.set(0, self._plan.form)
        for name, target in self._targets.items():
            outcome = self._load.run(
                target, connections=FIRST_WARM_UP_CONNECTIONS, warm_up_s=0, measure_s=FIRST_WARM_UP_S, meters={}
            )
            self.warm_up_answers[name] += outcome.answered
            if outcome.bad or outcome.unanswered or not outcome.good:
                raise BenchFailed(f"{name} does not answer rightly: {outcome.sample or 'no answer'}")

    def run(self, on_point: Callable[[MeasuredPoint], None]) -> Results:
        """Every point of the plan; each is told as it is measured. Raises: BenchFailed."""
        results = Results()
        current_load: VendorLoad | None = None
        for number, load, name in self._plan.points():
            if load != current_load:
                self._vendor.set(load.delay_ms, self._plan.form)
                current_load = load
            point = self._measure(number, load, self._targets[name])
            results.add(point)
            on_point(point)
        return results

    def _measure(self, number: int, load: VendorLoad, target: Target) -> MeasuredPoint:
        seen = self._vendor.posts()
        outcome = self._load.run(
            target,
            connections=load.connections,
            warm_up_s=self._plan.warm_up_s,
            measure_s=self._plan.measure_s,
            meters=self._meters,
        )
        own_meter = "vendor" if target.pid is None else f"pid {target.pid}"
        return MeasuredPoint(
            target=target.name,
            load=load,
            round=number,
            seconds=outcome.seconds,
            good=outcome.good,
            bad=outcome.bad,
            answered=outcome.answered,
            unanswered=outcome.unanswered,
            vendor_calls=self._vendor.posts() - seen,
            p50_ms=outcome.p50_ms,
            p95_ms=outcome.p95_ms,
            p99_ms=outcome.p99_ms,
            max_ms=outcome.max_ms,
            target_cpu_s=outcome.cpu_s[own_meter],
            foreign_cores=outcome.foreign_cores,
            peak_rss_bytes=peak_rss_bytes(target.pid or self._vendor.process.pid),
            sample=outcome.sample,
        )
