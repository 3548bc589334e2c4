"""Two web servers with production's patience, a Redis of their own, and many service clients that call."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from gateway.supervisor.options import read_options
from gateway.supervisor.services import web_command
from tests.e2e import agent
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Deployment, Operator, Web, deployment
from tests.e2e.shared_gateway import keyless_catalog
from tests.fakes.redis_server import RedisServer
from tests.faults.hang_figures import FIGURES_PATH
from tests.vendors.processes import ROOT, free_port

WEBS = 2
LIMIT = 100
SERVICE_CLIENTS_OF_ORGANIZATION = 100
VARIABLES = {"TOOL_CALLS_PER_HOUR": str(LIMIT), "DEPLOYMENT_PROCESSES": str(WEBS), "ALLOW_PRIVATE_ENDPOINTS": "1"}
READING, WRITING = "fake_list", "fake_write"


@dataclass
class Stage:
    """The servers and rows of a run. `keys` are agent keys; the last ones are for single purposes (`spare`)."""

    deployment: Deployment
    redis: RedisServer
    webs: list[Web]
    keys: list[str]
    _spare: Iterator[dict[str, str]] = field(repr=False)

    def spare(self) -> dict[str, str]:
        """A service client that nobody has called with: `agent_key` and `client_id`."""
        return next(self._spare)

    @contextlib.contextmanager
    def operator(self, **environment: str) -> Iterator[Operator]:
        """A process with a shell's rights."""
        with self.deployment.operator(**environment) as operator:
            yield operator

    def statements(self) -> int:
        """Transactions of the database so far: each statement outside of one counts as one."""
        name = self.deployment.database.name
        sql = f"SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{name}'"
        return int(self.deployment.database.select(sql)[0][0])

    def agent_keys(self) -> int:
        """The number of agent keys."""
        return int(self.deployment.database.select("SELECT count(*) FROM oauth_ext_agentkey")[0][0])

    def pending_bumps(self) -> int:
        """The number of bumps in the outbox."""
        return int(self.deployment.database.select("SELECT count(*) FROM coordination_pendingbump")[0][0])


@contextlib.contextmanager
def stage(
    template: Template, folder: Path, redis: RedisServer, vendor_url: str, service_clients: int
) -> Iterator[Stage]:
    """Everything runs; nothing has been called."""
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(deployment(template, folder, variables=VARIABLES))
        made.environment.update(REDIS_URL=redis.url, DJANGO_SETTINGS_MODULE="gateway.settings", WEB_PROCESSES="1")
        keys: list[dict[str, str]] = []
        with made.operator() as operator:
            operator.run("load_catalog", text=keyless_catalog("fake", vendor_url))
            while len(keys) < service_clients + SPARE:
                org_id = operator.run("create_organization", name=f"Org{len(keys)}")
                operator.run("connect_vendor", org_id=org_id, vendor="fake", fields={})
                count = min(SERVICE_CLIENTS_OF_ORGANIZATION, service_clients + SPARE - len(keys))
                keys += operator.run("create_service_clients", org_id=org_id, count=count)
        webs = [stack.enter_context(_measured_web(made)) for _ in range(WEBS)]
        for web in webs:
            web.wait_until_ready()
        yield Stage(
            made, redis, webs, [key["agent_key"] for key in keys[:service_clients]], iter(keys[service_clients:])
        )


SPARE = 8


@contextlib.contextmanager
def _measured_web(made: Deployment) -> Iterator[Web]:
    port = free_port()
    options = read_options({"PORT": str(port), "VAR": str(made.folder), "DEMO": "0"}, ROOT)
    command = [part.replace("gateway.asgi:", "tests.faults.measured_app:") for part in web_command(options)]
    with made._started("web", command, {}) as (process, log_path):
        yield Web(process, log_path, f"http://127.0.0.1:{port}")


@dataclass
class Caller:
    """Calls over connections of its own, with their answers and the time of the slowest."""

    session: aiohttp.ClientSession
    statuses: Counter[int] = field(default_factory=Counter)
    slowest_s: float = 0.0

    async def call(self, web: Web, key: str, tool: str = READING) -> int:
        """The status of one call. It is not counted."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
        async with self.session.post(web.mcp_url, json=body, headers=agent.bearer(key)) as answer:
            await answer.read()
            return answer.status

    async def figures(self, web: Web) -> dict[str, float]:
        """The server's figures since the last question."""
        async with self.session.get(web.origin + FIGURES_PATH) as answer:
            found: dict[str, float] = await answer.json()
            return found

    async def load(self, web: Web, keys: Sequence[str], calls_per_s: float, ended: asyncio.Event) -> None:
        """Calls at a steady pace, whatever the answers take, each key in its turn, every fifth a writing one."""
        began_s, number, running = time.monotonic(), 0, set[asyncio.Task[None]]()
        while not ended.is_set():
            pause_s = began_s + number / calls_per_s - time.monotonic()
            await asyncio.sleep(max(0.0, pause_s))
            tool = WRITING if number % 5 == 4 else READING
            task = asyncio.ensure_future(self._counted(web, keys[number % len(keys)], tool))
            running.add(task)
            task.add_done_callback(running.discard)
            number += 1
        if running:
            await asyncio.wait(running)

    async def _counted(self, web: Web, key: str, tool: str) -> None:
        began_s = time.monotonic()
        self.statuses[await self.call(web, key, tool)] += 1
        self.slowest_s = max(self.slowest_s, time.monotonic() - began_s)


@contextlib.asynccontextmanager
async def caller() -> AsyncIterator[Caller]:
    """A caller with enough connections for the load."""
    options: dict[str, Any] = {"timeout": aiohttp.ClientTimeout(total=30), "trust_env": False}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=200), **options) as session:
        yield Caller(session)
