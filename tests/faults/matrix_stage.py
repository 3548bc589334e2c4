"""Servers of a run's own for the fault matrix: PostgreSQL, Redis, web, worker and schedule, two vendors, and relays.

Every client notes what it asked and was answered in the history.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from gateway.container.entrypoint import role_command
from tests.e2e import agent
from tests.e2e.agent import ServiceClient
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Deployment, Operator, Web, deployment
from tests.e2e.shared_gateway import keyless_catalog
from tests.factories.live_vendor import vendor_in_thread
from tests.fakes.hostile_vendor import HostileVendor, hostile_vendor
from tests.fakes.postgresql_server import PostgreSQLServer, postgresql_server
from tests.fakes.redis_server import RedisServer, redis_server
from tests.fakes.silent_relay import Relay, relay_to
from tests.fakes.vendor import FakeVendor
from tests.faults.history import Ending, History, LoggedCall
from tests.faults.shipping_stage import Process
from tests.vendors.processes import PLAIN_HTTP, free_port

ANSWER_DEADLINE_S = 40.0
SETTLE_S = 30.0
HOSTILE_TIMEOUT_S = 2
PROBE_INTERVAL_S = 1
READING, WRITING = "fake_list", "fake_write"
# The same vendor behind a short deadline, and behind one that none of its answers reaches.
SLUGS = ("fake", "hostile", "patient")


@dataclass(frozen=True)
class Answer:
    """`reason` is why a call failed: of a JSON-RPC error, or the sentence of a command."""

    status: int
    ending: Ending
    reason: str = ""
    headers: httpx.Headers = field(default_factory=httpx.Headers)
    body: Any = None
    took_s: float = 0.0


@dataclass
class Stage:
    """Everything runs. `web` is replaced by `restart_web`."""

    made: Deployment
    postgresql: PostgreSQLServer
    redis: RedisServer
    database_relay: Relay
    redis_relay: Relay
    queue_relay: Relay
    vendor: FakeVendor
    hostile: HostileVendor
    operator: Operator
    client: ServiceClient
    token: str
    cookie: str
    worker: Process
    beat: Process
    history: History = field(default_factory=History)
    web: Web = field(init=False)
    _webs: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def start_web(self, **environment: str) -> Web:
        """One more, at a port of its own."""
        return self._webs.enter_context(self.made.web(port=free_port(), **environment))

    def restart_web(self, **environment: str) -> None:
        """The web server anew; the last one has ended."""
        self._webs.close()
        self.web = self.start_web(**environment)

    def close(self) -> None:
        self._webs.close()

    def http(self, web: Web | None = None) -> httpx.Client:
        """A client of a web server with its own connections."""
        return httpx.Client(base_url=(web or self.web).origin, **PLAIN_HTTP, timeout=ANSWER_DEADLINE_S)

    def call(
        self,
        tool: str = READING,
        *,
        vendor: str = "fake",
        route: str = "mcp",
        client: httpx.Client | None = None,
        mark: str = "",
    ) -> Answer:
        """One call with an id of its own, noted in the history. Calls of one `mark` are alike.

        Raises: httpx.TransportError.
        """
        request_id = f"matrix-{next(self._numbers)}"
        exposed = tool if vendor == "fake" else f"{vendor}_{tool}"
        arguments = {"mark": mark or request_id}
        if route == "mcp":
            path, bearer = "/v1/mcp", self.client.agent_key
            params = {"name": exposed, "arguments": arguments}
            body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        else:
            path, bearer = f"/v1/{vendor}/cli", self.token
            body = {"tool": exposed, "args": arguments}
        headers = {**agent.bearer(bearer), "X-Request-Id": request_id}
        self.history.asks(request_id)
        with contextlib.ExitStack() as stack:
            http = client or stack.enter_context(self.http())
            began_s = time.monotonic()
            answer = http.post(path, json=body, headers=headers)
        made = _answer_of(answer, time.monotonic() - began_s)
        self.history.answers(request_id, made.ending)
        return made

    def both(self, tool: str = READING, vendor: str = "fake") -> tuple[Answer, Answer]:
        """The answers of the command and of the unified endpoint."""
        return self.call(tool, vendor=vendor, route="cli"), self.call(tool, vendor=vendor)

    @contextlib.contextmanager
    def load(self, threads: int = 6) -> Iterator[Counter[str]]:
        """Callers without a pause inside the block, half of whose calls write. Counts endings and the statuses."""
        ended, found = threading.Event(), Counter[str]()

        def run(number: int) -> None:
            client = self.http()
            for tool in itertools.cycle((READING, WRITING)):
                if ended.is_set():
                    break
                try:
                    answer = self.call(tool, route="mcp" if number % 2 else "cli", client=client)
                    found[str(answer.status)] += 1
                except httpx.TransportError:
                    found["no answer"] += 1
                    client.close()
                    client = self.http()
                    time.sleep(0.05)
            client.close()

        running = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(threads)]
        for thread in running:
            thread.start()
        try:
            yield found
        finally:
            ended.set()
            for thread in running:
                thread.join(ANSWER_DEADLINE_S + 10)
            assert not any(thread.is_alive() for thread in running), "a call has no end"

    def get(self, path: str, **headers: str) -> httpx.Response:
        """A page or a route of the API, as the owner."""
        with self.http() as client:
            return client.get(path, headers={"Cookie": self.cookie, **headers})

    def serves_within(self, deadline_s: float) -> float:
        """Seconds until both tools are answered 200 again, twice in a row. Raises: AssertionError past the bound."""
        began_s, good = time.monotonic(), 0
        while good < 2:
            with contextlib.suppress(httpx.TransportError):
                answers = [self.call(READING), self.call(WRITING)]
                good = good + 1 if all(each.ending is Ending.SUCCESS for each in answers) else 0
            waited_s = time.monotonic() - began_s
            assert waited_s < deadline_s, f"not served again within {deadline_s:g} s"
            time.sleep(0.05)
        return time.monotonic() - began_s

    def logged(self) -> list[LoggedCall]:
        """Rows of our calls."""
        found = self.made.database.select(
            "SELECT request_id, status, error_code FROM audit_requestauditentry WHERE request_id LIKE 'matrix-%'"
        )
        return [LoggedCall(*map(str, row)) for row in found]

    def row_of(self, status: str) -> LoggedCall | None:
        """A row with this status, if there is one."""
        return next((row for row in self.logged() if row.status == status), None)

    def health(self) -> dict[str, str]:
        """The status of each vendor as an organization sees it."""
        answer = self.get(f"/api/orgs/{self.client.org_id}/vendor-health")
        assert answer.status_code == 200, answer.text
        return {each["vendorSlug"]: each["status"] for each in answer.json()["vendors"]}


def _answer_of(answer: httpx.Response, took_s: float) -> Answer:
    body = answer.json()
    error = body.get("error")
    if answer.status_code == 200 and error is None and not body.get("result", {}).get("isError"):
        ending, reason = Ending.SUCCESS, ""
    elif answer.status_code == 503:
        ending, reason = Ending.UNAVAILABLE, str(error)
    elif answer.status_code in {401, 403, 429}:
        ending, reason = Ending.DENIED, str(error)
    else:
        data = error.get("data") or {} if isinstance(error, dict) else {}
        ending, reason = Ending.VENDOR_ERROR, str(data.get("reason") or error)
    return Answer(answer.status_code, ending, reason, answer.headers, body, took_s)


def until(condition: Callable[[], bool], deadline_s: float, what: str) -> float:
    """Seconds until it has become true. Raises: AssertionError past the deadline."""
    began_s = time.monotonic()
    while not condition():
        assert time.monotonic() - began_s < deadline_s, f"not within {deadline_s:g} s: {what}"
        time.sleep(0.05)
    return time.monotonic() - began_s


@contextlib.contextmanager
def _hostile_in_thread() -> Iterator[HostileVendor]:
    started, found, loop, stop = threading.Event(), list[HostileVendor](), asyncio.new_event_loop(), asyncio.Event()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:  # it cancels what is left, and closes the loop
            runner.run(serve())

    async def serve() -> None:
        async with hostile_vendor() as vendor:
            found.append(vendor)
            started.set()
            await stop.wait()

    thread = threading.Thread(target=run, name="hostile vendor", daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


def _relayed(url: str, port: int) -> str:
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0]
    return parts._replace(netloc=f"{login}@127.0.0.1:{port}").geturl()


VARIABLES = {
    "TOOL_CALLS_PER_HOUR": "1000000",
    "REQUESTS_PER_MINUTE": "1000000",
    "ALLOW_PRIVATE_ENDPOINTS": "1",
    "HEALTH_PROBE_INTERVAL": str(PROBE_INTERVAL_S),
    "OIDC_OP_DISCOVERY_URL": "http://127.0.0.1:9/.well-known/openid-configuration",
    "WEB_PROCESSES": "1",
}


@contextlib.contextmanager
def stage(folder: Path, programs: Path) -> Iterator[Stage]:
    """All servers answer, and every vendor was called once."""
    with contextlib.ExitStack() as stack:
        postgresql = stack.enter_context(postgresql_server(programs))
        redis = stack.enter_context(redis_server())
        database_relay = stack.enter_context(relay_to("127.0.0.1", postgresql.port))
        redis_relay = stack.enter_context(relay_to("127.0.0.1", redis.port))
        queue_relay = stack.enter_context(relay_to("127.0.0.1", redis.port))
        vendor = stack.enter_context(vendor_in_thread(api_key=None, delay_s=0.01))
        hostile = stack.enter_context(_hostile_in_thread())
        template = Template(folder, postgresql.url)
        made = stack.enter_context(deployment(template, folder / "var", variables=VARIABLES))
        direct = dict(made.environment, DJANGO_SETTINGS_MODULE="gateway.settings", REDIS_URL=redis.url)
        made.environment.update(direct)
        operator = stack.enter_context(made.operator())
        hostile_entry = keyless_catalog("hostile", hostile.url)
        short = hostile_entry.replace("timeout_seconds = 20", f"timeout_seconds = {HOSTILE_TIMEOUT_S}")
        patient = keyless_catalog("patient", hostile.url)
        operator.run("load_catalog", text=keyless_catalog("fake", vendor.url) + short + patient)
        org_id = operator.run("create_organization", name="Matrix")
        for slug in SLUGS:
            operator.run("connect_vendor", org_id=org_id, vendor=slug, fields={})
        made_client = operator.run("create_service_client", org_id=org_id, name="matrix bot")
        client = ServiceClient(org_id=org_id, **made_client)
        cookie = f"gateway_session={operator.run('sign_in_owner', org_id=org_id)}"
        made.environment["DATABASE_URL"] = _relayed(made.database.url, database_relay.port)
        made.environment["REDIS_URL"] = redis.url_through(redis_relay.port)
        queued = {**direct, "REDIS_URL": redis.url_through(queue_relay.port)}
        worker = Process(role_command("worker", ["--concurrency", "1"], queued), queued, folder / "worker.log")
        schedule = ["--schedule", str(folder / "schedule")]
        beat = Process(role_command("beat", schedule, queued), queued, folder / "beat.log")
        on = Stage(
            made, postgresql, redis, database_relay, redis_relay, queue_relay, vendor, hostile, operator, client, "",
            cookie, worker, beat,
        )  # fmt: skip
        for process in (worker, beat):
            process.start()
            stack.callback(process.end)
        on.restart_web()
        stack.callback(on.close)
        with on.http() as http:
            on.token = agent.access_token(http, client)
        for slug in SLUGS:
            assert all(each.ending is Ending.SUCCESS for each in on.both(vendor=slug))
        yield on
