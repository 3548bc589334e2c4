"""Refusals under /v1 lead to the entry of their code; results of calls are as they were."""

from __future__ import annotations

from tests.api.proxy.conftest import Agent
from tests.factories.tenant import Tenant, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

ERRORS = "http://testserver/docs/errors"
SUCCESSOR = '<http://testserver/v1/mcp>; rel="successor-version"'


async def test_http_errors_name_their_entry(agent: Agent, tenant: Tenant, jwt: str) -> None:
    nobody = await agent.rpc(None, "tools/list")
    assert nobody.headers["Link"] == f'<{ERRORS}#unauthorized>; rel="help"'
    assert nobody.json().keys() == {"error", "error_description"}
    unknown = await agent.cli(jwt, "no_such_tool")
    assert unknown.headers["Link"] == f'<{ERRORS}#unknown_tool>; rel="help"'
    assert unknown.json().keys() == {"error"}
    assert "Link" in unknown.headers.get("Access-Control-Expose-Headers", "Link")


async def test_the_deprecated_endpoint_keeps_its_own_links(agent: Agent, jwt: str) -> None:
    answer = await agent.rpc(None, "tools/list", path="/v1/fake/mcp")
    assert answer.headers["Link"].startswith(SUCCESSOR)
    assert "errors" not in answer.headers["Link"]


async def test_a_refused_call_names_its_entry_in_meta(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
    answer = await agent.call(tenant.agent_key, "fake_write")
    result = answer.json()["result"]
    assert result["isError"] is True
    assert result["_meta"] == {"gateway/help": f"{ERRORS}#tool_not_allowed"}
    assert "Link" not in answer.headers


async def test_a_success_names_none(agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor) -> None:
    answer = await agent.call(tenant.agent_key, "fake_list")
    assert "_meta" not in answer.json()["result"]
    assert "Link" not in answer.headers
    assert "Link" not in (await agent.cli(jwt, "list")).headers
