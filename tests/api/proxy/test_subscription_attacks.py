"""Attacks on subscriptions: callers and vendors that want too much, and rights that end at a bad moment.

docs/decisions/0113
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from proxy import runtime
from proxy.calls import subscribe_item, watched_resources
from proxy.hot_path_database import DatabaseUnavailable
from proxy.vendors import listening
from proxy.vendors.listening import VendorListening
from proxy.views import change_streams
from tests.api.proxy.asking import session_of
from tests.api.proxy.conftest import Agent
from tests.api.proxy.streams import Stream
from tests.api.proxy.test_subscriptions import (
    EXPOSED,
    OWN,
    UPDATED,
    _impatient,
    listening_to,
    silent,
    subscribe,
    until,
    update,
    vendor,
)
from tests.factories.tenant import Tenant, connect
from tests.factories.threads import in_thread
from tests.fakes.updating_vendor import UpdatingVendor
from tests.fakes.updating_vendor import _event as event

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


@contextlib.asynccontextmanager
async def all_from(stream: Stream) -> AsyncIterator[list[dict[str, Any]]]:
    """All that it says, as it comes."""
    heard: list[dict[str, Any]] = []

    async def read() -> None:
        while (message := await stream.read()) is not None:
            heard.append(message)

    reading = asyncio.ensure_future(read())
    yield heard
    reading.cancel()
    await asyncio.wait([reading])


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


async def replace_key(tenant: Tenant, vendor: UpdatingVendor) -> None:
    vendor.api_key = "new-key"
    await in_thread(lambda: connect(tenant.organization, tenant.owner, apiKey="new-key"))


async def test_a_former_credential_is_not_listened_with(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its account may be another one; with the new one the vendor announces nothing."""
    if vendor.is_modern:
        pytest.skip("it is not asked again what it declares")
    monkeypatch.setattr(change_streams, "LOOK_EVERY_S", 2.0)
    monkeypatch.setattr(subscribe_item, "HELD_S", 0.1)
    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session) as stream:
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        async with all_from(stream) as heard:
            await asyncio.sleep(0.3)
            heard.clear()
            vendor.announces = False
            await replace_key(tenant, vendor)
            await agent.rpc(tenant.agent_key, "resources/list")
            await until(lambda: not listenings())
            await vendor.announce(OWN, to_all=True)
            await asyncio.sleep(0.3)
        assert UPDATED not in {each["method"] for each in heard}


async def test_a_stream_outlives_a_database_that_is_away(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sign-in’s token cannot be renewed then. A change meanwhile is told."""
    session = await session_of(agent, tenant.agent_key)

    async def away(*values: object) -> None:
        raise DatabaseUnavailable

    async with listening_to(tenant.agent_key, session) as stream:
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        with monkeypatch.context() as patch:
            patch.setattr(watched_resources, "usable_now", away)
            await replace_key(tenant, vendor)
            await until(lambda: runtime.current().listening.taken <= 1)
        while (await stream.read() or {})["method"] != UPDATED:
            pass


async def test_what_changed_while_a_stream_had_no_place_is_told(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscribe_item, "HELD_S", 0.1)
    sessions = [await session_of(agent, tenant.agent_key) for _ in range(2)]
    async with listening_to(tenant.agent_key, sessions[0]) as first:
        for session in sessions:
            await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        await asyncio.sleep(0.2)
        with monkeypatch.context() as full:
            full.setattr(runtime.current().listening._places, "_most", (10, 10, 10, 0))
            second = listening_to(tenant.agent_key, sessions[1])
            await second.begin()
            await vendor.announce(OWN)
            assert await first.read() == update()
            await silent(second, 0.2)
        assert await second.read() == update()
        await second.__aexit__()


async def test_an_address_that_leads_elsewhere_by_now(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vendor's own address may be another vendor's later."""
    monkeypatch.setattr(subscribe_item, "HELD_S", 0.1)
    find = subscribe_item.find_resource

    async def find_elsewhere(*values: Any) -> Any:
        found = await find(*values)
        return replace(found, item=replace(found.item, own="file:///notes.md"))

    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session) as stream:
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        monkeypatch.setattr(subscribe_item, "find_resource", find_elsewhere)
        await subscribe(agent, tenant.agent_key, session)
        async with all_from(stream) as heard:
            await until(lambda: [set(each._interests) for each in listenings()] == [{"file:///notes.md"}])
            await until(lambda: "file:///notes.md" in vendor.wanted)
            await asyncio.sleep(0.3)
            heard.clear()
            await vendor.announce("file:///notes.md")
            await until(lambda: heard == [update()])


async def test_a_vendor_that_misuses_its_stream(agent: Agent, tenant: Tenant, vendor: UpdatingVendor) -> None:
    """Questions are refused, nonsense and floods end the stream, and the next one tells what may have changed."""
    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session) as stream:
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        async with all_from(stream) as heard:
            question = {"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {}}
            huge = {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": OWN, "more": "x" * 11 * 1024 * 1024}}
            lies = {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": ["test://x"]}}
            result = {"jsonrpc": "2.0", "id": 999, "result": {}}
            for each in (question, lies, result, update(OWN)):
                await vendor.open_streams[-1].response.write(event(each))
            await until(lambda: heard == [update()])
            heard.clear()
            for said in (event(huge), b"data: no json\n\n"):
                with contextlib.suppress(ConnectionError):
                    await vendor.open_streams[-1].response.write(said)
                await until(lambda: heard == [update()])
                heard.clear()
            assert "result" in (await agent.rpc(tenant.agent_key, "tools/list")).json()


async def test_a_vendor_that_ends_its_streams_is_asked_ever_more_rarely(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "FIRST_PAUSE_S", 0.2)
    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session) as stream, all_from(stream):
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        ends_s = asyncio.get_running_loop().time() + 3.0
        while asyncio.get_running_loop().time() < ends_s:
            vendor.end_streams()
            await asyncio.sleep(0.02)
        assert vendor.seen["GET"] + vendor.seen["subscriptions/listen"] <= 7


async def test_a_vendor_that_refuses_later_is_told_of_once(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked again in a while, and a change meanwhile is told once it agrees."""
    monkeypatch.setattr(change_streams, "READ_AGAIN_S", 0.2)
    monkeypatch.setattr(subscribe_item, "HELD_S", 0.1)
    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session) as stream, all_from(stream) as heard:
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        await asyncio.sleep(0.3)
        heard.clear()
        vendor.errors["resources/subscribe"] = {"code": -32603, "message": "not now"}
        vendor.keeps_none = True
        vendor.end_streams()
        await until(lambda: heard == [update()])
        asked = vendor.seen["resources/subscribe"] + vendor.seen["subscriptions/listen"]
        await asyncio.sleep(1.5)
        assert heard == [update()]
        assert vendor.seen["resources/subscribe"] + vendor.seen["subscriptions/listen"] > asked
        heard.clear()
        vendor.errors.clear()
        vendor.keeps_none = False
        await until(lambda: heard == [update()])
