"""POST /v1/mcp through the four earlier protocol versions: what each adds or takes away, and who is turned back."""

from __future__ import annotations

from typing import Any

import pytest

from audit.models import RequestAuditEntry
from audit.pending_record import AuditUnavailable
from gateway.coordination.rules import Rule
from oauth_ext.services.agent_keys import revoke_agent_key
from proxy import runtime
from tests.api.proxy.conftest import Agent, access_token, headers
from tests.factories.tenant import Tenant, load_vendor
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
WITH_BATCHES = VERSIONS[2:]
UNDECLARED = (
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "tasks/list",
    "tasks/get",
    "tasks/result",
    "tasks/cancel",
    "server/discover",
    "roots/list",
    "sampling/createMessage",
    "elicitation/create",
    "nothing/at/all",
    "",
)


def ping(message_id: object) -> dict[str, Any]:
    """A request that asks nothing of anybody."""
    return {"jsonrpc": "2.0", "id": message_id, "method": "ping"}


def call(message_id: int, tool: str = "fake_list", **arguments: Any) -> dict[str, Any]:
    """A tools/call."""
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": message_id, "method": "tools/call", "params": params}


def spoken(version: str | None) -> dict[str, str]:
    """The header of a client that speaks `version`."""
    return {} if version is None else {"MCP-Protocol-Version": version}


@pytest.mark.parametrize("version", [None, *VERSIONS])
async def test_every_version_is_served(agent: Agent, tenant: Tenant, version: str | None) -> None:
    key, said = tenant.agent_key, spoken(version)
    assert (await agent.rpc(key, "ping", **said)).json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    listed = await agent.rpc(key, "tools/list", **said)
    assert [tool["name"] for tool in listed.json()["result"]["tools"]] == ["fake_fail", "fake_list", "fake_write"]
    answer = await agent.rpc(key, "tools/call", {"name": "fake_list", "arguments": {"site": "hq"}}, **said)
    assert answer.json()["result"]["structuredContent"] == {"site": "hq"}
    assert answer.headers["Content-Type"] == "application/json"
    assert not {"mcp-session-id", "mcp-protocol-version"} & {name.lower() for name in answer.headers}


@pytest.mark.parametrize(
    "message_id", [0, -1, 2**53, 10**30, "", "a", "0", "ü", "x" * 1_000], ids=lambda each: str(each)[:9]
)
async def test_an_id_comes_back_as_it_was(agent: Agent, tenant: Tenant, message_id: object) -> None:
    answer = await agent.rpc(tenant.agent_key, "ping", id=message_id)
    assert (answer.status_code, answer.json()["id"]) == (200, message_id)


@pytest.mark.parametrize("method", UNDECLARED)
async def test_what_is_not_declared_is_not_there(agent: Agent, tenant: Tenant, vendor: FakeVendor, method: str) -> None:
    answer = await agent.rpc(tenant.agent_key, method, **spoken("2025-11-25"))
    assert (answer.status_code, answer.json()["error"]) == (200, {"code": -32601, "message": "Method not found"})
    # These say what the vendor has.
    assert vendor.seen.keys() <= {"server/discover", "initialize", "notifications/initialized"}


@pytest.mark.parametrize("version", [None, *VERSIONS])
@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "enough"}},
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        {"jsonrpc": "2.0", "method": "notifications/nobody/knows"},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "fake_write"}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": "q1", "error": {"code": -32601, "message": "no"}},
    ],
    ids=lambda message: message.get("method", "a response") if isinstance(message, dict) else message,
)
async def test_what_wants_no_answer_gets_none(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, message: dict[str, Any], version: str | None
) -> None:
    answer = await agent.http.post("/v1/mcp", json=message, headers=headers(tenant.agent_key, spoken(version)))
    assert (answer.status_code, answer.content, answer.headers["Content-Length"]) == (202, b"", "0")
    assert "Content-Type" not in answer.headers
    assert sum(vendor.seen.values()) == 0


@pytest.mark.parametrize("version", [None, *WITH_BATCHES])
async def test_batches_in_versions_that_have_them(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, version: str | None
) -> None:
    sent = headers(tenant.agent_key, spoken(version))
    batch = [
        ping(1),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call(2, site="a"),
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": 9, "result": {}},
        17,
        {"jsonrpc": "2.0", "id": 3, "method": "resources/list"},
        {"jsonrpc": "2.0", "id": 4, "method": "initialize", "params": {}},
        ping("five"),
    ]
    answer = await agent.http.post("/v1/mcp", json=batch, headers=sent)
    assert answer.status_code == 200
    found = [(each["id"], each.get("error", {}).get("code")) for each in answer.json()]
    assert found == [(1, None), (2, None), (None, -32600), (None, -32600), (3, -32601), (4, -32600), ("five", None)]
    assert answer.json()[1]["result"]["structuredContent"] == {"site": "a"}
    assert vendor.seen["tools/call"] == 1


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2026-01-01", "1999"])
@pytest.mark.parametrize("batch", [[ping(1)], [{"jsonrpc": "2.0", "method": "notifications/initialized"}], []])
async def test_batches_in_versions_that_do_not(
    agent: Agent, tenant: Tenant, version: str, batch: list[dict[str, Any]]
) -> None:
    answer = await agent.http.post("/v1/mcp", json=batch, headers=headers(tenant.agent_key, spoken(version)))
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == (-32600 if version in VERSIONS else -32602)
    assert answer.json()["id"] is None


async def test_each_call_of_a_batch_counts_in_the_limit(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, settings: Any
) -> None:
    """Calls before the limit are answered, and each one after it is refused. A new batch is refused whole."""
    settings.TOOL_CALLS = Rule("tools", limit=2, window_s=3600)
    batch = [call(1, "fake_write"), call(2), call(3, "fake_write"), ping(4)]
    sent = headers(tenant.agent_key, {})
    answer = await agent.http.post("/v1/mcp", json=batch, headers=sent)
    assert answer.status_code == 200
    first, second, third, fourth = answer.json()
    assert "result" in first
    assert "result" in second
    assert (third["id"], third["error"]["code"]) == (3, -32603)
    assert third["error"]["data"]["reason"] == "rate_limited"
    assert 0 < third["error"]["data"]["retryAfter"] <= 3600
    assert fourth["result"] == {}
    refused = await agent.http.post("/v1/mcp", json=[call(5), ping(6)], headers=sent)
    assert (refused.status_code, refused.json()["error"]) == (429, "rate_limited")
    assert vendor.seen["tools/call"] == 2
    rows = await in_thread(lambda: list(RequestAuditEntry.objects.values_list("error_code", flat=True)))
    assert sorted(rows) == ["", "", "rate_limited"]


async def test_a_scope_that_a_later_call_lacks_refuses_that_call(agent: Agent, tenant: Tenant) -> None:
    await in_thread(lambda: load_vendor("http://127.0.0.1:9/mcp", slug="globex"))
    token = await in_thread(lambda: access_token(tenant, scope="mcp:fake"))
    batch = [call(1), call(2, "globex_read")]
    answer = await agent.http.post("/v1/mcp", json=batch, headers=headers(token, {}))
    done, refused = answer.json()
    assert "result" in done
    assert refused["error"]["data"] == {"reason": "insufficient_scope"}
    alone = await agent.http.post("/v1/mcp", json=batch[1:], headers=headers(token, {}))
    assert (alone.status_code, alone.json()["error"]) == (403, "insufficient_scope")


async def test_a_batch_tells_what_was_done_before_its_row_could_not_be_written(
    agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await agent.call(tenant.agent_key, "fake_list")
    audit = runtime.current().audit
    write, written = audit.write, 0

    async def twice(record: Any) -> None:
        nonlocal written
        written += 1
        if written > 1:
            raise AuditUnavailable("full")
        await write(record)

    monkeypatch.setattr(audit, "write", twice)
    answer = await agent.http.post("/v1/mcp", json=[call(1), call(2)], headers=headers(tenant.agent_key, {}))
    done, lost = answer.json()
    assert "result" in done
    assert lost["error"]["data"] == {"reason": "unavailable", "retryAfter": 5}
    alone = await agent.http.post("/v1/mcp", json=[call(3)], headers=headers(tenant.agent_key, {}))
    assert alone.status_code == 503


async def test_a_key_that_dies_in_the_middle_of_a_batch_opens_nothing_more(
    agent: Agent, tenant: Tenant, vendor: FakeVendor
) -> None:
    handle = vendor._call

    def revoke(params: dict[str, Any]) -> dict[str, Any]:
        revoked.append(True)
        return handle(params)

    revoked: list[bool] = []
    vendor._call = revoke  # type: ignore[method-assign]
    await agent.call(tenant.agent_key, "fake_list")
    batch = [call(1), *(call(number, "fake_write") for number in (2, 3))]
    store = runtime.current().store
    admit, admitted = store.admit, 0

    async def admit_and_revoke(*arguments: Any) -> Any:
        nonlocal admitted
        admitted += 1
        if admitted == 2:
            await in_thread(lambda: revoke_agent_key(actor=tenant.owner, client=tenant.client))
        return await admit(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "admit", admit_and_revoke)
        answer = await agent.http.post("/v1/mcp", json=batch, headers=headers(tenant.agent_key, {}))
    done, *refused = answer.json()
    assert "result" in done
    assert [each["error"]["data"] for each in refused] == [{"reason": "invalid_token"}] * 2
    assert len(revoked) == 2, "the call before, and the first of the batch"


@pytest.mark.parametrize("message_id", [1, "discover-1"])
@pytest.mark.parametrize("version", ["2026-01-01", "DRAFT-2026-v1", ""])
async def test_a_version_that_is_not_served_is_turned_back(
    agent: Agent, tenant: Tenant, message_id: object, version: str
) -> None:
    said = {**spoken(version), "Mcp-Method": "server/discover", "id": message_id}
    answer = await agent.rpc(tenant.agent_key, "server/discover", **said)
    assert answer.status_code == 400
    assert answer.json() == {
        "jsonrpc": "2.0",
        "id": message_id,
        "error": {
            "code": -32602,
            "message": "Unsupported protocol version",
            "data": {"supported": list(VERSIONS), "requested": version},
        },
    }
    unknown = await agent.rpc(None, "server/discover", **said)
    assert unknown.status_code == 401, "who asks comes before what is asked"


async def test_notifications_of_a_version_that_is_not_served_are_turned_back_too(agent: Agent, tenant: Tenant) -> None:
    said = headers(tenant.agent_key, spoken("2026-01-01"))
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    answer = await agent.http.post("/v1/mcp", json=note, headers=said)
    assert (answer.status_code, answer.json()["id"]) == (400, None)


async def test_a_handshake_ignores_what_its_headers_say(agent: Agent, tenant: Tenant) -> None:
    said = {**spoken("2026-07-28"), "Mcp-Method": "initialize", "Mcp-Name": "whatever"}
    answer = await agent.rpc(tenant.agent_key, "initialize", {"protocolVersion": "2025-06-18"}, **said)
    assert (answer.status_code, answer.json()["result"]["protocolVersion"]) == (200, "2025-06-18")


@pytest.mark.parametrize("asked", [20251125, None, True, [], {}, "", " 2025-11-25", "2025-11-25\n", "2025-11-2５"])
async def test_a_handshake_with_no_version_of_ours_gets_the_fallback(agent: Agent, tenant: Tenant, asked: Any) -> None:
    answer = await agent.rpc(tenant.agent_key, "initialize", {"protocolVersion": asked})
    assert answer.json()["result"]["protocolVersion"] == "2025-03-26"


async def test_a_task_that_is_asked_for_does_not_reach_the_vendor(
    agent: Agent, tenant: Tenant, vendor: FakeVendor
) -> None:
    params = {"name": "fake_list", "arguments": {}, "task": {"ttl": 60_000}, "_meta": {"trace": "t-1"}}
    answer = await agent.rpc(tenant.agent_key, "tools/call", params)
    assert "result" in answer.json()
    assert vendor.bodies[-1]["params"] == {"name": "fake_list", "arguments": {}, "_meta": {"trace": "t-1"}}
