"""Long answers are read a slice at a time, and each slice is on the account of the organization that asked."""

from __future__ import annotations

import pytest

from proxy import runtime
from proxy.vendors import fair_scheduler, message_reader
from tests.api.proxy.conftest import Agent
from tests.api.proxy.vendor_requests import slots_taken
from tests.factories.tenant import Tenant, connect, load_vendor
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor


async def test_each_organization_has_slots_of_its_own(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    vendor.reply = "sse"
    for each in (tenant, other_tenant):
        await agent.rpc(each.agent_key, "tools/list")
    await runtime.current().tool_change_detector.settled()  # it compares lists in turns as well
    owners = slots_taken(monkeypatch)
    for each in (tenant, other_tenant):
        assert "result" in (await agent.call(each.agent_key, "fake_list")).json()
    assert owners == [], "short answers wait for nobody"
    monkeypatch.setattr(message_reader, "LONG_STREAM_BYTES", 0)
    for each in (tenant, other_tenant):
        owners.clear()
        assert "result" in (await agent.call(each.agent_key, "fake_list")).json()
        assert set(owners) == {each.organization.id}


@pytest.mark.parametrize("reply", ["sse", "json"])
async def test_a_slot_that_does_not_come_in_time_is_a_timeout(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch, reply: str
) -> None:
    assert "result" in (await agent.call(tenant.agent_key, "fake_list")).json()
    vendor.reply = reply
    await in_thread(lambda: load_vendor(vendor.url, timeout_s=1))
    monkeypatch.setattr(message_reader, "LONG_STREAM_BYTES", 0)
    monkeypatch.setattr(message_reader, "LONG_BODY_BYTES", 0)
    monkeypatch.setattr(message_reader, "INLINE_MASK_BYTES", 0)
    await agent.rpc(tenant.agent_key, "tools/list")  # the list is read, and kept
    async with fair_scheduler.current().slot("somebody else's long answer"):
        answer = (await agent.call(tenant.agent_key, "fake_list")).json()
    assert answer["error"]["data"] == {"vendor": "fake", "reason": "vendor_timeout"}
    assert "result" in (await agent.call(tenant.agent_key, "fake_list")).json()
