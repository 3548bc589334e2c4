"""A real web server under attack, and an onlooker at another address who uses it meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import psutil

from tests.e2e import agent
from tests.e2e.agent import ServiceClient
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Deployment, Web, deployment

ONLOOKER = "127.0.0.2"  # the attack comes from 127.0.0.1, and limits go by address
PAUSE_S = 0.01
ANSWER_DEADLINE_S = 10.0
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@dataclass(frozen=True)
class Attacked:
    """The server, and two service clients: the attacker's, and one of another organization."""

    web: Web
    attacker: ServiceClient
    victim: ServiceClient

    @property
    def port(self) -> int:
        """Its address."""
        return int(self.web.origin.rpartition(":")[2])

    def memory_bytes(self) -> int:
        """The resident memory of its process."""
        return int(psutil.Process(self.web.process.pid).memory_info().rss)


@contextlib.contextmanager
def attacked(made: Deployment) -> Iterator[Attacked]:
    """A web server of this deployment with both service clients."""
    with made.operator() as operator, made.web(WEB_PROCESSES="1") as web:
        service_clients = []
        for name in ("Attacker", "Victim"):
            org_id = operator.run("create_organization", name=name)
            secrets = operator.run("create_service_client", org_id=org_id, name=f"{name} bot")
            service_clients.append(ServiceClient(org_id=org_id, **secrets))
        yield Attacked(web, *service_clients)


@contextlib.contextmanager
def gateway_of_its_own() -> Iterator[Attacked]:
    """For a report: everything in a folder that is gone at the end."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        template = Template(folder)
        stack.callback(template.remove)
        many = {"REQUESTS_PER_MINUTE": "1000000", "LARGE_BODY_MIB_PER_MINUTE": "100000"}
        yield stack.enter_context(attacked(stack.enter_context(deployment(template, folder / "var", variables=many))))


@dataclass
class Seen:
    """The onlooker's figures: milliseconds of each /health, statuses of each call, bytes of the process at most."""

    health_ms: list[float] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    call_ms: list[float] = field(default_factory=list)
    peak_bytes: int = 0
    lost: int = 0  # requests that broke off or were not answered in time

    @property
    def median_ms(self) -> float:
        """Of /health."""
        return statistics.median(self.health_ms or [0.0])

    @property
    def p99_ms(self) -> float:
        """Of /health."""
        return sorted(self.health_ms or [0.0])[max(0, int(len(self.health_ms) * 0.99) - 1)]

    def line(self) -> str:
        """For a report."""
        good, most_ms = sum(status == 200 for status in self.statuses), max(self.health_ms, default=0.0)
        return (
            f"/health p50 {self.median_ms:.0f} ms, p99 {self.p99_ms:.0f} ms, max {most_ms:.0f} ms"
            f" of {len(self.health_ms)}; calls answered 200: {good} of {len(self.statuses)}"
            f" (slowest {max(self.call_ms, default=0):.0f} ms); unanswered: {self.lost}"
        )


@contextlib.asynccontextmanager
async def onlooker(target: Attacked) -> AsyncIterator[Seen]:
    """Asks for /health and makes a call, again and again, on new connections while the block runs."""
    seen = Seen(peak_bytes=target.memory_bytes())
    connector = aiohttp.TCPConnector(local_addr=(ONLOOKER, 0), force_close=True)
    timeout = aiohttp.ClientTimeout(total=ANSWER_DEADLINE_S)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        watching = asyncio.ensure_future(_watch(target, session, seen))
        try:
            yield seen
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def _watch(target: Attacked, session: aiohttp.ClientSession, seen: Seen) -> None:
    while True:
        try:
            began_s = time.perf_counter()
            async with session.get(f"{target.web.origin}/health") as answer:
                await answer.read()
            seen.health_ms.append((time.perf_counter() - began_s) * 1000)
            began_s = time.perf_counter()
            async with session.post(
                target.web.mcp_url, json=PING, headers=agent.bearer(target.victim.agent_key)
            ) as answer:
                seen.statuses.append(answer.status)
                await answer.read()
            seen.call_ms.append((time.perf_counter() - began_s) * 1000)
        except (TimeoutError, aiohttp.ClientError):
            seen.lost += 1
        seen.peak_bytes = max(seen.peak_bytes, target.memory_bytes())
        await asyncio.sleep(PAUSE_S)


def head(bearer: str | None, length: int) -> bytes:
    """The head of a POST to the unified endpoint."""
    lines = ["POST /v1/mcp HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", f"Content-Length: {length}"]
    if bearer is not None:
        lines.append(f"Authorization: Bearer {bearer}")
    return "\r\n".join([*lines, "", ""]).encode()


def absurd(size_bytes: int) -> bytes:
    """A ping of so many bytes, nearly all of them empty arrays."""
    frame = json.dumps({**PING, "params": {"pad": ["*"]}}).encode()
    return frame.replace(b'"*"', b"[]," * ((size_bytes - len(frame)) // 3) + b"1")
