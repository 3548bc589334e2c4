"""Attacks on subscriptions: callers and vendors that want too much, and rights that end at a bad moment.

docs/decisions/0113
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from proxy import runtime
from proxy.calls import subscribe_item
from proxy.vendors import listening
from proxy.vendors.listening import VendorListening
from tests.api.proxy.asking import session_of
from tests.api.proxy.conftest import Agent
from tests.api.proxy.test_subscriptions import (
    EXPOSED,
    OWN,
    _impatient,
    listening_to,
    subscribe,
    until,
    vendor,
)
from tests.factories.tenant import Tenant
from tests.fakes.updating_vendor import UpdatingVendor

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["_impatient", "vendor"]
LONG = "fake+test://" + "\N{FACE WITH TEARS OF JOY}" * 4_080  # 16 KiB


async def test_the_longest_addresses_of_one_session_are_read_by_a_stream(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor
) -> None:
    """A reply of the exchange past its bound would close a connection that all organizations share."""
    session = await session_of(agent, tenant.agent_key)
    refused = await subscribe(agent, tenant.agent_key, session, LONG)
    assert refused.json()["error"] == {"code": -32602, "message": subscribe_item.TOO_LONG}
    assert not vendor.seen["resources/subscribe"]
    longest = [f"fake+test://{number:02}" + "a" * 4_080 for number in range(49)]
    for address in longest:
        assert "result" in (await subscribe(agent, tenant.agent_key, session, address)).json()
    await subscribe(agent, tenant.agent_key, session)
    async with listening_to(tenant.agent_key, session) as stream:
        heard: set[Any] = {(await stream.read() or {})["params"]["uri"] for _ in range(50)}
        assert heard == {EXPOSED, *longest}


def listenings() -> list[VendorListening]:
    return list(runtime.current().listening._listenings.values())


async def test_an_address_without_an_answer_holds_up_no_other(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    if vendor.is_modern:
        pytest.skip("one request names all addresses")
    monkeypatch.setattr(subscribe_item, "CONFIRM_WITHIN_S", 2.0)
    monkeypatch.setattr(listening, "ASK_WITHIN_S", 0.2)
    silent = [f"test://silent/{number}" for number in range(9)]  # more than are asked at once
    vendor.silent_about.update(silent)
    session = await session_of(agent, tenant.agent_key)
    waiting = [subscribe(agent, tenant.agent_key, session, f"fake+{each}") for each in silent]
    failing = asyncio.gather(*waiting)
    await until(lambda: vendor.seen["resources/subscribe"] > 0)
    assert "result" in (await subscribe(agent, tenant.agent_key, session)).json()
    assert {each.json()["error"]["data"]["reason"] for each in await failing} == {"vendor_timeout"}


async def test_addresses_that_nobody_waits_for_leave_nothing(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    if vendor.is_modern:
        pytest.skip("one request names all addresses")
    monkeypatch.setattr(subscribe_item, "CONFIRM_WITHIN_S", 0.2)
    vendor.silent_about.update(("test://silent/1", "test://silent/2"))
    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session):
        await subscribe(agent, tenant.agent_key, session)
        for number in (1, 2):
            await subscribe(agent, tenant.agent_key, session, f"fake+test://silent/{number}")
        [found] = listenings()
        assert found._asking == {}
        assert found._interests.keys() == {OWN}
