"""Many callers at once at two web servers: whose answer is whose, who pays for a read, where the hourly limit is."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.e2e import agent
from tests.e2e.agent import ServiceClient
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Operator, Web, deployment
from tests.e2e.shared_gateway import Gateway, keyless_catalog
from tests.factories.live_vendor import vendor_in_thread
from tests.fakes.vendor import FakeVendor
from tests.vendors.processes import free_port

pytest_plugins = ("tests.e2e.fixtures",)

SLUG = "fake"
ORGANIZATIONS, CALLERS_OF_EACH = 10, 20
READERS = 1_000
LIMIT = 5_000
AT_ONCE = 64
# At the unified endpoint results are kept only for tools that an operator names.
TOOL_CONFIG = json.dumps({SLUG: {"tools": {"fake_list": {"readOnly": True, "ttl": 3_600}}}})


@dataclass
class CrowdVendor(FakeVendor):
    """Answers out of order, in either kind of reply. `fake_list` reads what `fake_write` wrote."""

    slowest_s: float = 0.0
    written: int = 0
    _random: random.Random = field(default_factory=lambda: random.Random(7))

    async def _answer(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        await asyncio.sleep(self._random.random() * self.slowest_s)
        return await super()._answer(request, body)

    async def _stream(self, request: web.Request, answer: dict[str, Any], params: dict[str, Any]) -> web.StreamResponse:
        if self._random.random() < 0.5:
            return web.json_response(answer)
        return await super()._stream(request, answer, params)

    def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["name"] == "fake_write":
            self.written = params["arguments"].get("number", self.written)
        answer = super()._call(params)
        answer["result"]["structuredContent"] = {**params.get("arguments", {}), "written": self.written}
        return answer


@dataclass
class Crowd:
    """Two web servers on one deployment, the vendor behind them, and an operator who makes service clients."""

    gateway: Gateway
    webs: Sequence[Web]
    vendor: CrowdVendor

    def service_client(self) -> ServiceClient:
        """Of a new organization that is connected to the vendor."""
        return self.gateway.new_service_client({SLUG: {}})

    @property
    def origins(self) -> list[str]:
        """Of both web servers."""
        return [web.origin for web in self.webs]


@pytest.fixture(scope="module")
def crowd(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    """With the limits of production."""
    variables = {"VENDOR_TOOL_CONFIG": TOOL_CONFIG, "WEB_PROCESSES": "2"}
    with contextlib.ExitStack() as stack:
        vendor = stack.enter_context(vendor_in_thread(kind=CrowdVendor, api_key=None, reply="sse"))
        assert isinstance(vendor, CrowdVendor)
        folder = tmp_path_factory.mktemp("crowd") / "var"
        made = stack.enter_context(deployment(template, folder, variables=variables))
        operator: Operator = stack.enter_context(made.operator())
        operator.run("load_catalog", text=keyless_catalog(SLUG, vendor.url))
        webs = [stack.enter_context(made.web()), stack.enter_context(made.web(port=free_port()))]
        yield Crowd(Gateway(made, webs[0], operator, (SLUG,)), webs, vendor)


@dataclass(frozen=True)
class Answer:
    """One HTTP answer."""

    status: int
    headers: dict[str, str]
    body: dict[str, Any]


class Caller:
    """One caller's way to send; everybody's JSON-RPC id is the same."""

    def __init__(self, http: aiohttp.ClientSession, key: str, token: str) -> None:
        self.http, self.key, self.token = http, key, token

    async def mcp(self, origin: str, tool: str, arguments: dict[str, Any], path: str = "/v1/mcp") -> Answer:
        """One tools/call."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        bearer = self.key if path == "/v1/mcp" else self.token
        return await self._post(f"{origin}{path}", body, agent.bearer(bearer))

    async def cli(self, origin: str, tool: str, arguments: dict[str, Any]) -> Answer:
        """One CLI call."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return await self._post(f"{origin}/v1/{SLUG}/cli", {"tool": tool, "args": arguments}, headers)

    async def _post(self, url: str, body: dict[str, Any], headers: dict[str, str]) -> Answer:
        async with self.http.post(url, json=body, headers=headers) as answer:
            lower = {name.lower(): value for name, value in answer.headers.items()}
            return Answer(answer.status, lower, await answer.json())


@contextlib.asynccontextmanager
async def callers(crowd: Crowd, service_clients: Sequence[ServiceClient], at_once: int) -> Any:
    """A caller for each service client, over as many connections as are used at once."""
    tokens = []
    with crowd.webs[0].client() as client:
        for service_client in service_clients:
            tokens.append(agent.access_token(client, service_client))
    connections = aiohttp.TCPConnector(limit=at_once)
    patience = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(connector=connections, timeout=patience, trust_env=False) as http:
        yield [
            Caller(http, service_client.agent_key, token)
            for service_client, token in zip(service_clients, tokens, strict=True)
        ]


async def test_no_answer_reaches_another_caller(crowd: Crowd) -> None:
    crowd.vendor.slowest_s = 0.3
    service_clients = [crowd.service_client() for _ in range(ORGANIZATIONS)]
    async with callers(crowd, service_clients, ORGANIZATIONS * CALLERS_OF_EACH) as made:
        nonces = [f"nonce-{number}" for number in range(ORGANIZATIONS * CALLERS_OF_EACH)]
        answers = await asyncio.gather(
            *(
                made[number % ORGANIZATIONS].mcp(crowd.origins[number % 2], "fake_list", {"nonce": nonce})
                for number, nonce in enumerate(nonces)
            )
        )
    crowd.vendor.slowest_s = 0.0
    for nonce, answer in zip(nonces, answers, strict=True):
        assert answer.status == 200, answer
        assert answer.body["id"] == 1
        assert answer.body["result"]["structuredContent"]["nonce"] == nonce
        assert json.loads(answer.body["result"]["content"][0]["text"]) == {"nonce": nonce}


async def test_a_thousand_equal_reads_cost_the_vendor_one_call(crowd: Crowd) -> None:
    service_client = crowd.service_client()
    async with callers(crowd, [service_client], READERS) as (caller,):
        before = crowd.vendor.seen["tools/call"]
        answers = await asyncio.gather(
            *(caller.cli(crowd.origins[0], "list", {"site": "hq"}) for _ in range(READERS // 2)),
            *(caller.mcp(crowd.origins[0], "fake_list", {"site": "hq"}) for _ in range(READERS // 2)),
        )
    assert {answer.status for answer in answers} == {200}
    assert crowd.vendor.seen["tools/call"] == before + 1


async def test_a_read_in_another_process_sees_what_was_written(crowd: Crowd) -> None:
    service_client = crowd.service_client()
    async with callers(crowd, [service_client], 4) as (caller,):
        for number in range(1, 31):
            here, there = random.Random(number).sample(crowd.origins, 2)
            await asyncio.gather(*(caller.mcp(origin, "fake_list", {}) for origin in crowd.origins))  # both keep it
            await caller.mcp(here, "fake_write", {"number": number})
            found = await caller.mcp(there, "fake_list", {})
            assert found.body["result"]["structuredContent"]["written"] == number


async def test_exactly_five_thousand_calls_pass_over_all_routes_and_processes(crowd: Crowd) -> None:
    service_client = crowd.service_client()
    async with callers(crowd, [service_client], AT_ONCE) as (caller,):

        async def one(number: int) -> Answer:
            origin = crowd.origins[number % 2]
            if number % 3 == 0:
                return await caller.cli(origin, "list", {})
            path = "/v1/mcp" if number % 3 == 1 else f"/v1/{SLUG}/mcp"
            return await caller.mcp(origin, "fake_list", {}, path)

        numbers = iter(range(LIMIT + 1))

        async def worker() -> list[Answer]:
            return [await one(number) for number in numbers]

        answers = [answer for part in await asyncio.gather(*(worker() for _ in range(AT_ONCE))) for answer in part]
        late = [await one(number) for number in range(6)]
    assert Counter(answer.status for answer in answers) == {200: LIMIT, 429: 1}
    assert [answer.status for answer in late] == [429] * 6
    passed = [answer for answer in answers if answer.status == 200]
    left = sorted(int(answer.headers["x-ratelimit-remaining"]) for answer in passed)
    assert left == list(range(LIMIT)), "each call that passed took one place, and no two the same"
    for answer in passed:
        check_limit_headers(answer, "tools", LIMIT, 3_600)
    for answer in (*late, *(each for each in answers if each.status == 429)):
        check_limit_headers(answer, "tools", LIMIT, 3_600)
        assert answer.headers["x-ratelimit-remaining"] == "0"
        assert answer.headers["retry-after"] == answer.headers["x-ratelimit-reset"]
        assert 0 < int(answer.headers["retry-after"]) <= 3_660, "the window, and a slice of it"
    check_rows(crowd, service_client)


def check_limit_headers(answer: Answer, name: str, limit: int, window_s: int) -> None:
    """The draft's two fields and the older three say the same."""
    assert answer.headers["ratelimit-policy"] == f'"{name}";q={limit};w={window_s}'
    match = re.fullmatch(rf'"{name}";r=(\d+);t=(\d+)', answer.headers["ratelimit"])
    assert match is not None
    older = [answer.headers[f"x-ratelimit-{each}"] for each in ("limit", "remaining", "reset")]
    assert older == [str(limit), match[1], match[2]]


def check_rows(crowd: Crowd, service_client: ServiceClient) -> None:
    """Every call that passed has its row, under the route it took; refusals have few."""
    rows = crowd.gateway.deployment.database.select(
        "SELECT source, status, error_code FROM audit_requestauditentry"
        f" WHERE user_id = '{service_client.subject}'"  # an identifier of ours
    )
    counted = Counter(rows)
    cli = len(range(0, LIMIT + 1, 3))
    refused = sum(count for (_, status, code), count in counted.items() if (status, code) == ("denied", "rate_limited"))
    assert counted["mcp", "success", ""] + counted["cli", "success", ""] == LIMIT
    assert counted["cli", "success", ""] in (cli, cli - 1)
    assert 1 <= refused <= 2, "one a minute, over all processes"
    assert len(rows) == LIMIT + refused
