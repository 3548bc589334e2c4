"""A fault of ours inside a call: answered as one on both routes, without its words, and written down."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.calls import caching, find_tool, recorded_call, vendor_request
from proxy.protocol import replies
from proxy.views import cli
from tests.api.proxy.conftest import Agent
from tests.api.proxy.traces import rows
from tests.factories.tenant import Tenant
from tests.fakes.vendor import FakeVendor

TEXT = "Something went wrong on our side. The request's id leads to it in the log."
SECRET = "right-key in the exception"


def broken(*_: Any, **__: Any) -> Any:
    raise KeyError(SECRET)


PLACES = [
    pytest.param(recorded_call, "admit", "", id="admission"),
    pytest.param(find_tool, "usable_vendor", "", id="decision"),
    pytest.param(caching, "scope_of", "fake_list", id="cache"),
    pytest.param(caching, "_is_rejected", "fake_list", id="answer"),
    pytest.param(vendor_request, "send_request", "fake_list", id="vendor"),
]


@pytest.mark.parametrize(("module", "name", "tool"), PLACES)
async def test_both_routes_answer_and_leave_a_row(
    agent: Agent, tenant: Tenant, jwt: str, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, tool: str
) -> None:
    monkeypatch.setattr(module, name, broken)
    over_mcp = await agent.call(tenant.agent_key, "fake_list")
    assert over_mcp.status_code == 200
    assert over_mcp.json() == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32603, "message": TEXT, "data": {"reason": "internal_error"}},
    }
    over_cli = await agent.cli(jwt, "list")
    assert (over_cli.status_code, over_cli.json()) == (500, {"error": TEXT})
    assert over_cli.headers["X-Total-Ms"].isdigit()
    found = await rows()
    assert [(row.status, row.error_code, row.source) for row in found] == [
        ("error", "internal_error", "mcp"),
        ("error", "internal_error", "cli"),
    ]
    assert [row.request_id for row in found] == [each.headers["X-Request-Id"] for each in (over_mcp, over_cli)]
    if tool:
        assert [(row.vendor, row.tool) for row in found] == [("fake", tool)] * 2
    monkeypatch.undo()
    assert (await agent.call(tenant.agent_key, "fake_list")).json()["result"]


async def test_a_writing_call_ends_its_intent(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vendor_request, "send_request", broken)
    assert (await agent.call(tenant.agent_key, "fake_write")).json()["error"]["data"] == {"reason": "internal_error"}
    (row,) = await rows()
    assert (row.status, row.error_code, row.tool) == ("error", "internal_error", "fake_write")


async def test_a_write_whose_results_cannot_be_ended_is_not_sent(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "scope_of", broken)
    assert (await agent.call(tenant.agent_key, "fake_write")).json()["error"]["data"] == {"reason": "internal_error"}
    assert vendor.seen["tools/call"] == 0
    (row,) = await rows()
    assert (row.status, row.error_code, row.tool) == ("error", "internal_error", "fake_write")


async def test_one_of_a_batch_does_not_take_the_others_along(
    agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vendor_request, "send_request", broken)
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fake_list"}},
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
    ]
    sent = {"Authorization": f"Bearer {tenant.agent_key}"}
    first, second = (await agent.http.post("/v1/mcp", json=batch, headers=sent)).json()
    assert (first["id"], first["error"]["data"]) == (1, {"reason": "internal_error"})
    assert second == {"jsonrpc": "2.0", "id": 2, "result": {}}


async def test_outside_a_call_it_has_the_shape_of_its_route(
    agent: Agent, tenant: Tenant, jwt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replies, "cli_content", broken)
    monkeypatch.setattr(cli.cli_schema, "commands", broken)
    called = await agent.cli(jwt, "list")
    assert (called.status_code, called.json()) == (500, {"error": TEXT})
    schema = await agent.http.get("/v1/fake/cli/schema", headers={"Authorization": f"Bearer {jwt}"})
    assert (schema.status_code, schema.json()) == (500, {"error": TEXT})
    monkeypatch.setattr("proxy.views.mcp.list_tools", broken)
    listed = await agent.rpc(tenant.agent_key, "tools/list")
    assert (listed.status_code, listed.json()) == (500, {"error": "internal_error", "error_description": TEXT})
    assert all(answer.headers["X-Total-Ms"].isdigit() for answer in (called, schema, listed))
