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
from django.conf import settings
from redis import Redis

from credentials.models import Credential
from credentials.services.credentials import delete_credential
from gateway.coordination.sqlite_exchange import SQLiteExchange
from proxy import runtime
from proxy.calls import subscribe_item, watched_resources
from proxy.hot_path_database import DatabaseUnavailable
from proxy.runtime import Runtime
from proxy.vendors import errors, listening
from proxy.vendors.circuit import FAILURES_UNTIL_OPEN
from proxy.vendors.errors import Evidence
from proxy.vendors.listening import VendorListening
from proxy.views import change_streams
from tests.api.proxy.asking import session_of
from tests.api.proxy.conftest import Agent, inside
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
    longest = [f"fake+test://{number:02}" + "a" * 2_030 for number in range(49)]
    for address in longest:
        assert "result" in (await subscribe(agent, tenant.agent_key, session, address)).json()
    await subscribe(agent, tenant.agent_key, session)
    async with listening_to(tenant.agent_key, session) as stream, all_from(stream) as heard:
        await until(lambda: {each["params"]["uri"] for each in heard} == {EXPOSED, *longest})


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
    """Its account may be another one; with the new one the vendor announces nothing, or the new account's changes."""
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
            if not vendor.is_modern:
                await until(lambda: not listenings())
                await vendor.announce(OWN, to_all=True)
                await asyncio.sleep(0.3)
                assert UPDATED not in {each["method"] for each in heard}
                return
            # It is not asked again what it declares, so it is listened to, and with the new one alone.
            await until(lambda: {each.key for each in vendor.open_streams} == {"new-key"})
            await until(lambda: [len(each._interests) for each in listenings()] == [1])
            await until(lambda: update() in heard)  # the account may be another one


async def test_a_removed_credential_is_listened_with_for_seconds(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor
) -> None:
    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session):
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        credential = await in_thread(lambda: Credential.objects.get(organization=tenant.organization))
        began_s = asyncio.get_running_loop().time()
        await in_thread(lambda: delete_credential(actor=tenant.owner, credential=credential))
        async with asyncio.timeout(subscribe_item.HELD_S + 5):
            while vendor.open_streams or listenings():
                await asyncio.sleep(0.05)
        # The agreement is kept for a stream to take over, and no longer.
        assert asyncio.get_running_loop().time() - began_s < subscribe_item.HELD_S + listening.LINGER_S + 1


async def test_an_open_circuit_is_not_listened_to(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by streams that begin again nor by new addresses, and the trial that works ends it for calls as well."""
    session, pool = await session_of(agent, tenant.agent_key), runtime.current().pool
    async with listening_to(tenant.agent_key, session) as stream, all_from(stream) as heard:
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        [found] = listenings()
        now_s = [0.0]
        monkeypatch.setattr(pool.circuits, "_monotonic", lambda: now_s[0])
        for _ in range(FAILURES_UNTIL_OPEN):
            pool.circuits.record(found.destination, Evidence.CONNECT_FAILED)
        asked = vendor.seen.total()
        vendor.end_streams()
        await until(lambda: not vendor.open_streams)
        await asyncio.sleep(0.3)
        answer = await subscribe(agent, tenant.agent_key, session, "fake+file:///notes.md")
        assert answer.json()["error"]["data"]["reason"] == "vendor_unavailable"
        assert answer.json()["error"]["data"]["retryAfter"] == 10
        await asyncio.sleep(0.5)
        assert vendor.seen.total() == asked
        heard.clear()
        now_s[0] = 11.0
        monkeypatch.setattr(listening, "LONGEST_PAUSE_S", 0.1)
        found._changed.set()
        await until(lambda: vendor.wanted == [OWN])
        await until(lambda: not pool.circuits.has_trouble)
        await until(lambda: heard == [update()])


async def test_listeners_open_the_circuit_of_a_vendor_that_is_gone(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, pool = await session_of(agent, tenant.agent_key), runtime.current().pool
    monkeypatch.setattr(listening, "LONGEST_PAUSE_S", 0.1)
    attempts = 0

    async def lost(*values: object) -> None:
        nonlocal attempts
        attempts += 1
        raise errors.unavailable(evidence=Evidence.CONNECT_FAILED)

    async with listening_to(tenant.agent_key, session) as stream, all_from(stream):
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        [found] = listenings()
        monkeypatch.setattr(found, "_listen_and_subscribe", lost)
        monkeypatch.setattr(found, "_listen_anew", lost)
        vendor.end_streams()
        await until(lambda: pool.circuits.open_vendors() == {"fake"})
        most = attempts
        await asyncio.sleep(0.5)
        assert attempts == most


async def begin_again(vendor: UpdatingVendor) -> None:
    former = list(vendor.open_streams)
    vendor.end_streams()
    await until(lambda: vendor.open_streams not in ([], former))


async def test_a_stream_that_begins_again_hides_no_calls_without_an_answer(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor
) -> None:
    """A host may close streams every minute, and a vendor's calls may take longer than that to fail."""
    session, circuits = await session_of(agent, tenant.agent_key), runtime.current().pool.circuits
    async with listening_to(tenant.agent_key, session) as stream, all_from(stream):
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        [found] = listenings()
        vendor.silent_about.add(OWN)
        for number in range(FAILURES_UNTIL_OPEN):
            assert not circuits.open_vendors()
            circuits.record(found.destination, Evidence.NO_RESPONSE)
            if number == FAILURES_UNTIL_OPEN - 2:
                await begin_again(vendor)
                await until(found._is_open.is_set)
        # The modern vendor has answered the request that began its stream.
        assert circuits.open_vendors() == (set() if vendor.is_modern else {"fake"})


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


@contextlib.asynccontextmanager
async def told_of_a_refusal(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor
) -> AsyncIterator[list[dict[str, Any]]]:
    """All that a session hears whose address the vendor has begun to refuse: so far one change."""
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
        yield heard


async def test_a_vendor_that_refuses_later_is_told_of_once(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked again in a while, and a change meanwhile is told once it agrees."""
    monkeypatch.setattr(change_streams, "READ_AGAIN_S", 0.2)
    monkeypatch.setattr(subscribe_item, "HELD_S", 0.1)
    async with told_of_a_refusal(agent, tenant, vendor) as heard:
        asked = vendor.seen["resources/subscribe"] + vendor.seen["subscriptions/listen"]
        await asyncio.sleep(1.5)
        assert heard == [update()]
        assert vendor.seen["resources/subscribe"] + vendor.seen["subscriptions/listen"] > asked
        heard.clear()
        vendor.errors.clear()
        vendor.keeps_none = False
        await until(lambda: heard == [update()])


def lose_everything() -> None:
    """As an exchange that was emptied."""
    exchange = runtime.current().exchange
    if isinstance(exchange, SQLiteExchange):
        exchange._execute("DELETE FROM field")
    else:
        redis = Redis.from_url(settings.REDIS_URL)
        for key in redis.scan_iter(f"{settings.COORDINATION_PREFIX}*"):
            redis.delete(key)


def kept_count() -> int:
    """Subscriptions in the exchange."""
    exchange = runtime.current().exchange
    if isinstance(exchange, SQLiteExchange):
        return int(exchange._execute("SELECT count(*) FROM field WHERE field <> x''")[0][0])
    redis = Redis.from_url(settings.REDIS_URL)
    names = redis.scan_iter(f"{settings.COORDINATION_PREFIX}subscriptions:*places")
    return max((int(redis.zcard(name)) for name in names), default=0)  # the organization's


async def test_an_exchange_that_loses_everything_loses_no_subscription(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, other_process: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream keeps what it tells of again, at the next change of its caller; and what comes meanwhile counts too."""
    monkeypatch.setattr(subscribe_item, "HELD_S", 0.1)
    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session) as stream, all_from(stream) as heard:
        await subscribe(agent, tenant.agent_key, session)
        await subscribe(agent, tenant.agent_key, session, "fake+file:///notes.md")
        await subscribe(agent, tenant.agent_key, session, "fake+file:///notes.md", "unsubscribe")
        await asyncio.sleep(0.3)  # from here on the stream alone holds it
        await until(lambda: vendor.wanted == [OWN] and runtime.current().listening.taken == 1)
        lose_everything()
        if isinstance(runtime.current().exchange, SQLiteExchange):  # a Redis that was emptied has no epochs either
            await in_thread(lambda: connect(tenant.organization, tenant.owner))
        await until(lambda: kept_count() == 1)
        with inside(other_process):
            await subscribe(agent, tenant.agent_key, session, "fake+test://image")
        await until(lambda: vendor.wanted == sorted([OWN, "test://image"]))
        assert kept_count() == 2
        heard.clear()
        await vendor.announce(OWN)
        await until(lambda: update() in heard)
    async with listening_to(tenant.agent_key, session) as stream, all_from(stream) as heard:
        await until(lambda: update() in heard and update("fake+test://image") in heard)


async def test_what_a_vendor_refuses_for_now_is_kept_again_too(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscribe_item, "HELD_S", 0.1)
    async with told_of_a_refusal(agent, tenant, vendor):
        lose_everything()
        if isinstance(runtime.current().exchange, SQLiteExchange):  # a Redis that was emptied has no epochs either
            await in_thread(lambda: connect(tenant.organization, tenant.owner))
        await until(lambda: kept_count() == 1)


async def test_a_stream_that_made_way_is_listened_to_again_when_there_is_a_place(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = runtime.current().listening
    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session) as stream, all_from(stream) as heard:
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        [(key, found)] = hub._listenings.items()
        with monkeypatch.context() as full:
            full.setattr(hub._streams, "_most", (0, 0))
            hub._end(key, found)
            found.displace()
            await until(lambda: not vendor.open_streams)
            await asyncio.sleep(0.3)
            assert not listenings()
            heard.clear()
        await until(lambda: vendor.wanted == [OWN])
        await until(lambda: heard == [update()])
