"""The costs of a call as measured, and the tables of docs/scaling.md: `python -m bench.capacity`.

python -m bench.capacity --calls 30000 --organizations 8000 --callers 90000 --lists 20000
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.capacity_model import (
    Costs,
    Demand,
    Engines,
    Point,
    cell_calls_per_s,
    cost_table,
    fill,
    memory_table,
    percent,
    point_table,
    process_memory_bytes,
    processes,
    size_table,
)

# Measured on the machine that docs/scaling.md names.
COSTS = Costs(
    gateway_ms=0.178,
    batch_ms=1.2,
    widening_ms=0.011,
    busy_share=0.945,
    redis_ms=0.032,
    redis_batch_ms=0.27,
    database_ms=0.061,
    database_batch_ms=0.94,
    wal_bytes=1_600,
    row_bytes=980,
    process_bytes=112e6,
    organization_bytes=6e3,
    caller_bytes=1.9e3,
    list_bytes=3.9e3,
)
ENGINES = Engines()
POINTS = (
    Point("web process, CPU of a call, 50 callers, 64 connections", "ms", 0.197, lambda costs: costs.cpu_ms(50)),
    Point("the same, 16 connections", "ms", 0.253, lambda costs: costs.cpu_ms(50, 16)),
    Point("the same, in another run, 64 connections", "ms", 0.215, lambda costs: costs.cpu_ms(50)),
    Point("5,000 callers, 64 connections", "ms", 0.219, lambda costs: costs.cpu_ms(5_000)),
    Point("the same, 16 connections", "ms", 0.293, lambda costs: costs.cpu_ms(5_000, 16)),
    Point("the same, in another run, 64 connections", "ms", 0.227, lambda costs: costs.cpu_ms(5_000)),
    Point("calls/s of one process, 50 callers", "", 4_821, lambda costs: costs.calls_per_s(50)),
    Point("calls/s of one process, 5,000 callers", "", 4_411, lambda costs: costs.calls_per_s(5_000)),
    Point("memory, 1,000 organizations", "MB", 150, lambda costs: costs.memory_bytes(1_000, 5_000, 3_000) / 1e6),
    Point("memory, 10,000 organizations", "MB", 381, lambda costs: costs.memory_bytes(10_000, 50_000, 30_000) / 1e6),
    Point("Redis, CPU of a call, 64 connections", "ms", 0.036, lambda costs: costs.redis_cpu_ms()),
    Point("the same, 16 connections", "ms", 0.049, lambda costs: costs.redis_cpu_ms(16)),
    Point("PostgreSQL, CPU of a call, 64 connections", "ms", 0.076, lambda costs: costs.database_cpu_ms()),
    Point("the same, 16 connections", "ms", 0.12, lambda costs: costs.database_cpu_ms(16)),
)


def document() -> dict[str, str]:
    """The tables of docs/scaling.md by the name of their place in it."""
    return {
        "costs": cost_table(COSTS),
        "memory": memory_table(COSTS),
        "sizes": size_table(COSTS, ENGINES),
        "points": point_table(COSTS, POINTS),
    }


def replaced(text: str) -> str:
    """Pure: a document with its tables made anew, between two comments. Raises: ValueError without those."""
    for name, table in document().items():
        begin, end = f"<!-- {name}: python -m bench.capacity -->", f"<!-- end of {name} -->"
        first, last = text.index(begin) + len(begin), text.index(end)
        text = f"{text[:first]}\n\n{table}\n\n{text[last:]}"
    return text


def answer(demand: Demand) -> str:
    """Lines about one deployment."""
    shares = fill(COSTS, ENGINES, demand)
    name, share = shares.first()
    memory_mb = process_memory_bytes(COSTS, ENGINES, demand) / 1e6
    database = f"PostgreSQL {percent(shares.database_cpu)} of its processors, WAL {percent(shares.database_wal)}"
    lines = [
        f"{processes(COSTS, ENGINES, demand)} web processes, {memory_mb:.0f} MB each",
        f"Redis {percent(shares.redis)}, {database}, disk {percent(shares.disk)}",
        f"Full first: {name}, {percent(share)} of one. A cell takes {cell_calls_per_s(COSTS, ENGINES):,.0f} calls/s.",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.capacity", description=__doc__)
    for name in ("calls", "organizations", "callers", "lists"):
        parser.add_argument(
            f"--{name}", type=int, metavar="N", help="all four for one deployment instead of the tables"
        )
    parser.add_argument("--write", type=Path, metavar="FILE", help="make the tables of this document anew")
    options = parser.parse_args(arguments)
    asked = [options.calls, options.organizations, options.callers, options.lists]
    if options.write is not None:
        options.write.write_text(replaced(options.write.read_text(encoding="utf-8")), encoding="utf-8")
    elif all(asked):
        print(answer(Demand(*asked)))
    elif any(asked):
        parser.error("--calls, --organizations, --callers and --lists belong together")
    else:
        print("\n\n".join(document().values()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
