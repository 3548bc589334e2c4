"""Attacks on subscriptions: callers and vendors that want too much, and rights that end at a bad moment.

docs/decisions/0113
"""

from __future__ import annotations

from typing import Any

import pytest

from proxy.calls import subscribe_item
from tests.api.proxy.asking import session_of
from tests.api.proxy.conftest import Agent
from tests.api.proxy.test_subscriptions import (
    EXPOSED,
    _impatient,
    listening_to,
    subscribe,
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
