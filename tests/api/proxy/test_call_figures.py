"""Metrics of calls: outcomes and phases by closed labels, and no name of a tenant anywhere. Spec: contract.md 7"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.coordination.rules import Rule
from gateway.lib.metrics import call_tally, figures, names
from gateway.lib.metrics.process_file import ProcessFile
from orgs.models import Organization
from proxy import runtime
from proxy.process_gauges import ProcessGauges
from tests.api.proxy.conftest import Agent
from tests.factories.cast import Cast
from tests.factories.figures import samples_of, scraped, value_of
from tests.factories.tenant import Tenant
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor


@pytest.fixture(autouse=True)
def _own_figures() -> Iterator[None]:
    call_tally.forget()
    figures.reset_all()
    yield
    figures.reset_all()


def answer(folder: Path) -> str:
    """The text that Prometheus would get now."""
    serving = runtime.current()
    file = ProcessFile(folder, "web")
    ProcessGauges(file, serving.audit, serving.pool, serving.transport).read()
    file.write()
    return scraped(folder)


def calls(route: str, outcome: str, vendor: str = "fake") -> float:
    call_tally.settle()
    return names.CALLS.values.get((vendor, route, outcome), 0)


async def test_each_route_counts_its_calls_once(agent: Agent, tenant: Tenant, jwt: str, tmp_path: Path) -> None:
    await agent.call(tenant.agent_key, "fake_list")
    await agent.cli(jwt, "list")
    await agent.rpc(jwt, "tools/call", {"name": "fake_write", "arguments": {}}, path="/v1/fake/mcp")
    await agent.rpc(tenant.agent_key, "tools/list")  # no call
    assert [calls(route, "success") for route in names.ROUTES] == [1, 1, 1]
    assert sum(names.CALLS.values.values()) == 3
    text = answer(tmp_path)
    for phase in names.PHASES:
        assert value_of(text, "gateway_call_seconds_count", phase=phase) == 3, phase
    # A writing call leaves a record before it is sent and one after.
    assert value_of(text, "gateway_audit_commit_seconds_count") == 4
    assert value_of(text, "gateway_cache_total", result="bypass") == 2
    assert value_of(text, "gateway_limiter_total", count="shared", result="allowed") == 3
    assert (value_of(text, "gateway_vendor_sessions"), value_of(text, "gateway_degraded")) == (1, 0)
    assert value_of(text, "gateway_vendor_connections", state="idle") == 1


async def test_each_way_to_end_has_its_outcome(agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor) -> None:
    await agent.call(tenant.agent_key, "fake_unknown")
    assert calls("mcp", "denied") + calls("mcp", "denied", names.NO_VENDOR) == 1
    vendor.status = 500
    await agent.call(tenant.agent_key, "fake_list")
    assert calls("mcp", "error") == 1
    assert (await agent.cli(jwt, "list")).status_code == 502
    runtime.current().audit.outage.is_active = True
    assert (await agent.cli(jwt, "list")).status_code == 503
    runtime.current().audit.outage.is_active = False
    assert calls("cli", "unavailable") == 1


async def test_a_call_past_the_limit_is_counted_as_such(agent: Agent, tenant: Tenant, settings: Any) -> None:
    settings.TOOL_CALLS = Rule("tools", limit=1, window_s=3_600)
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 200
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 429
    assert (calls("mcp", "success"), calls("mcp", "rate_limited", names.NO_VENDOR)) == (1, 1)
    assert names.LIMITER.values[("shared", "refused")] == 1
    # A phase that did not happen has no sample.
    assert [sum(names.CALL_SECONDS.buckets[(phase,)]) for phase in ("auth", "vendor", "total")] == [2, 1, 2]


async def test_a_caller_who_cannot_be_looked_up_is_unavailable(agent: Agent, tenant: Tenant) -> None:
    runtime.current().audit.outage.is_active = True
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 503
    assert calls("mcp", "unavailable", names.NO_VENDOR) == 1
    assert (await agent.call("cak_nothing", "fake_list")).status_code in (401, 503)


async def test_kept_results_are_hits(agent: Agent, jwt: str) -> None:
    for _ in range(3):
        assert (await agent.cli(jwt, "list", {"site": "hq"})).status_code == 200
    call_tally.settle()
    assert names.CACHE.values == {("miss",): 1, ("hit",): 2}


async def test_no_name_of_a_tenant_is_in_the_answer(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor, committed_cast: Cast, tmp_path: Path
) -> None:
    """Planted: names of organizations and people, tools and arguments, vendors that nothing knows, credentials."""
    await in_thread(lambda: Organization.objects.update(name="Planted Organization"))
    planted = ["Planted", "planted", "right-key", tenant.agent_key, tenant.client.client_id, jwt]
    planted += [str(committed_cast.org.pk), str(committed_cast.user("owner").pk), committed_cast.user("owner").email]
    vendor.tools = [*vendor.tools, {"name": "fake_planted_tool", "inputSchema": {"type": "object"}}]
    await agent.call(tenant.agent_key, "fake_planted_tool", planted_argument="planted value")
    await agent.call(tenant.agent_key, "planted_elsewhere")
    await agent.cli(jwt, "planted_command", vendor="planted-vendor")
    await agent.rpc(jwt, "planted/method", path="/v1/planted-vendor/mcp")
    text = answer(tmp_path)
    assert calls("mcp", "success") == 1
    assert calls("cli", "denied", names.NO_VENDOR) == 1
    assert [word for word in planted if word in text] == []
    # Each label has a value of its closed list, a slug of the catalog or a bound.
    known = {"fake", names.NO_VENDOR}
    for (name, labels), _ in samples_of(text).items():
        assert {value for label, value in labels if label == "vendor"} <= known, name
