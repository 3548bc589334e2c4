"""PostgreSQL falls silent under load and comes back: `python -m tests.faults.database_silent [--seconds 60]`.

Between the gateway and its database stands a relay that swallows everything without closing a connection, as a network
does that loses packets. Printed is how the calls fared; the exit code is 1 when a bound is broken. Needs DATABASE_URL
(and takes REDIS_URL) of servers that may be used: a database of its own is made there and dropped.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from tests.e2e import agent
from tests.e2e.agent import ServiceClient
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Deployment, deployment
from tests.e2e.shared_gateway import keyless_catalog
from tests.fakes.silent_relay import Relay, relay_to
from tests.fakes.vendor import FakeVendor, running_vendor

CALLS_PER_S = 200
GRACE_S = 2.0  # the vendor sees calls of the first seconds
WARM_UP_S = 3.0
AFTERWARDS_S = 5.0
WARM_CALLERS, COLD_CALLERS = 4, 60
RECOVERY_BOUND_S = 15.0
VENDOR_SHARE_BOUND = 0.01
REFUSAL_BOUND_MS = 50.0
TOOLS = ("fake_list", "fake_write")
VARIABLES = {"TOOL_CALLS_PER_HOUR": "1000000"}


@dataclass(slots=True)
class Call:
    """One call of the load; times are on the monotonic clock, and status is 0 until it is answered."""

    request_id: str
    asked_s: float
    is_cold: bool = False
    status: int = 0
    answered_s: float = 0.0

    @property
    def took_ms(self) -> float:
        return (self.answered_s - self.asked_s) * 1000


@dataclass
class Load:
    """Calls at a steady rate, whether the ones before were answered or not."""

    url: str
    session: aiohttp.ClientSession
    warm: list[str]
    cold: Iterator[str]
    calls_per_s: float
    calls: list[Call] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    async def call(self, key: str, *, is_cold: bool = False) -> Call:
        """One call, to its answer."""
        number = next(self._numbers)
        made = Call(f"silent-{number}", time.monotonic(), is_cold)
        self.calls.append(made)
        params = {"name": TOOLS[number % 2], "arguments": {"mark": made.request_id}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {**agent.bearer(key), "X-Request-Id": made.request_id}
        async with self.session.post(self.url, json=body, headers=headers) as answer:
            await answer.read()
            made.status, made.answered_s = answer.status, time.monotonic()
        return made

    def begin(self, key: str, *, is_cold: bool = False) -> None:
        """One call, which is not waited for."""
        task = asyncio.ensure_future(self._ignored(key, is_cold))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _ignored(self, key: str, is_cold: bool) -> None:
        await self.call(key, is_cold=is_cold)

    async def run(self, until: asyncio.Event) -> None:
        """The load of the known callers."""
        keys = itertools.cycle(self.warm)
        next_s = time.monotonic()
        while not until.is_set():
            self.begin(next(keys))
            next_s += 1 / self.calls_per_s
            await asyncio.sleep(max(0.0, next_s - time.monotonic()))
        await asyncio.gather(*self.tasks)

    async def recovered(self, *, is_cold: bool, since_s: float) -> float:
        """Seconds from `since_s` until a caller is answered 200; each cold one comes for the first time."""
        while time.monotonic() - since_s < 2 * RECOVERY_BOUND_S:
            made = await self.call(next(self.cold) if is_cold else self.warm[0], is_cold=is_cold)
            if made.status == 200:
                return made.answered_s - since_s
            await asyncio.sleep(0.25)
        return time.monotonic() - since_s


@dataclass(frozen=True)
class Report:
    """The figures of a run, with their bounds."""

    seconds: float
    calls_per_s: float
    warm_back_s: float
    cold_back_s: float
    statuses: dict[str, dict[int, int]]
    vendor_share: float
    refusals_ms: list[float]
    answered: int
    rows: int
    without_row: int
    doubled: int
    late_failures: int

    def refused_in_ms(self, share: float) -> float:
        """The time that `share` of the refusals took at most."""
        ordered = sorted(self.refusals_ms) or [float("inf")]
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def broken(self, *, refusal_bound_ms: float = REFUSAL_BOUND_MS) -> list[str]:
        """The bounds that were not kept."""
        found = {
            "known callers are served again": self.warm_back_s > RECOVERY_BOUND_S,
            "unknown callers are served again": self.cold_back_s > RECOVERY_BOUND_S,
            "calls reach the vendor after the second second": self.vendor_share > VENDOR_SHARE_BOUND,
            "refusals are quick": self.refused_in_ms(0.99) > refusal_bound_ms,
            "every answered call has its row": self.without_row > 0,
            "no call has two rows": self.doubled > 0,
            "nothing fails once it is back": self.late_failures > 0,
        }
        return [bound for bound, is_broken in found.items() if is_broken]

    def lines(self) -> list[str]:
        """For people."""
        missing = f"answered without a row {self.without_row}, calls with two rows {self.doubled}"
        median, most = self.refused_in_ms(0.5), self.refused_in_ms(0.99)
        return [
            f"silent for {self.seconds:g} s under {self.calls_per_s:g} calls/s; statuses by phase: {self.statuses}",
            f"200 again after             {self.warm_back_s:6.1f} s  (bound {RECOVERY_BOUND_S:g})",
            f"cold caller 200 again after {self.cold_back_s:6.1f} s  (bound {RECOVERY_BOUND_S:g})",
            f"vendor saw after the 2nd s  {self.vendor_share:6.2%}    (bound {VENDOR_SHARE_BOUND:.0%})",
            f"refusals after the 1st s    {median:6.1f} ms median, {most:.1f} p99  (bound {REFUSAL_BOUND_MS:g} at p99)",
            f"answered with 200           {self.answered:6d}    rows {self.rows}, {missing}",
            f"failed later than {AFTERWARDS_S:g} s after it was back {self.late_failures}",
        ]


async def measure(
    made: Deployment, seconds: float, calls_per_s: float = CALLS_PER_S, *, grace_s: float = GRACE_S
) -> Report:
    """Load the gateway of `made` while its database is silent for `seconds`. Calls may go through for `grace_s`."""
    parts = urlsplit(made.database.url)
    with ExitStack() as stack:
        relay = stack.enter_context(relay_to(parts.hostname or "127.0.0.1", parts.port or 5432))
        login = parts.netloc.rpartition("@")[0]
        relayed = parts._replace(netloc=f"{f'{login}@' if login else ''}127.0.0.1:{relay.port}").geturl()
        operator = stack.enter_context(made.operator())
        async with running_vendor(api_key=None, delay_s=0.02) as vendor:
            operator.run("load_catalog", text=keyless_catalog("fake", vendor.url))
            org_id = operator.run("create_organization", name="Silent")
            operator.run("connect_vendor", org_id=org_id, vendor="fake", fields={})
            names = [f"bot {number}" for number in range(WARM_CALLERS + COLD_CALLERS)]
            service_clients = [
                ServiceClient(org_id=org_id, **operator.run("create_service_client", org_id=org_id, name=name))
                for name in names
            ]
            gateway = await asyncio.to_thread(stack.enter_context, made.web(DATABASE_URL=relayed))
            keys = [service_client.agent_key for service_client in service_clients]
            async with _session() as session:
                load = Load(gateway.mcp_url, session, keys[:WARM_CALLERS], iter(keys[WARM_CALLERS:]), calls_per_s)
                began_s, ended_s, back = await _play(load, relay, seconds)
        return _report(made, load, vendor, seconds, grace_s, began_s, ended_s, back)


async def _play(load: Load, relay: Relay, seconds: float) -> tuple[float, float, tuple[float, float]]:
    """The phases. When the silence began and ended, and how long known and unknown callers then waited."""
    over = asyncio.Event()
    running = asyncio.ensure_future(load.run(over))
    await asyncio.sleep(WARM_UP_S)
    relay.silence()
    began_s = time.monotonic()
    while (left_s := began_s + seconds - time.monotonic()) > 0:
        await asyncio.sleep(min(5.0, left_s))
        load.begin(next(load.cold), is_cold=True)
    relay.pass_again()
    ended_s = time.monotonic()
    back = await asyncio.gather(*(load.recovered(is_cold=cold, since_s=ended_s) for cold in (False, True)))
    await asyncio.sleep(AFTERWARDS_S + 2.0)
    over.set()
    await running
    return began_s, ended_s, (back[0], back[1])


def _report(
    made: Deployment,
    load: Load,
    vendor: FakeVendor,
    seconds: float,
    grace_s: float,
    began_s: float,
    ended_s: float,
    back: tuple[float, float],
) -> Report:
    reached = {body["params"]["arguments"]["mark"] for body in vendor.bodies if body.get("method") == "tools/call"}
    found = made.database.select("SELECT request_id FROM audit_requestauditentry WHERE request_id LIKE 'silent-%'")
    rows = Counter(str(request_id) for (request_id,) in found)
    answered = {call.request_id for call in load.calls if call.status == 200}
    meanwhile = [call for call in load.calls if began_s + grace_s < call.asked_s < ended_s]
    refused = [call for call in load.calls if began_s + 1.1 < call.asked_s < ended_s and call.status == 503]
    back_s = ended_s + max(back) + AFTERWARDS_S
    phases = {
        "before": [call for call in load.calls if call.asked_s < began_s],
        "silent": [call for call in load.calls if began_s <= call.asked_s < ended_s],
        "after": [call for call in load.calls if call.asked_s >= ended_s],
    }
    return Report(
        seconds=seconds,
        calls_per_s=load.calls_per_s,
        warm_back_s=back[0],
        cold_back_s=back[1],
        statuses={name: dict(Counter(call.status for call in calls)) for name, calls in phases.items()},
        vendor_share=sum(call.request_id in reached for call in meanwhile) / max(1, len(meanwhile)),
        refusals_ms=[call.took_ms for call in refused],
        answered=len(answered),
        rows=rows.total(),
        without_row=len(answered - rows.keys()),
        doubled=sum(times > 1 for times in rows.values()),
        late_failures=sum(call.status != 200 for call in load.calls if call.asked_s > back_s),
    )


@asynccontextmanager
async def _session() -> AsyncIterator[aiohttp.ClientSession]:
    timeout = aiohttp.ClientTimeout(total=30)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session:
        yield session


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.database_silent")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the database is silent")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gateway-silent-") as name:
        folder = Path(name)
        template = Template(folder)
        try:
            if template.database.is_sqlite:
                sys.stderr.write("DATABASE_URL must name a PostgreSQL server.\n")
                return 2
            with deployment(template, folder / "var", variables=VARIABLES) as made:
                report = asyncio.run(measure(made, options.seconds))
        finally:
            template.remove()
    broken = report.broken()
    sys.stdout.write("\n".join([*report.lines(), *(f"BROKEN: {bound}" for bound in broken), ""]))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
