"""Pure: what one cell of the matrix measured, and all cells of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

from bench.figures import Spread, differences_per_round, ratio, ratios_per_round, spread

DISTURBED_CORES = 0.2  # CPU of processes outside the run above which a cell is marked


class Place(msgspec.Struct, frozen=True):
    """One column of the matrix: how many connections, before a vendor of which delay."""

    delay_ms: int
    connections: int


class Cell(msgspec.Struct, frozen=True):
    """One target at one place in one round. CPU and calls are those of the same `seconds`.

    `answered` also counts warm-up and the calls under way at the end; `vendor_calls` is what the vendor saw meanwhile.
    """

    target: str
    place: Place
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
        """Whether others used the machine while this was measured."""
        return self.foreign_cores > DISTURBED_CORES


Figure = Callable[[Cell], float]


class Results:
    """All cells of a run, asked by target and place."""

    def __init__(self, cells: Iterable[Cell] = ()) -> None:
        self.cells: list[Cell] = list(cells)

    def add(self, cell: Cell) -> None:
        """One more."""
        self.cells.append(cell)

    def targets(self) -> list[str]:
        """Names in the order of their first measurement."""
        return list(dict.fromkeys(cell.target for cell in self.cells))

    def places(self) -> list[Place]:
        """Every place measured, without delay first, fewest connections first."""
        return sorted({cell.place for cell in self.cells}, key=lambda place: (place.delay_ms, place.connections))

    def at(self, target: str, place: Place) -> list[Cell]:
        """The rounds of one target at one place."""
        return [cell for cell in self.cells if cell.target == target and cell.place == place]

    def spread(self, target: str, place: Place, figure: Figure) -> Spread:
        """One figure over the rounds."""
        return spread([figure(cell) for cell in self.at(target, place)])

    def ratio(self, target: str, base: str, place: Place, figure: Figure) -> Spread:
        """The figure of one target over that of another, round by round."""
        return spread(ratios_per_round(self._rounds(target, place, figure), self._rounds(base, place, figure)))

    def difference(self, target: str, base: str, place: Place, figure: Figure) -> Spread:
        """The figure of one target less that of another, round by round."""
        return spread(differences_per_round(self._rounds(target, place, figure), self._rounds(base, place, figure)))

    def added_ratio(self, target: str, base: str, floor: str, place: Place, figure: Figure) -> Spread:
        """How many times as far above `floor` one target is as another, in the rounds in which that one is above it."""
        ours, bases, floors = (self._rounds(name, place, figure) for name in (target, base, floor))
        return spread(
            [
                ratio(ours[number] - floors[number], bases[number] - floors[number])
                for number in sorted(ours.keys() & bases.keys() & floors.keys())
                if bases[number] > floors[number]
            ]
        )

    def peak_rss_bytes(self, target: str) -> float:
        """The largest resident size the target's process ever had, NaN where there is no such process."""
        sizes = [cell.peak_rss_bytes for cell in self.cells if cell.target == target and cell.peak_rss_bytes]
        return max(sizes, default=math.nan)

    def vendor_calls_per_call(self, target: str) -> float:
        """How many requests the vendor saw for one answer, over all cells."""
        cells = [cell for cell in self.cells if cell.target == target]
        answered = sum(cell.answered for cell in cells)
        return sum(cell.vendor_calls for cell in cells) / answered if answered else math.nan

    def answered(self, targets: Sequence[str]) -> int:
        """Answers that these targets gave, warm-up included."""
        return sum(cell.answered for cell in self.cells if cell.target in targets)

    def failed(self) -> list[Cell]:
        """Cells with anything but right answers."""
        return [cell for cell in self.cells if cell.has_failed]

    def disturbed(self) -> list[Cell]:
        """Cells measured while others used the machine."""
        return [cell for cell in self.cells if cell.is_disturbed]

    def _rounds(self, target: str, place: Place, figure: Figure) -> dict[int, float]:
        return {cell.round: figure(cell) for cell in self.at(target, place)}
