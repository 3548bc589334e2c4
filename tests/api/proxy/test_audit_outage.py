"""While call records cannot be committed, calls are refused before a vendor or the database is asked.

Spec: D80 · reliability.md 4
"""

from __future__ import annotations

from proxy import runtime
from tests.api.proxy.conftest import Agent
from tests.factories.statements import statements
from tests.factories.tenant import Tenant
from tests.fakes.vendor import FakeVendor


async def test_an_outage_keeps_calls_from_the_vendor(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor
) -> None:
    statuses = [(await agent.call(tenant.agent_key, "fake_write")).status_code]
    statuses.append((await agent.cli(jwt, "write")).status_code)
    assert statuses == [200, 200], "both callers and the tool list are known"
    asked = vendor.seen.total()
    outage = runtime.current().audit.outage
    outage.is_active = True
    refused = [
        await agent.call(tenant.agent_key, "fake_write"),
        await agent.call(tenant.agent_key, "fake_list"),
        await agent.cli(jwt, "write"),
        await agent.cli(jwt, "list"),
    ]
    assert {answer.status_code for answer in refused} == {503}
    assert all(answer.headers["Retry-After"] for answer in refused)
    assert vendor.seen.total() == asked
    outage.is_active = False
    assert (await agent.call(tenant.agent_key, "fake_write")).status_code == 200
    assert vendor.seen.total() == asked + 1


async def test_an_outage_keeps_unknown_callers_from_the_database(agent: Agent, tenant: Tenant) -> None:
    outage = runtime.current().audit.outage
    outage.is_active = True
    with statements() as looked_up:
        assert (await agent.rpc(tenant.agent_key, "ping")).status_code == 503
        assert looked_up == []
        outage.is_active = False
        assert (await agent.rpc(tenant.agent_key, "ping")).status_code == 200
        assert looked_up != []
