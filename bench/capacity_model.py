"""Pure: the capacity of a deployment, reckoned from the cost of a call in each part.

`bench/capacity.py` has the costs of one machine, and prints the tables of docs/scaling.md. The model is small on
purpose: it has to say which part is full first, and to be within a fifth of what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

DAY_S = 86_400
# Callers whose objects the processor's own caches hold. More of them cost a call some misses.
NARROW_CALLERS = 50
CONNECTIONS = 64  # of a busy process
CALLERS_OF_ORGANIZATION, LISTS_OF_ORGANIZATION = 5, 3


@dataclass(frozen=True, slots=True)
class Costs:
    """The work of one call in each part, and the memory that a process keeps. CPU in milliseconds, sizes in bytes.

    The calls that share one pass of the loop, a packet to Redis and a commit share `batch_ms`. Each tenfold number of
    callers adds `widening_ms`. `busy_share` is the part of a core that a process uses when it has all the calls that it
    can serve.
    """

    gateway_ms: float
    batch_ms: float
    widening_ms: float
    busy_share: float
    redis_ms: float
    redis_batch_ms: float
    database_ms: float
    database_batch_ms: float
    wal_bytes: float
    row_bytes: float
    process_bytes: float
    organization_bytes: float
    caller_bytes: float
    list_bytes: float

    def cpu_ms(self, callers: int, connections: int = CONNECTIONS) -> float:
        """Of a gateway process, for one call."""
        tenfold = math.log10(max(1.0, callers / NARROW_CALLERS))
        return self.gateway_ms + self.batch_ms / connections + self.widening_ms * tenfold

    def calls_per_s(self, callers: int) -> float:
        """The most that one process serves."""
        return 1_000 * self.busy_share / self.cpu_ms(callers)

    def redis_cpu_ms(self, connections: int = CONNECTIONS) -> float:
        return self.redis_ms + self.redis_batch_ms / connections

    def database_cpu_ms(self, connections: int = CONNECTIONS) -> float:
        return self.database_ms + self.database_batch_ms / connections

    def memory_bytes(self, organizations: int, callers: int, lists: int) -> float:
        """Resident memory of a process that knows so many of each."""
        own = organizations * self.organization_bytes + callers * self.caller_bytes
        return self.process_bytes + own + lists * self.list_bytes


@dataclass(frozen=True, slots=True)
class Engines:
    """The largest single engine of each kind, and how full each part runs at its busiest.

    Redis runs its commands on one core. `mean_share` is the mean rate over a day, as a share of the busiest.
    """

    share: float = 0.7
    database_cores: int = 32
    wal_bytes_per_s: float = 250e6
    disk_bytes: float = 16e12
    kept_days: int = 30
    mean_share: float = 0.3


@dataclass(frozen=True, slots=True)
class Demand:
    """`callers` and `lists` of all organizations; a list is one credential with its tool list and its session."""

    calls_per_s: float
    organizations: int
    callers: int
    lists: int

    @classmethod
    def usual(cls, calls_per_s: int) -> Demand:
        """An organization for each call a second, with five callers and three vendors."""
        return cls(calls_per_s, calls_per_s, calls_per_s * CALLERS_OF_ORGANIZATION, calls_per_s * LISTS_OF_ORGANIZATION)


@dataclass(frozen=True, slots=True)
class Fill:
    """Shares of one engine each; above 1 one engine is not enough."""

    redis: float
    database_cpu: float
    database_wal: float
    disk: float

    def first(self) -> tuple[str, float]:
        """The fullest part."""
        shares = {
            "Redis": self.redis,
            "PostgreSQL, processors": self.database_cpu,
            "PostgreSQL, WAL": self.database_wal,
            "PostgreSQL, disk": self.disk,
        }
        return max(shares.items(), key=lambda item: item[1])


def processes(costs: Costs, engines: Engines, demand: Demand) -> int:
    """Web processes. A proxy keeps a caller at one of them, so each knows its share of the callers."""
    found = 1
    for _ in range(20):  # fewer callers each make a call cheaper: settles in two or three steps
        each_ms = costs.cpu_ms(math.ceil(demand.callers / found))
        needed = math.ceil(demand.calls_per_s * each_ms / (1_000 * costs.busy_share * engines.share))
        if needed == found:
            break
        found = needed
    return found


def process_memory_bytes(costs: Costs, engines: Engines, demand: Demand) -> float:
    """Of each process. An organization is known wherever one of its callers is, and so are its lists."""
    count = processes(costs, engines, demand)
    callers = math.ceil(demand.callers / count)
    organizations = min(demand.organizations, callers)
    lists = min(demand.lists, organizations * LISTS_OF_ORGANIZATION)
    return costs.memory_bytes(organizations, callers, lists)


def fill(costs: Costs, engines: Engines, demand: Demand) -> Fill:
    usable_ms = 1_000 * engines.share
    rows_kept = demand.calls_per_s * engines.mean_share * DAY_S * engines.kept_days
    return Fill(
        redis=demand.calls_per_s * costs.redis_cpu_ms() / usable_ms,
        database_cpu=demand.calls_per_s * costs.database_cpu_ms() / (usable_ms * engines.database_cores),
        database_wal=demand.calls_per_s * costs.wal_bytes / (engines.share * engines.wal_bytes_per_s),
        disk=rows_kept * costs.row_bytes / (engines.share * engines.disk_bytes),
    )


def cell_calls_per_s(costs: Costs, engines: Engines) -> float:
    """The rate at which the first part of a cell is full: one Redis, one PostgreSQL, any number of web processes."""
    _, share = fill(costs, engines, Demand.usual(1_000)).first()
    return 1_000 / share


@dataclass(frozen=True, slots=True)
class Point:
    """A measured figure, and what the model says about it."""

    title: str
    unit: str
    measured: float
    reckon: Callable[[Costs], float]

    def ratio(self, costs: Costs) -> float:
        return self.reckon(costs) / self.measured


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cost_table(costs: Costs) -> str:
    rows = [
        ["web process, 50 callers", f"{costs.cpu_ms(50):.3f} ms", f"{costs.cpu_ms(50, 16):.3f} ms"],
        ["web process, 5,000 callers", f"{costs.cpu_ms(5_000):.3f} ms", f"{costs.cpu_ms(5_000, 16):.3f} ms"],
        ["web process, 50,000 callers", f"{costs.cpu_ms(50_000):.3f} ms", f"{costs.cpu_ms(50_000, 16):.3f} ms"],
        ["Redis", f"{costs.redis_cpu_ms():.3f} ms", f"{costs.redis_cpu_ms(16):.3f} ms"],
        ["PostgreSQL", f"{costs.database_cpu_ms():.3f} ms", f"{costs.database_cpu_ms(16):.3f} ms"],
    ]
    return markdown(["processor time of a call", "64 connections", "16 connections"], rows)


def memory_table(costs: Costs) -> str:
    rows = [
        ["a process after its first calls", f"{costs.process_bytes / 1e6:.0f} MB"],
        ["an organization", f"{costs.organization_bytes / 1e3:.1f} kB"],
        ["a caller", f"{costs.caller_bytes / 1e3:.1f} kB"],
        ["a credential with its tool list and its session", f"{costs.list_bytes / 1e3:.1f} kB"],
        ["1,000 organizations", f"{costs.memory_bytes(1_000, 5_000, 3_000) / 1e6:.0f} MB"],
        ["10,000 organizations", f"{costs.memory_bytes(10_000, 50_000, 30_000) / 1e6:.0f} MB"],
    ]
    return markdown(["memory of a web process", ""], rows)


def size_table(costs: Costs, engines: Engines) -> str:
    head = ["calls/s", "web processes", "memory each", "Redis", "PostgreSQL", "WAL", "disk", "full first", "cells"]
    rows = []
    for exponent in (3, 4, 5, 6):
        demand = Demand.usual(10**exponent)
        shares = fill(costs, engines, demand)
        name, share = shares.first()
        rows.append(
            [
                f"{demand.calls_per_s:,}",
                f"{processes(costs, engines, demand):,}",
                f"{process_memory_bytes(costs, engines, demand) / 1e6:,.0f} MB",
                *(percent(each) for each in (shares.redis, shares.database_cpu, shares.database_wal, shares.disk)),
                name,
                f"{max(1, math.ceil(share)):,}",
            ]
        )
    return markdown(head, rows)


def percent(share: float) -> str:
    return f"{share * 100:,.0f} %"


def point_table(costs: Costs, points: Sequence[Point]) -> str:
    rows = [
        [
            one.title,
            (f"{one.measured:,.3g}" if one.measured < 1_000 else f"{one.measured:,.0f}") + f" {one.unit}".rstrip(),
            f"{one.ratio(costs):.2f}",
        ]
        for one in points
    ]
    return markdown(["figure", "measured", "model / measured"], rows)
