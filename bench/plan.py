"""Pure: what a run measures, in which order, and about how long that takes."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import targets
from bench.results import VendorLoad
from bench.vendor import FORMS
from bench.wide.sizes import Sizes

CONNECTIONS = (1, 16, 64)
DELAYED_CONNECTIONS = (1, 16)
DELAY_MS = 50
SET_UP_S = 15.0
BETWEEN_POINTS_S = 0.06
MAX_ROUNDS = 20
MAX_SECONDS = 30.0
WIDE_CONNECTIONS = (16, 64)
PROCESS_COUNTS = (1, 2, 4)
MOST_USUAL_PROCESSES = 4
# For the estimate only.
SEEDED_PER_S, FIRST_CALLS_PER_S = 1_000, 500
WIDE_SET_UP_S, PROCESS_STARTS_S = 60.0, 4.0
# Tokens last an hour, and the run needs some of it before.
MAX_STEADY_MINUTES = 30
SIZES = {"organizations": (2, 20_000), "callers": (1, 100), "vendors": (1, 20), "processes": (0, 8)}


@dataclass(frozen=True, slots=True)
class WidePlan:
    """The options of `--wide`. `processes`: 0 for as many as the back ends allow."""

    sizes: Sizes
    processes: int
    steady_minutes: int

    def process_counts(self, *, are_shared: bool) -> list[int]:
        """One, two, four and so on. `are_shared`: several processes can use the back ends."""
        most = self.processes or (MOST_USUAL_PROCESSES if are_shared else 1)
        return [count for count in PROCESS_COUNTS if count < most] + [most]

    def estimated_s(self, rounds: int, point_s: float) -> float:
        """About how long it takes with as many processes as it may."""
        sizes, counts = self.sizes, self.process_counts(are_shared=True)
        passes = sizes.organizations * (sizes.callers + sizes.vendors - 1)
        points = rounds * len(WIDE_CONNECTIONS) * 2 * len(counts)
        filled = 2 * passes + sizes.all_callers * (counts[-1] - 1)
        set_up_s = WIDE_SET_UP_S + 2 * counts[-1] * PROCESS_STARTS_S + sizes.all_callers / SEEDED_PER_S
        steady_minutes = self.steady_minutes + 1 if self.steady_minutes else 0
        return set_up_s + filled / FIRST_CALLS_PER_S + points * point_s + 60 * steady_minutes


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of a run; `targets` are names as the report shows them."""

    targets: tuple[str, ...]
    rounds: int
    measure_s: float
    warm_up_s: float
    form: str
    with_delay: bool
    json_file: Path | None
    profile_s: float
    commits: bool
    wide: WidePlan | None = None

    def loads(self) -> list[VendorLoad]:
        """Every column of the matrix."""
        delayed = [VendorLoad(DELAY_MS, number) for number in DELAYED_CONNECTIONS] if self.with_delay else []
        return [*(VendorLoad(0, number) for number in CONNECTIONS), *delayed]

    def targets_at(self, load: VendorLoad) -> list[str]:
        """The targets measured under this load."""
        skipped = targets.WITHOUT_DELAY_ONLY if load.delay_ms else frozenset()
        return [name for name in self.targets if name not in skipped]

    def points(self) -> Iterator[tuple[int, VendorLoad, str]]:
        """Every measurement as (round, load, target): targets follow each other closely, each round begins with
        another one, so that a drift of the machine meets them all."""
        for number in range(self.rounds):
            for load in self.loads():
                names = self.targets_at(load)
                start = number % len(names) if names else 0
                for name in names[start:] + names[:start]:
                    yield number, load, name

    def estimated_s(self) -> float:
        """About how long it takes."""
        if self.wide is not None:
            return self.wide.estimated_s(self.rounds, self.measure_s + self.warm_up_s + BETWEEN_POINTS_S)
        point_s = self.measure_s + self.warm_up_s + BETWEEN_POINTS_S
        profiles_s = self.profile_s * sum(name in targets.GATEWAY for name in self.targets)
        return SET_UP_S + sum(1 for _ in self.points()) * point_s + profiles_s


def read_plan(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> Plan:
    """The plan of BENCH_OPTIONS (for `make bench`) and a command line. Exits with 2 and a sentence on errors."""
    parser = _parser()
    options = parser.parse_args([*shlex.split(environ.get("BENCH_OPTIONS", "")), *arguments])
    names = [name.strip() for name in options.targets.split(",") if name.strip()]
    unknown = [name for name in names if name not in targets.NAMES]
    if unknown or not names:
        parser.error(f"--targets: choose from {', '.join(targets.NAMES)}")
    rounds = options.rounds or (1 if options.quick else 3)
    measure_s = options.seconds or (1.0 if options.quick else 2.5)
    if not 1 <= rounds <= MAX_ROUNDS or not 0.1 <= measure_s <= MAX_SECONDS:
        parser.error(f"at most {MAX_ROUNDS} rounds, and 0.1 to {MAX_SECONDS:.0f} seconds for a point")
    if not 0 <= options.profile <= MAX_SECONDS:
        parser.error(f"--profile: at most {MAX_SECONDS:.0f} seconds")
    wide = _wide(parser, options) if options.wide else None
    return Plan(
        targets=tuple(targets.NAMES[name] for name in dict.fromkeys(names)),
        rounds=rounds,
        measure_s=measure_s,
        warm_up_s=0.25 if options.quick else 0.4,
        form=options.form,
        with_delay=not options.no_delay,
        json_file=options.json,
        profile_s=options.profile,
        commits=options.commit,
        wide=wide,
    )


def _wide(parser: argparse.ArgumentParser, options: argparse.Namespace) -> WidePlan:
    for name, (low, high) in SIZES.items():
        if not low <= getattr(options, name) <= high:
            parser.error(f"--{name}: {low:,} to {high:,}")
    if not 0 <= options.steady <= MAX_STEADY_MINUTES:
        parser.error(f"--steady: at most {MAX_STEADY_MINUTES} minutes")
    return WidePlan(Sizes(options.organizations, options.callers, options.vendors), options.processes, options.steady)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measures vendor, bare pass-through and gateway side by side. Exit code 0 unless something failed.",
        epilog="BENCH_DATABASE_URL (PostgreSQL) and BENCH_REDIS_URL name back ends for the gateway: bench/README.md.",
    )
    parser.add_argument("--quick", action="store_true", help="one round of short points, for a first look")
    parser.add_argument("--rounds", type=int, default=0, help="rounds over the whole matrix (3)")
    parser.add_argument("--seconds", type=float, default=0.0, help="measured seconds of a point (2.5)")
    parser.add_argument("--targets", default=",".join(targets.DEFAULT), help=f"of {', '.join(targets.NAMES)}")
    parser.add_argument("--form", choices=FORMS, default="json", help="form of the vendor's tool results")
    parser.add_argument("--no-delay", action="store_true", help=f"leave out the vendor that takes {DELAY_MS} ms")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every point to this file")
    parser.add_argument("--commit", action="store_true", help="make this the report that later runs are compared with")
    parser.add_argument(
        "--wide", action="store_true", help="instead: many callers that each call now and then, and several processes"
    )
    for name, value, text in (
        ("organizations", 1_000, "organizations of --wide (1,000)"),
        ("callers", 5, "callers of each organization (5)"),
        ("vendors", 3, "vendors of each organization (3)"),
        ("processes", 0, "at most so many gateway processes (4 with PostgreSQL and Redis, otherwise 1)"),
        ("steady", 0, "minutes at 70 %% of the rate that one process keeps up"),
    ):
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help=text)
    parser.add_argument(
        "--profile",
        type=float,
        nargs="?",
        const=8.0,
        default=0.0,
        metavar="SECONDS",
        help="also say where the gateway's time goes; needs py-spy on PATH",
    )
    return parser
