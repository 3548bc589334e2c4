"""Pure: what one point of the matrix measured, and all points of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

from bench.figures import Spread, differences_per_round, ratio, ratios_per_round, spread

DISTURBED_CORES = 0.2  # CPU of processes outside the run above which a point is marked


class VendorLoad(msgspec.Struct, frozen=True):
    """One column of the matrix: a number of connections, before a vendor with a delay."""

    delay_ms: int
    connections: int


class MeasuredPoint(msgspec.Struct, frozen=True):
    """One target at one load in one round. CPU and calls are those of the same `seconds`.

    `answered` also counts warm-up and the calls under way at the end; `vendor_calls` are the requests that arrived.
    """

    target: str
    load: VendorLoad
    round: int
    seconds: float
    good: int
    bad: int
    answered: int
    unanswered: int
    vendor_calls: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    target_cpu_s: float
    foreign_cores: float
    peak_rss_bytes: int
    sample: str = ""

    @property
    def calls_per_s(self) -> float:
        """Good answers a second."""
        return self.good / self.seconds if self.seconds else math.nan

    @property
    def cpu_ms_per_call(self) -> float:
        """CPU time of the target's process for one answer; NaN where there is no such process."""
        return self.target_cpu_s * 1000 / self.good if self.good else math.nan

    @property
    def p99_over_p50(self) -> float:
        """How much longer the slowest calls take than a usual one."""
        return self.p99_ms / self.p50_ms if self.p50_ms else math.nan

    @property
    def has_failed(self) -> bool:
        """Whether anything but right answers came: then its figures mean nothing."""
        return bool(self.bad or self.unanswered or not self.good)

    @property
    def is_disturbed(self) -> bool:
        """Whether other processes used the machine meanwhile."""
        return self.foreign_cores > DISTURBED_CORES


Figure = Callable[[MeasuredPoint], float]


class Results:
    """All points of a run, asked by target and load."""

    def __init__(self, points: Iterable[MeasuredPoint] = ()) -> None:
        self.points: list[MeasuredPoint] = list(points)

    def add(self, point: MeasuredPoint) -> None:
        """One more."""
        self.points.append(point)

    def targets(self) -> list[str]:
        """Names in the order of their first measurement."""
        return list(dict.fromkeys(point.target for point in self.points))

    def loads(self) -> list[VendorLoad]:
        """Every load measured, without delay first, fewest connections first."""
        return sorted({point.load for point in self.points}, key=lambda load: (load.delay_ms, load.connections))

    def at(self, target: str, load: VendorLoad) -> list[MeasuredPoint]:
        """The rounds of one target at one load."""
        return [point for point in self.points if point.target == target and point.load == load]

    def spread(self, target: str, load: VendorLoad, figure: Figure) -> Spread:
        """One figure over the rounds."""
        return spread([figure(point) for point in self.at(target, load)])

    def ratio(self, target: str, base: str, load: VendorLoad, figure: Figure) -> Spread:
        """The figure of one target over that of another, round by round."""
        return spread(ratios_per_round(self._rounds(target, load, figure), self._rounds(base, load, figure)))

    def difference(self, target: str, base: str, load: VendorLoad, figure: Figure) -> Spread:
        """The figure of one target less that of another, round by round."""
        return spread(differences_per_round(self._rounds(target, load, figure), self._rounds(base, load, figure)))

    def added_ratio(self, target: str, base: str, floor: str, load: VendorLoad, figure: Figure) -> Spread:
        """How many times as far above `floor` one target is as another, in the rounds in which that one is above it."""
        ours, bases, floors = (self._rounds(name, load, figure) for name in (target, base, floor))
        return spread(
            [
                ratio(ours[number] - floors[number], bases[number] - floors[number])
                for number in sorted(ours.keys() & bases.keys() & floors.keys())
                if bases[number] > floors[number]
            ]
        )

    def peak_rss_bytes(self, target: str) -> float:
        """The largest resident size the target's process ever had, NaN where there is no such process."""
        sizes = [point.peak_rss_bytes for point in self.points if point.target == target and point.peak_rss_bytes]
        return max(sizes, default=math.nan)

    def vendor_calls_per_call(self, target: str) -> float:
        """How many requests the vendor saw for one answer, over all points."""
        points = [point for point in self.points if point.target == target]
        answered = sum(point.answered for point in points)
        return sum(point.vendor_calls for point in points) / answered if answered else math.nan

    def answered(self, targets: Sequence[str]) -> int:
        """Answers that these targets gave, warm-up included."""
        return sum(point.answered for point in self.points if point.target in targets)

    def failed(self) -> list[MeasuredPoint]:
        """Points with anything but right answers."""
        return [point for point in self.points if point.has_failed]

    def disturbed(self) -> list[MeasuredPoint]:
        """Points measured while others used the machine."""
        return [point for point in self.points if point.is_disturbed]

    def _rounds(self, target: str, load: VendorLoad, figure: Figure) -> dict[int, float]:
        return {point.round: figure(point) for point in self.at(target, load)}
