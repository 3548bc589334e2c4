"""The same gateway under other interpreters, event loops, builds or settings: CPU time of a call, slice by slice.

    python -m bench.variants base 3.13:python=/opt/python3.13/bin/python asyncio:loop=asyncio built:code=/tmp/built
    python -m bench.variants --metrics

The first variant is the one that the others are compared with, slice by slice. `python` needs the packages of
`requirements.lock`; `loop` is uvicorn's; `code` is a copy of this repository that is imported instead of it; `env` is a
variable of its environment. `--metrics` compares a gateway that counts for Prometheus with two that do not.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench import machine, targets
from bench.databases import back_ends
from bench.figures import median
from bench.gateway import GatewayServer
from bench.placement import Placement, place
from bench.processes import BenchFailed, Processes, free_port, wait_until_serving, web_server
from bench.stage import START_TIMEOUT_S, LoadGenerator, VendorServer
from bench.targets import Target

ROOT = Path(__file__).resolve().parent.parent
WARM_UP_S = 0.3
METER = "gateway"


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    python: str = sys.executable
    loop: str = ""
    code: str = ""
    env: str = ""

    @classmethod
    def read(cls, text: str) -> Variant:
        """Raises: BenchFailed."""
        name, _, rest = text.partition(":")
        parts = dict(part.partition("=")[::2] for part in rest.split(",") if part)
        if not name or parts.keys() - {"python", "loop", "code", "env"} or not all(parts.values()):
            raise BenchFailed(f"{text}: a name, then python=, loop=, code= or env= after a colon.")
        return cls(name, **parts)

    def command(self, port: int) -> tuple[str, ...]:
        _, *rest = web_server("gateway.asgi:application", port)
        if self.loop:
            rest[rest.index("--loop") + 1] = self.loop
        return (self.python, *rest)

    @property
    def variables(self) -> dict[str, str]:
        name, _, value = self.env.partition("=")
        return {name: value} if name else {}


# The last one says by how much two equal processes differ on this machine.
METRICS = (Variant("without"), Variant("metrics", env="METRICS_ADDRESS=127.0.0.1:9464"), Variant("without-again"))


@dataclass(frozen=True, slots=True)
class Slice:
    cpu_ms: float
    calls_per_s: float


class Comparison:
    """Slices of all variants in turn, at one number of connections."""

    def __init__(self, load: LoadGenerator, stage: Sequence[Target], seconds: float) -> None:
        self._load, self._stage, self._seconds = load, stage, seconds

    def measure(self, connections: int, rounds: int) -> dict[str, list[Slice]]:
        found: dict[str, list[Slice]] = {target.name: [] for target in self._stage}
        for number in range(rounds):
            for target in self._stage if number % 2 == 0 else reversed(self._stage):
                found[target.name].append(self.slice(target, connections, self._seconds))
        return found

    def slice(self, target: Target, connections: int, seconds: float) -> Slice:
        """Raises: BenchFailed, also for a wrong answer."""
        assert target.pid is not None
        outcome = self._load.run(
            target, connections=connections, warm_up_s=WARM_UP_S, measure_s=seconds, meters={METER: target.pid}
        )
        if outcome.bad or outcome.unanswered or not outcome.good:
            raise BenchFailed(f"{target.name}: {outcome.bad} wrong answers. {outcome.sample}")
        return Slice(1000 * outcome.cpu_s[METER] / outcome.good, outcome.good / outcome.seconds)


def start(
    processes: Processes,
    placement: Placement,
    gateway: GatewayServer,
    variants: Sequence[Variant],
    target: str,
    *,
    timeout_s: float = START_TIMEOUT_S,
) -> list[Target]:
    """One server for each variant, on the data of `gateway`. Each has `timeout_s` to start."""
    wanted, stage = gateway.target(target), []
    for variant in variants:
        port = free_port()
        process = processes.start(
            f"variant-{variant.name}",
            variant.command(port),
            environment={**gateway.environment, **variant.variables},
            cores=placement.target,
            folder=Path(variant.code) if variant.code else None,
        )
        wait_until_serving(process, port, "/health", timeout_s=timeout_s)
        stage.append(replace(wanted, name=variant.name, port=port, pid=process.pid))
    return stage


def lines(connections: int, found: dict[str, list[Slice]]) -> list[str]:
    """Pure: medians, and medians of the ratios to the first variant's slice of the same round."""
    base = next(iter(found.values()))
    said = []
    for name, slices in found.items():
        cpu, rate = median([each.cpu_ms for each in slices]), median([each.calls_per_s for each in slices])
        cpu_ratio = median([each.cpu_ms / first.cpu_ms for each, first in zip(slices, base, strict=True)])
        rate_ratio = median([each.calls_per_s / first.calls_per_s for each, first in zip(slices, base, strict=True)])
        said.append(
            f"c={connections:<3} {name:<16} {cpu:.3f} ms of CPU a call (x{cpu_ratio:.3f}),"
            f" {rate:,.0f} calls/s (x{rate_ratio:.3f})"
        )
    return said


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.variants", description=__doc__)
    form = "NAME[:python=PATH][,loop=NAME][,code=FOLDER][,env=VARIABLE=VALUE]"
    parser.add_argument("variants", nargs="*", metavar=form)
    parser.add_argument("--metrics", action="store_true", help="with figures for Prometheus and without")
    parser.add_argument("--connections", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--target", choices=[name for name in targets.NAMES if name in ("mcp-key", "mcp-write")])
    options = parser.parse_args(arguments)
    try:
        variants = [*(METRICS if options.metrics else ()), *map(Variant.read, options.variants)]
        if not variants:
            raise BenchFailed("There is nothing to compare: name variants, or --metrics.")
        placement = place(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set())
        with (
            tempfile.TemporaryDirectory(prefix="gateway-bench-") as name,
            back_ends(os.environ) as found,
            Processes(ROOT, Path(name)) as processes,
        ):
            vendor = VendorServer(processes, placement)
            load = LoadGenerator(processes, placement)
            gateway = GatewayServer(processes, placement, vendor, found, Path(name).resolve())
            target = targets.NAMES[options.target or "mcp-key"]
            comparison = Comparison(load, start(processes, placement, gateway, variants, target), options.seconds)
            print("\n".join([*machine.facts(), f"{found.description}; {placement.describe()}"]), flush=True)
            for connections in options.connections:
                comparison.measure(connections, 1)  # warms callers, sessions and lists
                print("\n".join(lines(connections, comparison.measure(connections, options.rounds))), flush=True)
    except BenchFailed as fault:
        sys.stderr.write(f"The bench failed: {fault}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
