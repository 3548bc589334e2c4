"""A gateway that is killed in the middle of its work, and one whose database goes away: no answered call lacks its row.

The vendor runs in this process, so it is known which calls have reached it; each call says its request id as argument.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import aiohttp
import pytest

from tests.e2e import agent
from tests.e2e.agent import ServiceClient
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Deployment, Operator, Web, deployment, wait_for
from tests.e2e.shared_gateway import keyless_catalog
from tests.fakes.vendor import FakeVendor, running_vendor

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")

CONNECTIONS = 32
LOAD_S = 1.5
ANSWER_DEADLINE_S = 12.0
RECOVERY_S = 15.0
READING, WRITING = "fake_list", "fake_write"


@pytest.fixture(scope="module")
def made(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment of this module's own."""
    with deployment(template, tmp_path_factory.mktemp("durability") / "var") as made:
        yield made


@pytest.fixture(scope="module")
def operator(made: Deployment) -> Iterator[Operator]:
    """Makes organizations."""
    with made.operator() as operator:
        yield operator


@pytest.fixture
async def vendor() -> AsyncIterator[FakeVendor]:
    """A vendor that takes its time, so that calls are under way at any moment."""
    async with running_vendor(api_key=None, delay_s=0.02) as vendor:
        yield vendor


@pytest.fixture
def service_client(operator: Operator, vendor: FakeVendor) -> ServiceClient:
    """A service client of a new organization that uses the vendor."""
    operator.run("load_catalog", text=keyless_catalog("fake", vendor.url))
    org_id = operator.run("create_organization", name="Durable")
    operator.run("connect_vendor", org_id=org_id, vendor="fake", fields={})
    return ServiceClient(org_id=org_id, **operator.run("create_service_client", org_id=org_id, name="durable bot"))


@dataclass
class Load:
    """Calls over many connections, half of them to a writing tool, with their answers."""

    web: Web
    token: str
    asked: dict[str, str] = field(default_factory=dict)  # request id to tool
    answered: dict[str, int] = field(default_factory=dict)  # request id to status
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _run: str = field(default_factory=lambda: f"{time.monotonic_ns():x}")

    async def call(self, session: aiohttp.ClientSession, tool: str) -> aiohttp.ClientResponse:
        """One call that says its id; its answer's status is noted once all of it has arrived."""
        request_id = f"{self._run}-{next(self._numbers)}"
        self.asked[request_id] = tool
        params = {"name": tool, "arguments": {"mark": request_id}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {**agent.bearer(self.token), "X-Request-Id": request_id}
        async with session.post(self.web.mcp_url, json=body, headers=headers) as answer:
            text = await answer.text()
            assert answer.headers["X-Request-Id"] == request_id
            if answer.status == 200:
                assert request_id in text, text
            self.answered[request_id] = answer.status
            return answer

    async def run(self) -> None:
        """Calls without a pause until the server is gone."""
        async with one_connection() as session:
            with contextlib.suppress(aiohttp.ClientError):
                for tool in itertools.cycle((READING, WRITING)):
                    await self.call(session, tool)

    async def until_killed(self) -> None:
        """Load on every connection, for longer on a slow machine, and the server's end in the middle of it."""
        workers = [asyncio.ensure_future(self.run()) for _ in range(CONNECTIONS)]
        await asyncio.sleep(LOAD_S)
        async with asyncio.timeout(30):
            while len(self.answered) < 5 * CONNECTIONS and not all(each.done() for each in workers):
                await asyncio.sleep(0.05)
        self.web.kill()
        await asyncio.gather(*workers)


@contextlib.asynccontextmanager
async def one_connection() -> AsyncIterator[aiohttp.ClientSession]:
    """A client that never sends twice what it cannot know to have failed."""
    timeout = aiohttp.ClientTimeout(total=30)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=1)) as session:
        yield session


@dataclass(frozen=True)
class Row:
    """The row of one call in the request log."""

    request_id: str
    tool: str
    status: str
    error_code: str


def rows_of(made: Deployment, service_client: ServiceClient) -> list[Row]:
    """The service client's rows, once whatever the server had begun at the database has ended."""
    if not made.database.is_sqlite:
        sessions = f"SELECT 1 FROM pg_stat_activity WHERE datname = '{made.database.name}' AND state = 'active'"
        wait_for(lambda: len(made.database.select(sessions)) == 1)  # the one that asks
    columns = "request_id, tool, status, error_code"
    found = made.database.select(
        f"SELECT {columns} FROM audit_requestauditentry WHERE user_id = '{service_client.subject}' ORDER BY id"
    )
    return [Row(*map(str, row)) for row in found]


def reached(vendor: FakeVendor) -> Counter[str]:
    """How often each call has reached the vendor, by request id."""
    calls = [body["params"] for body in vendor.bodies if body.get("method") == "tools/call"]
    return Counter(call["arguments"]["mark"] for call in calls)


async def test_a_kill_under_load(made: Deployment, service_client: ServiceClient, vendor: FakeVendor) -> None:
    loads = []
    for _ in range(2):  # the second server starts on what the first has left
        with made.web() as web:
            load = Load(web, service_client.agent_key)
            await load.until_killed()
            loads.append(load)
    asked = {request_id: tool for load in loads for request_id, tool in load.asked.items()}
    answered = {request_id: status for load in loads for request_id, status in load.answered.items()}
    assert len(answered) > 2 * CONNECTIONS, "hardly any load"
    assert set(answered.values()) == {200}
    cut_off = set(asked) - set(answered)
    assert len(cut_off) == len(loads) * CONNECTIONS, "every connection had a call under way at each kill"

    rows = rows_of(made, service_client)
    by_id = {row.request_id: row for row in rows}
    assert len(by_id) == len(rows), "a call has two rows"
    assert set(by_id) <= set(asked)
    assert set(answered) <= set(by_id), "an answered call has no row"
    assert {by_id[request_id].status for request_id in answered} == {"success"}
    assert all(row.tool == asked[row.request_id] for row in rows)

    arrived = reached(vendor)
    assert set(arrived.values()) == {1}, "the gateway has sent a call twice"
    written = {request_id for request_id in arrived if asked[request_id] == WRITING}
    assert written <= set(by_id), "a writing call reached the vendor without a row that says so"
    unknown = {row.request_id for row in rows if row.status == "unknown"}
    assert unknown, "no writing call was under way"
    assert unknown <= {request_id for request_id in cut_off if asked[request_id] == WRITING}
    assert {row.status for row in rows} == {"success", "unknown"}

    with made.web() as web:
        afterwards = Load(web, service_client.agent_key)
        async with one_connection() as session:
            assert [(await afterwards.call(session, tool)).status for tool in (READING, WRITING)] == [200, 200]
    later = rows_of(made, service_client)
    assert later[: len(rows)] == rows, "a new start has changed what is known of old calls"
    assert [(row.tool, row.status) for row in later[len(rows) :]] == [(READING, "success"), (WRITING, "success")]


async def test_the_database_goes_away_and_comes_back(
    made: Deployment, operator: Operator, service_client: ServiceClient, vendor: FakeVendor
) -> None:
    strangers = [
        ServiceClient(
            org_id=service_client.org_id,
            **operator.run("create_service_client", org_id=service_client.org_id, name=name),
        )
        for name in ("asks meanwhile", "asks afterwards")
    ]
    with made.web() as web:
        known, meanwhile, afterwards = (Load(web, one.agent_key) for one in (service_client, *strangers))
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_DEADLINE_S)) as session:
            assert (await known.call(session, READING)).status == 200
            with made.database.out_of_reach():
                refused = await asyncio.gather(
                    *(known.call(session, tool) for tool in (READING, WRITING) * 8),
                    *(meanwhile.call(session, tool) for tool in (READING, WRITING)),
                )
                assert [answer.status for answer in refused] == [503] * len(refused)
                assert all(1 <= int(answer.headers["Retry-After"]) <= 60 for answer in refused)
                assert [tool for tool in tools_reached(vendor, known, meanwhile) if tool == WRITING] == []
                asked = reached(vendor).total()
                later = await asyncio.gather(*(known.call(session, tool) for tool in (READING, WRITING) * 8))
                assert [answer.status for answer in later] == [503] * len(later)
                assert reached(vendor).total() == asked, "a vendor was asked for what nobody may get"
                await others_meanwhile(made, session, web, service_client)
            came_back = time.monotonic()
            # A probe must find the database again, and the pool for whoever was not known.
            for load in (known, afterwards):
                while (await load.call(session, READING)).status != 200:
                    assert time.monotonic() - came_back < RECOVERY_S
            assert (await known.call(session, WRITING)).status == 200
            assert [(await load.call(session, WRITING)).status for load in (meanwhile, afterwards)] == [200, 200]
    for load, who in ((known, service_client), (meanwhile, strangers[0]), (afterwards, strangers[1])):
        rows = rows_of(made, who)
        assert len({row.request_id for row in rows}) == len(rows), "a call has two rows"
        finished = {row.request_id for row in rows if row.status == "success"}
        served = {request_id for request_id, status in load.answered.items() if status == 200}
        assert served
        assert served <= finished, "a call was answered without a row"
        assert {row.status for row in rows} <= {"success", "unknown"}


def tools_reached(vendor: FakeVendor, *loads: Load) -> list[str]:
    """The tools of those calls that have reached the vendor."""
    asked = {request_id: tool for load in loads for request_id, tool in load.asked.items()}
    return [asked[request_id] for request_id in reached(vendor)]


async def others_meanwhile(
    made: Deployment, session: aiohttp.ClientSession, web: Web, service_client: ServiceClient
) -> None:
    """While nobody can write, what needs no database works; on PostgreSQL, where nobody can read, the rest says so."""
    async with session.get(f"{web.origin}/health") as health:
        assert health.status == 200
    if made.database.is_sqlite:
        return
    cookies = {"Cookie": f"gateway_session={'s' * 32}"}
    form = {
        "grant_type": "client_credentials",
        "client_id": service_client.client_id,
        "client_secret": service_client.client_secret,
    }
    async with (
        session.get(f"{web.origin}/ready") as ready,
        session.get(f"{web.origin}/orgs/{service_client.org_id}", headers=cookies) as page,
        session.post(f"{web.origin}/oauth/token", data=form) as token,
    ):
        assert (ready.status, (await ready.json())["checks"]["database"]) == (503, "failed")
        assert [(answer.status, answer.headers["Retry-After"]) for answer in (page, token)] == [(503, "5")] * 2
