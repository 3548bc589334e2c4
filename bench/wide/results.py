"""Pure: what a wide run found. A figure that was not measured is NaN."""

from __future__ import annotations

import math

import msgspec

from bench.figures import median
from bench.results import MeasuredPoint, Results
from bench.wide.statements import of_calls

LEAST_IDLE = 0.1  # share of the machine
NARROW, WIDE = "narrow", "wide"


# Kinds of calls one by one. The first three are the parts of `books.Passes`.
UNKNOWN_ORGANIZATION = "caller and organization unknown"
UNKNOWN_CALLER = "caller unknown"
UNKNOWN_LIST = "tool list unknown"
KNOWN = "all known"


def alone(kind: str) -> str:
    """The target of one process that the load meets without a proxy."""
    return kind


def behind_proxy(kind: str, processes: int) -> str:
    return f"{kind}, proxy and {processes}"


class FirstCalls(msgspec.Struct, frozen=True):
    """Calls one by one that meet something of which the process knows nothing, or only what it knows.

    Statements, by name, and vendor requests are those of one call. Statements are counted in another process.
    """

    name: str
    requests: int
    cpu_p50_ms: float
    cpu_p99_ms: float
    vendor_requests: float = math.nan
    statements_by_name: dict[str, float] = msgspec.field(default_factory=dict)

    @property
    def statements(self) -> float:
        """Beside the commit of the call's record, and without what is done behind the calls."""
        return of_calls(self.statements_by_name) if self.statements_by_name else math.nan


class Memory(msgspec.Struct, frozen=True):
    """Resident bytes of the process before and after it knew everything, and what each further one took."""

    before: int
    after: int
    organization: float
    caller: float
    tool_list: float


class Limit(msgspec.Struct, frozen=True):
    """A caller who may call `allowed` times sent more to several processes."""

    processes: int
    allowed: int
    sent: int
    answered: int


class Revocation(msgspec.Struct, frozen=True):
    """Seconds from the answer to the revocation until each process refused the token."""

    seconds: list[float]


class Minute(msgspec.Struct, frozen=True):
    """`errors`: wrong answers and calls without one."""

    calls: int
    errors: int
    p50_ms: float
    p99_ms: float
    rss_bytes: int


class Steady(msgspec.Struct, frozen=True):
    """`left`: objects that only the garbage collector could free, over all minutes."""

    per_s: float
    minutes: list[Minute]
    left: int
    tracked_before: int
    tracked_after: int

    @property
    def calls(self) -> int:
        return sum(each.calls for each in self.minutes)

    @property
    def errors(self) -> int:
        return sum(each.errors for each in self.minutes)


class WideResults(msgspec.Struct):
    """All that a run measured; what a run leaves out stays None or empty.

    `cores`: of the machine. `busy_cores`: how many of them were while each target was measured, one value a point.
    """

    cores: int = 0
    points: list[MeasuredPoint] = msgspec.field(default_factory=list)
    busy_cores: dict[str, list[float]] = msgspec.field(default_factory=dict)
    first_calls: list[FirstCalls] = msgspec.field(default_factory=list)
    memory: Memory | None = None
    limit: Limit | None = None
    revocation: Revocation | None = None
    steady: Steady | None = None
    faults: list[str] = msgspec.field(default_factory=list)

    def matrix(self) -> Results:
        """The points, to be asked by target and load."""
        return Results(self.points)

    def is_limited_by_machine(self, target: str) -> bool:
        """Whether no core was idle: then the rate is not that of the gateway."""
        busy = self.busy_cores.get(target, [])
        return bool(busy) and median(busy) > self.cores * (1 - LEAST_IDLE)

    def first_call(self, name: str) -> FirstCalls | None:
        return next((each for each in self.first_calls if each.name == name), None)

    def known_calls(self) -> FirstCalls | None:
        return self.first_call(KNOWN)
