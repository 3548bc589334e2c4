"""Long answers are read a slice at a time, and each slice is on the account of the organization that asked."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractAsyncContextManager

import pytest

from proxy.vendors import handshake
from proxy.vendors.turns import Turns
from tests.api.proxy.conftest import Agent
from tests.factories.tenant import Tenant, connect
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor


async def test_each_organization_has_turns_of_its_own(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    vendor.reply = "sse"
    owners: list[Hashable] = []
    turn = Turns.turn

    def noting(lane: Turns, owner: Hashable) -> AbstractAsyncContextManager[None]:
        owners.append(owner)
        return turn(lane, owner)

    monkeypatch.setattr(Turns, "turn", noting)
    for each in (tenant, other_tenant):
        assert "result" in (await agent.call(each.agent_key, "fake_list")).json()
    assert owners == [], "short answers wait for nobody"
    monkeypatch.setattr(handshake, "LONG_STREAM_BYTES", 0)
    for each in (tenant, other_tenant):
        owners.clear()
        assert "result" in (await agent.call(each.agent_key, "fake_list")).json()
        assert set(owners) == {each.organization.id}
