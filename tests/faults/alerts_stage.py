"""An installation with all its parts as processes that can be killed and paused, calls that go on, and a Prometheus."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import psycopg

from demo.catalog import render_catalog
from gateway.container.entrypoint import role_command
from gateway.supervisor.child_environment import DEMO_CLIENT_ID, demo_environment, provider_environment
from gateway.supervisor.options import read_options
from gateway.supervisor.services import metrics_command, shipping_command, web_command
from tests.e2e import agent
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Deployment, deployment
from tests.fakes.postgresql_server import PostgreSQLServer, postgresql_server
from tests.fakes.prometheus import Prometheus, prometheus
from tests.fakes.redis_server import RedisServer, redis_server
from tests.faults.shipping_stage import Process, until
from tests.vendors.processes import PLAIN_HTTP, ROOT, free_port
from tests.vendors.servers import DemoVendor

CALLS_PER_S = 10.0
CALL_DEADLINE_S = 20.0
START_DEADLINE_S = 120.0
IDP_SECRET = "a-secret-of-the-test-s-own"
LIMITS = {"TOOL_CALLS_PER_HOUR": "10000000", "REQUESTS_PER_MINUTE": "10000000"}


class Calls:
    """Calls of an agent at a steady pace, whatever the answers take, in a thread of their own."""

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key, self._ended = url, key, threading.Event()
        self.statuses: Counter[str] = Counter()
        self._numbers = itertools.count()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="calls", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join(2 * CALL_DEADLINE_S)

    async def _run(self) -> None:
        # A connection for each call: all web processes get some.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        timeout = aiohttp.ClientTimeout(total=CALL_DEADLINE_S)
        running: set[asyncio.Task[None]] = set()
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session:
            while not self._ended.is_set():
                task = asyncio.ensure_future(self._call(session))
                running.add(task)
                task.add_done_callback(running.discard)
                await asyncio.sleep(1 / CALLS_PER_S)
            if running:
                await asyncio.wait(running)

    async def _call(self, session: aiohttp.ClientSession) -> None:
        # Another search each time: none is answered from the cache.
        params = {"name": "acme_search", "arguments": {"query": f"printer {next(self._numbers)}"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        try:
            async with session.post(self._url, json=body, headers=agent.bearer(self._key)) as answer:
                await answer.read()
                self.statuses[str(answer.status)] += 1
        except (aiohttp.ClientError, TimeoutError) as fault:
            self.statuses[type(fault).__name__] += 1


@dataclass
class Installation:
    """Every part that can break. `processes`: those of ours and those beside us, by name."""

    made: Deployment
    postgresql: PostgreSQLServer
    redis: RedisServer
    processes: dict[str, Process]
    prometheus: Prometheus
    calls: Calls
    _slow: threading.Event = field(default_factory=threading.Event)

    def restart(self, name: str) -> None:
        self.processes[name].start()
        if name == "web":
            wait_until_ready(self.made.origin)

    def revive(self) -> None:
        """As a supervisor does: workers may end when Redis does."""
        for name in ("worker", "beat", "shipping"):
            self.processes[name].revive()

    def slow_down_commits(self) -> None:
        """A lock that comes back again and again keeps each commit waiting for most of a second."""
        self._slow.set()
        threading.Thread(target=self._lock_again_and_again, name="lock", daemon=True).start()

    def speed_up_commits(self) -> None:
        self._slow.clear()

    def _lock_again_and_again(self) -> None:
        while self._slow.is_set():
            with psycopg.connect(self.made.database.url) as connection:
                connection.execute("LOCK TABLE audit_requestauditentry IN EXCLUSIVE MODE")
                time.sleep(0.9)
            time.sleep(0.05)

    def drop_partitions(self) -> None:
        """The request log has no partition for the months to come."""
        with self.made.operator() as operator:
            assert operator.run("drop_partitions_ahead")

    def make_partitions(self) -> None:
        self.made.manage("audit_partitions")


@contextlib.contextmanager
def installation(folder: Path, programs: Path, *, scrape_s: int) -> Iterator[Installation]:
    """Everything runs and calls are answered; all of it has ended afterwards."""
    with contextlib.ExitStack() as stack:
        postgresql = stack.enter_context(postgresql_server(programs))
        redis = stack.enter_context(redis_server())
        template = Template(folder, server_url=postgresql.url)
        stack.callback(template.remove)
        ports = {name: free_port() for name in ("vendor", "identity", "destination", "metrics")}
        variables = {
            **LIMITS,
            "ALLOW_PRIVATE_ENDPOINTS": "1",
            "METRICS_ADDRESS": f"127.0.0.1:{ports['metrics']}",
            "OIDC_OP_DISCOVERY_URL": f"http://127.0.0.1:{ports['identity']}/.well-known/openid-configuration",
            "OIDC_RP_CLIENT_ID": DEMO_CLIENT_ID,
            "OIDC_RP_CLIENT_SECRET": IDP_SECRET,
        }
        made = stack.enter_context(deployment(template, folder / "var", variables=variables))
        made.environment["REDIS_URL"] = redis.url
        processes = _processes(made, ports)
        stack.callback(_end, processes)
        for name in ("vendor", "identity", "destination"):
            processes[name].start()
        key = _prepared(made, ports)
        for name in ("metrics", "web", "worker", "beat", "shipping"):
            processes[name].start()
        wait_until_ready(made.origin)
        watching = stack.enter_context(
            prometheus(folder / "prometheus", variables["METRICS_ADDRESS"], scrape_s=scrape_s)
        )
        calls = Calls(f"{made.origin}/v1/mcp", key)
        calls.start()
        stack.callback(calls.end)
        yield Installation(made, postgresql, redis, processes, watching, calls)


def _processes(made: Deployment, ports: dict[str, int]) -> dict[str, Process]:
    given = {"PORT": str(made.port), "VAR": str(made.folder), "DEMO": "0", "WEB_PROCESSES": "2"}
    options = read_options({**given, "REDIS_URL": made.environment["REDIS_URL"]}, ROOT)
    environment, logs = made.environment, made.folder / "logs"
    vendor = ("-m", "demo.vendor_server", "--port", str(ports["vendor"]), "--data", str(made.folder / "vendor"))
    origin = f"http://127.0.0.1:{ports['identity']}"
    identity = ("-m", "demo.identity_provider", "--port", str(ports["identity"]), "--issuer", origin)
    identity += ("--keys", str(made.folder / "identity"), "--redirect-origin", made.origin)
    receiver = ("-I", "-S", str(Path(__file__).with_name("shipping_receiver.py")))
    receiver += (str(ports["destination"]), str(made.folder / "destination"))
    beat = role_command("beat", ["--schedule", str(made.folder / "schedule")], environment)
    commands: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
        "vendor": ((sys.executable, *vendor), demo_environment(environment)),
        "identity": ((sys.executable, *identity), provider_environment(environment, IDP_SECRET)),
        "destination": ((sys.executable, *receiver), demo_environment(environment)),
        "metrics": (metrics_command(), environment),
        "web": (web_command(options), environment),
        "worker": (role_command("worker", [], environment), environment),
        "beat": (beat, environment),
        "shipping": (shipping_command(environment), environment),
    }
    return {name: Process(command, given, logs / f"{name}.log") for name, (command, given) in commands.items()}


def _prepared(made: Deployment, ports: dict[str, int]) -> str:
    """The key of an agent whose organization has a vendor and a log destination."""
    catalog = render_catalog(ports["vendor"]).replace("timeout_seconds = 30", "timeout_seconds = 3")
    with made.operator() as operator:
        operator.run("load_catalog", text=catalog)
        org_id = operator.run("create_organization", name="Watched")
        operator.run("connect_vendor", org_id=org_id, vendor="acme", fields={"apiKey": DemoVendor.new_api_key()})
        url = f"http://127.0.0.1:{ports['destination']}/events"
        operator.run("create_log_destination", org_id=org_id, url=url)
        client: dict[str, Any] = operator.run("create_service_client", org_id=org_id, name="bot")
    return str(client["agent_key"])


def wait_until_ready(origin: str) -> None:
    def is_ready() -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{origin}/ready", timeout=5.0, **PLAIN_HTTP).status_code == 200
        return False

    assert until(is_ready, START_DEADLINE_S, pause_s=0.1), "the web processes are not ready in time"


def _end(processes: dict[str, Process]) -> None:
    for process in processes.values():
        process.end()
