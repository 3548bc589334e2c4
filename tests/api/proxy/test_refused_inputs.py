"""Rows 9 to 20 of the table of attacks, each with its exact answer on both routes: nothing reaches the vendor.

Rows that other files of this folder test are not repeated here: bodies (13), sizes (15), versions (17), origins
and hosts (18), and two hundred callers with one id (20).
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from audit.models import RequestAuditEntry
from gateway.asgi import application
from tests.api.proxy.conftest import Agent, access_token, headers
from tests.api.proxy.streams import post_scope
from tests.factories.tenant import Tenant, load_vendor, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor


async def each_code() -> Counter[tuple[str, str]]:
    """How often each way to end was written down."""
    return await in_thread(lambda: Counter(RequestAuditEntry.objects.values_list("status", "error_code")))


async def codes() -> set[tuple[str, str]]:
    return await in_thread(lambda: set(RequestAuditEntry.objects.values_list("status", "error_code")))


async def raw(agent: Agent, path: str, bearer: str, body: bytes, **more: str) -> Any:
    sent = {"Content-Type": "application/json", **headers(bearer, more)}
    return await agent.http.post(path, content=body, headers=sent)


async def status_of(path: str, bearer: str, *more: tuple[bytes, bytes], body: bytes = b'{"tool":"list"}') -> int:
    """Of a request whose path and headers no client would put that way."""
    status, _ = await answer_to(path, bearer, *more, body=body)
    return status


async def answer_to(path: str, bearer: str, *more: tuple[bytes, bytes], body: bytes) -> tuple[int, bytes]:
    """Status and body of the answer to such a request."""
    sent: list[dict[str, Any]] = []
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        for message in messages:
            return message
        await asyncio.Event().wait()  # the client waits for its answer
        raise AssertionError("unreachable")

    async def send(message: Any) -> None:
        sent.append(message)

    base = [(b"host", b"testserver"), (b"content-type", b"application/json")]
    scope = post_scope(path, [*base, (b"authorization", f"Bearer {bearer}".encode()), *more])
    await application(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fake_list"}}'

# --- 9, 10 ------------------------------------------------------------------------------------------------------------


async def test_9_a_scope_for_another_vendor(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    await in_thread(lambda: load_vendor("http://127.0.0.1:9/mcp", slug="globex"))
    token = await in_thread(lambda: access_token(tenant, scope="mcp:globex"))
    mcp = await agent.call(token, "fake_list")
    assert (mcp.status_code, mcp.json()["error"]) == (403, "insufficient_scope")
    cli = await agent.cli(token, "list")
    assert (cli.status_code, list(cli.json())) == (403, ["error"])
    for answer in (mcp, cli):
        challenge = answer.headers["WWW-Authenticate"]
        assert 'error="insufficient_scope"' in challenge
        assert 'scope="mcp:fake mcp:globex"' in challenge
    assert await codes() == {("denied", "insufficient_scope")}
    assert sum(vendor.seen.values()) == 0


@pytest.mark.parametrize(
    ("path", "on_cli", "on_mcp"),
    [
        ("/v1/globex/{}", 403, 200),
        ("/v1/nobody/{}", 403, 404),
        ("/v1/../fake/{}", 404, 404),
        ("/v1/fake/../fake/{}", 404, 404),
        ("/v1/fake%2f..%2ffake/{}", 404, 404),
        ("/v1/fäke/{}", 404, 404),
        ("/v1//{}", 404, 404),
        ("/v1/fake/{}/.", 404, 404),
        ("/v1/FAKE/{}", 403, 404),
    ],
)
async def test_10_vendors_that_lead_nowhere(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor, path: str, on_cli: int, on_mcp: int
) -> None:
    await in_thread(lambda: load_vendor("http://127.0.0.1:9/mcp", slug="globex"))  # no organization is connected to it
    assert await status_of(path.format("cli"), jwt) == on_cli
    status, answer = await answer_to(path.format("mcp"), jwt, body=CALL)
    assert status == on_mcp
    if status == 200:
        assert json.loads(answer)["result"]["isError"] is True
        assert b"Globex is not connected." in answer
    else:
        assert json.loads(answer)["error"] == "not_found"
    assert sum(vendor.seen.values()) == 0


async def test_10_a_slash_too_many_on_the_cli(tenant: Tenant, agent: Agent, jwt: str, vendor: FakeVendor) -> None:
    assert await status_of("/v1/fake/cli/", jwt) == 404
    assert sum(vendor.seen.values()) == 0


@pytest.mark.parametrize(
    "name", ["globex_list", "nobody_list", "../fake_list", "fake/../fake_list", "fake%5flist", "fäke_list", "_list", ""]
)
async def test_10_names_that_lead_to_no_vendor(agent: Agent, tenant: Tenant, vendor: FakeVendor, name: str) -> None:
    await in_thread(lambda: load_vendor("http://127.0.0.1:9/mcp", slug="globex"))
    answer = (await agent.call(tenant.agent_key, name)).json()
    if name.startswith("globex"):
        assert answer["result"]["isError"] is True
        assert "Globex is not connected." in answer["result"]["content"][0]["text"]
        expected = "no_credentials"
    else:
        text = f"Unknown tool: {name}" if name else "params.name must be a tool name"
        assert answer["error"] == {"code": -32602, "message": text}
        expected = "unknown_tool" if name else "bad_arguments"
    assert await each_code() == {("denied", expected): 1}
    assert sum(vendor.seen.values()) == 0


# --- 11 ---------------------------------------------------------------------------------------------------------------

LOOKALIKES = [
    "FAKE_LIST",
    "Fake_list",
    "fake_list ",
    " fake_list",
    "fаke_list",
    "fake_list\u200b",
    "fake＿list",
    "fake-list",
]


@pytest.mark.parametrize("name", LOOKALIKES)
async def test_11_a_name_that_only_looks_like_it(agent: Agent, tenant: Tenant, vendor: FakeVendor, name: str) -> None:
    """The allowed name is exact; a spelling that means a tool means the tool it shows, and that one is refused."""
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_write"))
    token = await in_thread(lambda: access_token(tenant))
    mcp = (await agent.call(tenant.agent_key, name)).json()
    assert mcp["error"]["code"] == -32602
    assert mcp["error"]["message"] == f"Unknown tool: {name}"
    assert (await agent.cli(token, name)).status_code == 403
    assert vendor.seen["tools/call"] == 0
    assert await each_code() == {("denied", "unknown_tool"): 2}


@pytest.mark.parametrize("allowed", [("fake_write",), ()], ids=["another tool", "none at all"])
async def test_11_what_the_role_may_not_call(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, allowed: tuple[str, ...]
) -> None:
    await in_thread(lambda: restrict_tools(tenant.organization, *allowed))
    token = await in_thread(lambda: access_token(tenant))
    for name in ("fake_list", "fake__list", "fake__fake_list"):
        answer = (await agent.call(tenant.agent_key, name)).json()
        assert answer["result"]["isError"] is True
        assert "The role member isn't allowed to call" in answer["result"]["content"][0]["text"]
    for name in ("list", "fake_list"):
        refused = await agent.cli(token, name)
        assert (refused.status_code, "allowed to call" in refused.json()["error"]) == (403, True)
    listed = (await agent.rpc(tenant.agent_key, "tools/list")).json()["result"]["tools"]
    assert [tool["name"] for tool in listed] == list(allowed)
    schema = await agent.http.get("/v1/fake/cli/schema", headers=headers(token, {}))
    assert len(schema.json()["commands"]) == len(allowed)
    assert vendor.seen["tools/call"] == 0
    assert await each_code() == {("denied", "tool_not_allowed"): 5}, "each of them once"


# --- 12, 14 -----------------------------------------------------------------------------------------------------------

TWICE = [
    b'{"name":"fake_list","name":"fake_write"}',
    b'{"name":"fake_list","arguments":{"a":1},"arguments":{}}',
    b'{"name":"fake_list","arguments":{"deep":{"a":1,"a":2}}}',
]


@pytest.mark.parametrize("params", TWICE)
async def test_12_said_twice_over_mcp(agent: Agent, tenant: Tenant, vendor: FakeVendor, params: bytes) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + params + b"}"
    answer = await raw(agent, "/v1/mcp", tenant.agent_key, body)
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["id"]) == (400, -32700, None)
    assert sum(vendor.seen.values()) == 0


@pytest.mark.parametrize(
    "body", [b'{"tool":"write","tool":"list"}', b'{"tool":"list","args":{},"args":{"a":1}}', b'{"Tool":"list"}']
)
async def test_12_said_twice_or_otherwise_over_the_cli(agent: Agent, jwt: str, vendor: FakeVendor, body: bytes) -> None:
    answer = await raw(agent, "/v1/fake/cli", jwt, body)
    assert (answer.status_code, list(answer.json())) == (400, ["error"])
    assert sum(vendor.seen.values()) == 0


async def test_12_the_vendor_sees_the_checked_members_only(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor
) -> None:
    """Members in another case, or in letters that look alike, are other members, and none of ours."""
    params = {"name": "fake_list", "Name": "fake_write", "arguments": {}, "paramſ": 1, "task": {"ttl": 1}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "Method": "tools/list", "params": params}
    answer = await raw(agent, "/v1/mcp", tenant.agent_key, json.dumps(body).encode())
    assert "result" in answer.json()
    assert (await raw(agent, "/v1/fake/cli", jwt, b'{"tool":"list","Tool":"write","task":1}')).status_code == 200
    sent = [each for each in vendor.bodies if each.get("method") == "tools/call"]
    assert [each["params"] for each in sent] == [{"name": "fake_list", "arguments": {}}] * 2
    assert all(set(each) == {"jsonrpc", "id", "method", "params"} for each in sent)


BROKEN = {
    "too deep": b"[" * 10_000 + b"]" * 10_000,
    "a number of a million digits": b"9" * 1_000_000,
    "no number": b"NaN",
    "no end": b"Infinity",
    "half a character": b'"\\ud800"',
    "no text": b'"\xff"',
    "a control character": b'"\x01"',
    "NUL as it is": b'"\x00"',
    "NUL in other characters": rb'"a\u0000b"',
    "NUL in the name of a member": rb'{"a\u0000":1}',
}


@pytest.mark.parametrize("value", BROKEN.values(), ids=BROKEN.keys())
async def test_14_values_that_two_readers_would_read_differently(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor, value: bytes
) -> None:
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fake_list","arguments":{"a":' + value
    mcp = await raw(agent, "/v1/mcp", tenant.agent_key, call + b"}}}")
    assert (mcp.status_code, mcp.json()["error"]["code"]) == (400, -32700)
    cli = await raw(agent, "/v1/fake/cli", jwt, b'{"tool":"list","args":{"a":' + value + b"}}")
    assert (cli.status_code, list(cli.json())) == (400, ["error"])
    assert sum(vendor.seen.values()) == 0


# --- 16, 19 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [21, 10_000])
async def test_16_a_batch_too_long(agent: Agent, tenant: Tenant, vendor: FakeVendor, count: int) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fake_list"}}
    answer = await raw(agent, "/v1/mcp", tenant.agent_key, json.dumps([call] * count).encode())
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)
    assert sum(vendor.seen.values()) == 0
    assert await codes() == set()


async def test_19_headers_that_would_say_who_it_is(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, jwt: str, vendor: FakeVendor
) -> None:
    """None of them counts: not for the address in the log, not for the organization, not for the host."""
    names = ("forwarded-for", "forwarded-host", "forwarded-uri", "forwarded-user", "forwarded-proto", "original-url")
    lies = [(f"x-{name}".encode(), b"203.0.113.7") for name in names]
    lies += [(b"x_forwarded_for", b"203.0.113.8"), (b"x-org-id", str(other_tenant.organization.id).encode())]
    lies += [(b"x-api-key", b"another"), (b"mcp-session-id", b"somebody-elses"), (b"connection", b"authorization")]
    assert await status_of("/v1/fake/cli", jwt, *lies) == 200
    (row,) = await in_thread(lambda: list(RequestAuditEntry.objects.all()))
    assert (row.org_id, row.ip_address) == (tenant.organization.id, "127.0.0.1")
    assert vendor.headers["X-Api-Key"] == "right-key"
    assert not any("203.0.113" in value for value in vendor.headers.values())


async def test_19_two_authorizations_are_none(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, jwt: str, vendor: FakeVendor
) -> None:
    for second in (jwt, other_tenant.agent_key, "nonsense"):
        twice = (b"authorization", f"Bearer {second}".encode())
        assert await status_of("/v1/fake/cli", jwt, twice) == 401
        assert await status_of("/v1/mcp", tenant.agent_key, twice) == 401
    assert sum(vendor.seen.values()) == 0
