"""Two web processes are replaced in turn under load: `python -m tests.faults.rolled`.

[--replacements 10] [--rate 20] [--longest 30] [--idle-posts 10000] [--redis-away 60]

Calls take 0.05 s to --longest. nginx with deploy/nginx.conf stands before the processes where it is installed; it does
not ask /ready. Without it, and while Redis is stopped, a balancer that does. Then connections that were idle for six
seconds are used again. Printed are the figures; the exit code is 1 when a call failed or was sent twice. Needs
redis-server and DATABASE_URL with PostgreSQL. Ten minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tests.e2e import agent
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Deployment, Web, deployment
from tests.e2e.shared_gateway import keyless_catalog
from tests.fakes import nginx, ready_proxy
from tests.fakes.patient_vendor import PatientVendor
from tests.fakes.redis_server import RedisServer, is_installed, redis_server
from tests.fakes.vendor import running_vendor
from tests.vendors.processes import free_port

SHORTEST_S = 0.05
IDLE_S = 6.0
IDLE_CONNECTIONS = 200
# nginx leaves a process alone for two seconds after it refused a connection.
SETTLE_S = 3.0
ORGANIZATIONS = 10
TOOLS = ("fake_list", "fake_write")
READY_WITHIN_S = 0.5


@dataclass
class Plan:
    """`delay_s` is DRAIN_DELAY_SECONDS; calls may take `longest_s`."""

    replacements: int = 10
    rate: float = 20.0
    longest_s: float = 30.0
    delay_s: int = 5
    idle_posts: int = 10_000
    idle_s: float = IDLE_S
    redis_away_s: float = 60.0
    through_nginx: bool = True
    seed: int = 1


@dataclass
class Figures:
    """`sent_twice`: calls that reached the vendor more than once."""

    outcomes: Counter[str] = field(default_factory=Counter)  # of calls while processes are replaced
    idle: Counter[str] = field(default_factory=Counter)
    without_redis: Counter[str] = field(default_factory=Counter)
    replaced: int = 0
    sent_twice: int = 0
    draining_after_s: list[float] = field(default_factory=list)
    stop_s: list[float] = field(default_factory=list)
    faults_of_nginx: list[str] = field(default_factory=list)
    reused: int = 0  # of the posts on idle connections: those that needed no new connection

    @property
    def failed(self) -> Counter[str]:
        total = self.outcomes + self.idle + self.without_redis
        return Counter({name: count for name, count in total.items() if name != "200"})

    @property
    def holds(self) -> bool:
        return not self.failed and self.sent_twice == 0 and self.replaced > 0 and self.outcomes["200"] > 0

    def __str__(self) -> str:
        slowest, stops = max(self.draining_after_s, default=0.0), sorted(self.stop_s) or [0.0]
        lines = (
            f"{self.replaced} replacements: {dict(self.outcomes)}; sent twice: {self.sent_twice}",
            f"draining within {slowest:.2f} s of SIGTERM; stops took {stops[0]:.1f} to {stops[-1]:.1f} s",
            f"posts on idle connections: {dict(self.idle)}, {self.reused} without a new connection",
            f"calls while Redis was stopped: {dict(self.without_redis)}",
            *self.faults_of_nginx,
            "GOOD" if self.holds else "BROKEN",
        )
        return "\n".join(lines)


@dataclass
class Caller:
    """Calls an address, each call with a mark of its own."""

    vendor: PatientVendor
    keys: list[str]
    session: aiohttp.ClientSession
    marks: Iterator[int] = field(default_factory=itertools.count)

    async def call(self, origin: str, takes_s: float) -> str:
        """The status of one call, or the name of what ended its connection."""
        mark = next(self.marks)
        arguments = {"takes_s": takes_s, "mark": mark}
        params = {"name": TOOLS[mark % len(TOOLS)], "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": mark, "method": "tools/call", "params": params}
        headers = agent.bearer(self.keys[mark % len(self.keys)])
        try:
            async with self.session.post(f"{origin}/v1/mcp", json=body, headers=headers) as answer:
                text = await answer.text()
                if answer.status != 200:
                    return str(answer.status)
                said = json.loads(text)
                if said.get("result", {}).get("structuredContent") != arguments:
                    return "another answer"
                return "200"
        except (aiohttp.ClientError, TimeoutError, ValueError) as fault:
            return type(fault).__name__

    async def load(self, origin: str, plan: Plan, outcomes: Counter[str], ended: asyncio.Event) -> None:
        """Calls at a steady pace, short ones more often than long ones, whatever the answers take."""
        draw = random.Random(plan.seed)
        began_s, number, running = time.monotonic(), 0, set[asyncio.Task[None]]()

        async def one(takes_s: float) -> None:
            outcomes[await self.call(origin, takes_s)] += 1

        while not ended.is_set():
            await asyncio.sleep(max(0.0, began_s + number / plan.rate - time.monotonic()))
            takes_s = SHORTEST_S * (plan.longest_s / SHORTEST_S) ** draw.random()
            task = asyncio.ensure_future(one(takes_s))
            running.add(task)
            task.add_done_callback(running.discard)
            number += 1
        if running:
            await asyncio.wait(running)

    def sent_twice(self) -> int:
        calls = [body["params"]["arguments"] for body in self.vendor.bodies if body.get("method") == "tools/call"]
        return sum(count > 1 for count in Counter(call["mark"] for call in calls).values())


@dataclass
class Processes:
    """Two places for a web process; each keeps its port."""

    made: Deployment
    environment: dict[str, str]
    ports: tuple[int, int] = field(default_factory=lambda: (free_port(), free_port()))
    _running: dict[int, tuple[Web, contextlib.ExitStack]] = field(default_factory=dict)

    def start(self, port: int) -> None:
        stack = contextlib.ExitStack()
        web = stack.enter_context(self.made.web(port=port, **self.environment))
        self._running[port] = (web, stack)

    async def replace(self, port: int, figures: Figures) -> None:
        """SIGTERM to the process at the port, and another one there once it has ended."""
        web, stack = self._running.pop(port)
        began_s = time.monotonic()
        web.process.send_signal(signal.SIGTERM)
        while await ready_proxy.is_ready(port):
            await asyncio.sleep(0.01)
        figures.draining_after_s.append(time.monotonic() - began_s)
        await asyncio.to_thread(web.process.wait)
        figures.stop_s.append(time.monotonic() - began_s)
        stack.close()
        await asyncio.to_thread(self.start, port)
        figures.replaced += 1

    def stop(self) -> None:
        for web, stack in self._running.values():
            web.kill()
            stack.close()


async def run(plan: Plan, made: Deployment, redis: RedisServer, keys: list[str], vendor: PatientVendor) -> Figures:
    """Everything, one after the other."""
    figures = Figures()
    environment = {
        "DRAIN_DELAY_SECONDS": str(plan.delay_s),
        "DRAIN_SECONDS": str(plan.delay_s + round(plan.longest_s)),
        "DEPLOYMENT_PROCESSES": "2",
        "VENDOR_CONNECTIONS_PER_ORIGIN": "500",
    }
    processes = Processes(made, environment)
    try:
        with contextlib.ExitStack() as stack:
            for port in processes.ports:
                await asyncio.to_thread(processes.start, port)
            balancer = stack.enter_context(ready_proxy.ready_proxy(processes.ports))
            ready_origin = f"http://127.0.0.1:{balancer.port}"
            origin = ready_origin
            if plan.through_nginx:
                proxy = await asyncio.to_thread(
                    stack.enter_context, nginx.nginx(made.folder / "nginx", processes.ports)
                )
                origin = f"http://127.0.0.1:{proxy}"
            async with sessions(vendor, keys) as caller:
                await roll(plan, processes, caller, origin, figures)
                await use_idle_connections(plan, caller, origin, figures)
                await stop_redis(plan, redis, caller, ready_origin, figures)
                figures.sent_twice = caller.sent_twice()
            if plan.through_nginx:
                figures.faults_of_nginx = nginx.faults(made.folder / "nginx")
    finally:
        processes.stop()
    return figures


@contextlib.asynccontextmanager
async def sessions(vendor: PatientVendor, keys: list[str]) -> AsyncIterator[Caller]:
    """A client that keeps connections and never sends a call twice."""
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=90)) as session:
        yield Caller(vendor, keys, session)


async def roll(plan: Plan, processes: Processes, caller: Caller, origin: str, figures: Figures) -> None:
    ended = asyncio.Event()
    load = asyncio.ensure_future(caller.load(origin, plan, figures.outcomes, ended))
    try:
        for number in range(plan.replacements):
            # The other process must serve before this one ends.
            await asyncio.sleep(SETTLE_S if plan.through_nginx else 1.0)
            await processes.replace(processes.ports[number % 2], figures)
        await asyncio.sleep(1.0)
    finally:
        ended.set()
        await load


async def use_idle_connections(plan: Plan, caller: Caller, origin: str, figures: Figures) -> None:
    """Posts on many connections at once, again and again after a pause."""
    made = 0

    async def on_new(*_: object) -> None:
        nonlocal made
        made += 1

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(on_new)
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, trace_configs=[trace]) as session:
        poster = Caller(caller.vendor, caller.keys, session, caller.marks)
        width = min(IDLE_CONNECTIONS, plan.idle_posts)
        for _ in range(plan.idle_posts // width if width else 0):
            figures.idle.update(await asyncio.gather(*(poster.call(origin, 0.0) for _ in range(width))))
            await asyncio.sleep(plan.idle_s)
    figures.reused = figures.idle.total() - made


async def stop_redis(plan: Plan, redis: RedisServer, caller: Caller, origin: str, figures: Figures) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().call_later(plan.redis_away_s, ended.set)
    redis.kill()
    try:
        short = Plan(rate=plan.rate, longest_s=1.0, seed=plan.seed + 1)
        await caller.load(origin, short, figures.without_redis, ended)
    finally:
        redis.start()


async def staged(template: Template, folder: Path, plan: Plan) -> Figures:
    """The run with a vendor in this process, and a Redis and a database of its own."""
    async with running_vendor(PatientVendor, api_key=None) as vendor:
        assert isinstance(vendor, PatientVendor)
        with redis_server() as redis, deployment(template, folder) as made:
            made.environment["REDIS_URL"] = redis.url
            text = keyless_catalog("fake", vendor.url).replace("timeout_seconds = 20", "timeout_seconds = 60")
            keys: list[str] = []
            with made.operator() as operator:
                await asyncio.to_thread(operator.run, "load_catalog", text=text)
                for number in range(ORGANIZATIONS):
                    org_id = operator.run("create_organization", name=f"Org{number}")
                    operator.run("connect_vendor", org_id=org_id, vendor="fake", fields={})
                    keys.append(operator.run("create_service_client", org_id=org_id, name="bot")["agent_key"])
            return await run(plan, made, redis, keys, vendor)


def main() -> int:
    """Print the figures; 1 when a call failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replacements", type=int, default=10)
    parser.add_argument("--rate", type=float, default=20.0, help="calls a second")
    parser.add_argument("--longest", type=float, default=30.0, help="seconds of the longest call")
    parser.add_argument("--idle-posts", type=int, default=10_000)
    parser.add_argument("--redis-away", type=float, default=60.0, help="seconds for which Redis is stopped")
    asked = parser.parse_args()
    if not is_installed() or not os.environ.get("DATABASE_URL", "").startswith("postgres"):
        parser.error("needs redis-server, and DATABASE_URL with PostgreSQL")
    os.environ.pop("REDIS_URL", None)
    plan = Plan(
        replacements=asked.replacements,
        rate=asked.rate,
        longest_s=asked.longest,
        idle_posts=asked.idle_posts,
        redis_away_s=asked.redis_away,
        through_nginx=nginx.is_installed(),
    )
    with tempfile.TemporaryDirectory(prefix="rolled-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        template = Template(folder)
        try:
            figures = asyncio.run(staged(template, folder / "var", plan))
        finally:
            template.remove()
    print("nginx" if plan.through_nginx else "a balancer that asks /ready", figures, sep="\n")  # noqa: T201
    return 0 if figures.holds and max(figures.draining_after_s) <= READY_WITHIN_S else 1


if __name__ == "__main__":
    sys.exit(main())
