"""Two web servers on the same data: what one process changes, the other refuses on its very next call.

The changes are made by an operator's process. Both servers have answered the caller before, so both hold it in memory.
Four servers stand behind a proxy that sends each request to the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.e2e import agent
from tests.e2e.agent import ServiceClient
from tests.e2e.shared_gateway import Gateway, keyless_catalog
from tests.fakes.round_robin import RoundRobin, round_robin
from tests.vendors.processes import PLAIN_HTTP, free_port
from tests.vendors.servers import conformance_server

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")


@pytest.fixture(scope="module")
def clients(gateway: Gateway) -> Iterator[list[httpx.Client]]:
    """A client of the shared web server, and one of a second server beside it."""
    with contextlib.ExitStack() as stack:
        second = stack.enter_context(gateway.deployment.web(port=free_port()))
        yield [stack.enter_context(web.client()) for web in (gateway.web, second)]


class Caller:
    """A service client that both servers know: `key` and `token` worked at both a moment ago."""

    def __init__(self, clients: list[httpx.Client], service_client: ServiceClient) -> None:
        self.clients, self.service_client = clients, service_client
        self.key = service_client.agent_key
        self.token = agent.access_token(clients[0], service_client)
        for client in clients:
            agent.result(agent.call(client, self.key, "acme_whoami"))
            assert agent.cli(client, self.token, "acme", "whoami").status_code == 200

    def mcp(self, tool: str, key: str | None = None) -> list[httpx.Response]:
        """One call with the agent key at each server, the second server first."""
        return [agent.call(client, key or self.key, tool) for client in reversed(self.clients)]

    def cli(self, vendor: str, tool: str) -> list[httpx.Response]:
        """One CLI call with the JWT at each server, the second server first."""
        return [agent.cli(client, self.token, vendor, tool) for client in reversed(self.clients)]


@pytest.fixture
def new_caller(gateway: Gateway, clients: list[httpx.Client]) -> Callable[[], Caller]:
    """Makes callers."""
    return lambda: Caller(clients, gateway.new_service_client())


def test_a_rotated_agent_key(gateway: Gateway, new_caller: Callable[[], Caller]) -> None:
    caller = new_caller()
    new_key = gateway.operator.run("rotate_agent_key", client_id=caller.service_client.client_id)
    assert [answer.status_code for answer in caller.mcp("acme_whoami")] == [401, 401]
    for answer in caller.mcp("acme_whoami", new_key):
        agent.result(answer)
    assert [answer.status_code for answer in caller.cli("acme", "whoami")] == [200, 200], "tokens are no keys"


def test_an_agent_key_revoked_on_the_command_line(gateway: Gateway, new_caller: Callable[[], Caller]) -> None:
    caller, bystander = new_caller(), new_caller()
    said = gateway.deployment.manage("revoke_agent_key", caller.service_client.client_id)
    assert "no longer works" in said
    for answer in caller.mcp("acme_whoami"):
        assert answer.status_code == 401
        assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]
    for answer in bystander.mcp("acme_whoami"):
        agent.result(answer)


def test_an_answer_to_a_vendors_question_at_the_other_server(gateway: Gateway, clients: list[httpx.Client]) -> None:
    """The call waits at the first server, and the vendor gets the answer that came to the second."""
    with conformance_server() as vendor:
        gateway.operator.run("load_catalog", text=keyless_catalog("test", vendor.mcp_url))
        key = gateway.new_service_client({"test": {}}).agent_key
        first, second = clients
        sent = {"Authorization": f"Bearer {key}", "Accept": "application/json, text/event-stream"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}}
        begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        sent["Mcp-Session-Id"] = first.post("/v1/mcp", json=begin, headers=sent).headers["Mcp-Session-Id"]
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "test_elicitation"}}
        with first.stream("POST", "/v1/mcp", json=call, headers=sent) as stream:
            events = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: {"))
            asked = next(events)
            assert asked["method"] == "elicitation/create"
            said = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"username": "ada"}}}
            assert second.post("/v1/mcp", json=said, headers=sent).status_code == 202
            found = next(events)
    assert "ada" in found["result"]["content"][0]["text"]


def test_a_deleted_service_client(gateway: Gateway, new_caller: Callable[[], Caller]) -> None:
    caller = new_caller()
    gateway.operator.run("delete_service_client", client_id=caller.service_client.client_id)
    assert [answer.status_code for answer in caller.mcp("acme_whoami")] == [401, 401]
    assert [answer.status_code for answer in caller.cli("acme", "whoami")] == [401, 401]
    form = {
        "grant_type": "client_credentials",
        "client_id": caller.service_client.client_id,
        "client_secret": caller.service_client.client_secret,
    }
    for client in caller.clients:
        answer = client.post("/oauth/token", data=form)
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


def test_server_access_that_was_removed(gateway: Gateway, new_caller: Callable[[], Caller]) -> None:
    caller = new_caller()
    client_id = caller.service_client.client_id
    gateway.operator.run("restrict_to_vendors", client_id=client_id, vendors=["acme", "time"])
    for answer in caller.mcp("acme_whoami"):
        agent.result(answer)
    gateway.operator.run("restrict_to_vendors", client_id=client_id, vendors=["time"])
    for answer in caller.mcp("acme_whoami"):
        assert answer.json()["result"]["isError"] is True
        assert "has no access to Acme RMM" in answer.json()["result"]["content"][0]["text"]
    assert [answer.status_code for answer in caller.cli("acme", "whoami")] == [403, 403]
    assert [answer.status_code for answer in caller.cli("time", "get-current-time")] == [422, 422], "it wants a zone"
    gateway.operator.run("restrict_to_vendors", client_id=client_id, vendors=["acme"])
    for answer in caller.mcp("acme_whoami"):
        agent.result(answer)


def test_a_shorter_allowlist(gateway: Gateway, new_caller: Callable[[], Caller]) -> None:
    caller, bystander = new_caller(), new_caller()
    org_id = caller.service_client.org_id
    gateway.operator.run("allow_tools", org_id=org_id, vendor="acme", tools=["acme_whoami", "acme_list_devices"])
    for answer in caller.mcp("acme_list_devices"):
        agent.result(answer)
    gateway.operator.run("allow_tools", org_id=org_id, vendor="acme", tools=["acme_whoami"])
    for answer in caller.mcp("acme_list_devices"):
        assert answer.json()["result"]["isError"] is True
        assert "allowed to call" in answer.json()["result"]["content"][0]["text"]
    assert [answer.status_code for answer in caller.cli("acme", "list-devices")] == [403, 403]
    for answer in (*caller.mcp("acme_whoami"), *bystander.mcp("acme_list_devices")):
        agent.result(answer)


def test_a_write_at_one_server_is_read_fresh_at_the_other(
    clients: list[httpx.Client], new_caller: Callable[[], Caller]
) -> None:
    """Kept results are each process's own; what makes them worthless is everybody's."""
    caller = new_caller()

    def cli(client: httpx.Client, tool: str, **arguments: str) -> httpx.Response:
        answer = agent.cli(client, caller.token, "acme", tool, **arguments)
        assert answer.status_code == 200, answer.text
        return answer

    devices = cli(clients[0], "list-devices").json()["result"]["content"][0]["text"]
    device_id = json.loads(devices)["devices"][0]["id"]

    def read(client: httpx.Client) -> tuple[str, str | None]:
        answer = cli(client, "get-device", device_id=device_id)
        return answer.headers["X-Cache"], json.loads(answer.json()["result"]["content"][0]["text"])["note"]

    for client in clients:
        assert [read(client)[0], read(client)[0]] == ["MISS", "HIT"]
    for number, (writer, reader) in enumerate((clients, clients[::-1], clients)):
        note = f"note {number}"
        cli(writer, "update-device", device_id=device_id, note=note)
        assert [read(reader), read(writer)] == [("MISS", note)] * 2
        assert [read(reader), read(writer)] == [("HIT", note)] * 2


def test_a_vendor_that_was_disconnected(gateway: Gateway, new_caller: Callable[[], Caller]) -> None:
    caller = new_caller()
    gateway.operator.run("disconnect_vendor", org_id=caller.service_client.org_id, vendor="acme")
    for answer in caller.mcp("acme_whoami"):
        assert answer.json()["result"]["isError"] is True
        assert "not connected" in answer.json()["result"]["content"][0]["text"]
    assert [answer.status_code for answer in caller.cli("acme", "whoami")] == [403, 403]


def test_a_credential_that_was_replaced(gateway: Gateway, new_caller: Callable[[], Caller]) -> None:
    caller = new_caller()
    before = {agent.result(answer)["structuredContent"]["key_fingerprint"] for answer in caller.mcp("acme_whoami")}
    fields = {"apiKey": "demo-the-other-tenant-0001"}
    gateway.operator.run("connect_vendor", org_id=caller.service_client.org_id, vendor="acme", fields=fields)
    after = {agent.result(answer)["structuredContent"]["key_fingerprint"] for answer in caller.mcp("acme_whoami")}
    assert len(before) == len(after) == 1
    assert before != after


async def test_a_small_hourly_limit_is_exact_over_both_servers(gateway: Gateway) -> None:
    """Up to a hundred calls are kept as a log of moments; these servers have a limit of their own."""
    hourly = {"TOOL_CALLS_PER_HOUR": "50", "WEB_PROCESSES": "2"}
    with gateway.deployment.webs(2, **hourly) as webs:
        await check_limit(gateway, [web.origin for web in webs], limit=50, calls=80)


async def test_the_hourly_limit_is_exact_over_both_servers(gateway: Gateway, clients: list[httpx.Client]) -> None:
    """Larger limits are counted per slice of the window: that of the shared servers is such a one."""
    limit = int(gateway.deployment.environment["TOOL_CALLS_PER_HOUR"])
    await check_limit(gateway, [str(client.base_url) for client in clients], limit=limit, calls=limit + 40)


@pytest.fixture(scope="module")
def four(gateway: Gateway) -> Iterator[RoundRobin]:
    """Four more web servers behind a proxy that knows nothing of callers."""
    variables = {"TOOL_CALLS_PER_HOUR": "50", "WEB_PROCESSES": "4"}
    with gateway.deployment.webs(4, **variables) as webs, round_robin([web.port for web in webs]) as proxy:
        yield proxy


async def test_a_limit_is_exact_over_four_servers_behind_a_proxy(gateway: Gateway, four: RoundRobin) -> None:
    before = Counter(four.connections)
    await check_limit(gateway, [f"http://127.0.0.1:{four.port}"], limit=50, calls=80)
    assert len(four.connections - before) == 4, "each of them has answered"


def test_a_revocation_is_in_force_at_four_servers_behind_a_proxy(gateway: Gateway, four: RoundRobin) -> None:
    """At the next call of each server, though a moment before all four have served the key."""
    bystander, caller = gateway.new_service_client(), gateway.new_service_client()
    # A connection for each request, so that requests go round.
    one_request = {"limits": httpx.Limits(max_keepalive_connections=0), "base_url": f"http://127.0.0.1:{four.port}"}
    with httpx.Client(**PLAIN_HTTP, timeout=30.0, **one_request) as client:
        for key in (caller.agent_key, bystander.agent_key):
            before = Counter(four.connections)
            for _ in range(4):
                agent.result(agent.call(client, key, "acme_whoami"))
            assert set((four.connections - before).values()) == {1}
        gateway.operator.run("revoke_agent_key", client_id=caller.client_id)
        assert [agent.call(client, caller.agent_key, "acme_whoami").status_code for _ in range(8)] == [401] * 8
        for _ in range(4):
            agent.result(agent.call(client, bystander.agent_key, "acme_whoami"))


async def check_limit(gateway: Gateway, origins: list[str], *, limit: int, calls: int) -> None:
    """Of so many calls at once over all servers exactly `limit` pass; the rest are refused, and noted sparingly."""
    service_client, other = gateway.new_service_client(), gateway.new_service_client()
    answers = await _calls_at_once(origins, service_client.agent_key, calls)
    assert Counter(answer.status_code for answer in answers) == {200: limit, 429: calls - limit}
    for answer in answers:
        if answer.status_code == 429:
            assert 1 <= int(answer.headers["Retry-After"]) <= 3600 + 60, "the window, and a slice of a larger limit"
            assert answer.json()["error"] == "rate_limited"
        else:
            agent.result(answer)
    for answer in await _calls_at_once(origins, other.agent_key, len(origins)):
        agent.result(answer)
    rows = gateway.deployment.database.select(
        f"SELECT status, error_code FROM audit_requestauditentry WHERE user_id = '{service_client.subject}'"
    )
    assert Counter(rows)["success", ""] == limit
    noted = Counter(rows)["denied", "rate_limited"]
    assert 1 <= noted <= 2, "refusals have one row a minute, over all servers"
    assert len(rows) == limit + noted
    await _until_counted(gateway, service_client.subject, calls - limit)


async def _until_counted(gateway: Gateway, subject: str, refused: int) -> None:
    """The servers bring their counts to the rows within about a second."""
    sql = f"SELECT SUM(count) FROM audit_requestauditentry WHERE user_id = '{subject}' AND error_code = 'rate_limited'"
    async with asyncio.timeout(20):
        while (counted := gateway.deployment.database.select(sql)[0][0]) != refused:
            assert counted < refused
            await asyncio.sleep(0.05)


async def _calls_at_once(origins: list[str], key: str, calls: int) -> list[httpx.Response]:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "acme_whoami", "arguments": {}}}
    bounds = httpx.Limits(max_connections=40)
    async with httpx.AsyncClient(**PLAIN_HTTP, timeout=30.0, limits=bounds, headers=agent.bearer(key)) as client:
        addresses = [f"{origins[number % len(origins)]}/v1/mcp" for number in range(calls)]
        return await asyncio.gather(*(client.post(address, json=body) for address in addresses))
