"""Subscriptions to resources, in both revisions of callers and of vendors. docs/decisions/0113"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from django.conf import LazySettings

from credentials.models import Credential
from credentials.services.credentials import delete_credential
from gateway import draining
from gateway.coordination.exchange import Table
from gateway.coordination.rules import Rule
from gateway.coordination.store import CoordinationUnavailable
from oauth_ext.services.agent_keys import mint_agent_key
from proxy import runtime
from proxy.calls import subscribe_item
from proxy.calls.subscribe_item import NOT_ANNOUNCED
from proxy.protocol.item_kinds import Capability
from proxy.runtime import Runtime
from proxy.sessions import client_session, shared_changes
from proxy.sessions.session_subscriptions import KEPT_S, Holder
from proxy.vendors import item_directory, listening, tool_directory
from proxy.views import change_streams
from tests.api.proxy import modern
from tests.api.proxy.asking import begin, named, session_of
from tests.api.proxy.conftest import Agent, headers, inside
from tests.api.proxy.streams import Stream
from tests.api.proxy.traces import rows
from tests.factories.cast import Cast
from tests.factories.tenant import Tenant, connect, load_vendor, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.updating_vendor import UpdatingVendor
from tests.fakes.vendor import running_vendor

pytestmark = pytest.mark.django_db(transaction=True)
OWN, EXPOSED = "test://static-text", "fake+test://static-text"
UPDATED = "notifications/resources/updated"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_streams, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(change_streams, "LEAST_GAP_S", 0.05)
    monkeypatch.setattr(listening, "FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(listening, "LINGER_S", 0.1)


@pytest.fixture(params=["earlier", "modern"])
async def vendor(request: pytest.FixtureRequest) -> AsyncIterator[UpdatingVendor]:
    """The vendor of the tenant, of either revision."""
    async with running_vendor(UpdatingVendor, is_modern=request.param == "modern") as running:
        assert isinstance(running, UpdatingVendor)
        yield running


def listening_to(bearer: str, session: str | None) -> Stream:
    """The GET stream of a client."""
    return Stream("/v1/mcp", bearer, None, named(session), "GET")


def subscribed(bearer: str, *addresses: Any, path: str = "/v1/mcp") -> Stream:
    """The stream of a client of the modern revision."""
    params = {"_meta": modern.meta(), "notifications": {"resourceSubscriptions": list(addresses)}}
    body = {"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": params}
    return Stream(path, bearer, body, modern.said("subscriptions/listen", params))


async def subscribe(
    agent: Agent, bearer: str, session: str | None, uri: Any = EXPOSED, verb: str = "subscribe"
) -> httpx.Response:
    return await agent.rpc(bearer, f"resources/{verb}", {"uri": uri}, **named(session))


async def until(is_so: Callable[[], bool]) -> None:
    """Within five seconds."""
    async with asyncio.timeout(5):
        while not is_so():
            await asyncio.sleep(0.01)


async def silent(stream: Stream, for_s: float = 0.4) -> None:
    """Nothing is said."""
    unheard = asyncio.ensure_future(stream.read())
    await asyncio.sleep(for_s)
    assert not unheard.done(), unheard.result()
    unheard.cancel()
    await asyncio.wait([unheard])


def update(uri: str = EXPOSED) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": uri}}


async def test_a_session_hears_of_changes_until_it_unsubscribes(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor
) -> None:
    opened = await begin(agent, tenant.agent_key)
    assert opened.json()["result"]["capabilities"]["resources"] == {"listChanged": True, "subscribe": True}
    session = opened.headers["Mcp-Session-Id"]
    async with listening_to(tenant.agent_key, session) as stream:
        assert (await subscribe(agent, tenant.agent_key, session)).json()["result"] == {}
        await until(lambda: vendor.wanted == [OWN])
        await vendor.announce(OWN)
        assert await stream.read() == update()
        for lie in ("test://other", "x" * 10_240, "test://static-text-2", "test://static"):
            await vendor.announce(lie, to_all=True)
        await silent(stream)
        await vendor.announce(f"{OWN}/part", to_all=True)
        assert await stream.read() == update(), "of a part, under the address that was subscribed to"
        assert (await subscribe(agent, tenant.agent_key, session, verb="unsubscribe")).json()["result"] == {}
        await vendor.announce(OWN, to_all=True)
        await silent(stream)
    kept = [(row.kind, row.vendor, row.item, row.status) for row in await rows()]
    assert kept == [("resource", "fake", OWN, "success")] * 2


async def test_the_modern_revision_acknowledges_what_it_will_tell(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor
) -> None:
    own = {f"{modern.RESERVED}subscriptionId": 7}
    asked = (EXPOSED, "fake+file:///a/../b", "absent+test://x", "fake+" + "a" * 10_240, OWN, EXPOSED)
    async with subscribed(tenant.agent_key, *asked) as stream:
        begun = await stream.read()
        assert begun is not None
        assert sorted(begun["params"]["notifications"]["resourceSubscriptions"]) == [EXPOSED, OWN]
        await vendor.announce(OWN)
        heard = [await stream.read() for _ in range(2)]
        assert sorted(each["params"]["uri"] for each in heard if each) == [EXPOSED, OWN]
        assert all(each and (each["method"], each["params"]["_meta"]) == (UPDATED, own) for each in heard)
        await vendor.announce("test://other", to_all=True)
        await silent(stream)
        await in_thread(lambda: mint_agent_key(actor=tenant.owner, client=tenant.client))
        ended = await stream.read()
        assert ended is not None
        assert ended["result"]["_meta"][f"{modern.RESERVED}subscriptionId"] == 7
    found = sorted((row.item[:30], row.status) for row in await rows())
    assert found == sorted(
        [(OWN, "success")] * 2
        + [("fake+file:///a/../b", "denied"), ("absent+test://x", "denied"), ("fake+" + "a" * 25, "denied")]
    )


async def test_all_subscribers_share_one_stream_of_the_vendor(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor
) -> None:
    sessions = [await session_of(agent, tenant.agent_key) for _ in range(3)]
    streams = [listening_to(tenant.agent_key, each) for each in sessions]
    for stream in streams:
        await stream.begin()
    for session in sessions:
        await subscribe(agent, tenant.agent_key, session)
    await subscribe(agent, tenant.agent_key, sessions[0], "fake+file:///notes.md")
    await until(lambda: vendor.wanted == ["file:///notes.md", OWN])
    assert len(vendor.open_streams) == 1
    await vendor.announce(OWN)
    assert [await stream.read() for stream in streams] == [update()] * 3
    assert runtime.current().listening.stream_count == 1
    for stream in streams:
        await stream.__aexit__()
    assert vendor.most_streams <= 2, "another one only while it takes over"


async def test_a_storm_is_told_once_in_a_while(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_streams, "LEAST_GAP_S", 0.5)
    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session) as stream:
        await subscribe(agent, tenant.agent_key, session)
        await asyncio.sleep(0.6)
        for _ in range(500):
            await vendor.announce(OWN)
        heard = 0
        began_s = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() - began_s < 1.4:
            try:
                async with asyncio.timeout(0.7):
                    await stream.read()
                heard += 1
            except TimeoutError:
                break
        assert 1 <= heard <= 3


@pytest.mark.parametrize(
    "address", ["", 7, "fake+test://" + "a" * 10_240, "fake+file:///a/../../etc/passwd", "fake+file:///a/%252e%252e/x"]
)
async def test_addresses_that_no_vendor_may_see(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, address: Any
) -> None:
    session = await session_of(agent, tenant.agent_key)
    for verb in ("subscribe", "unsubscribe"):
        answer = await subscribe(agent, tenant.agent_key, session, address, verb)
        assert (answer.status_code, answer.json()["error"]["code"]) == (200, -32602)
    assert not vendor.seen["resources/subscribe"]
    assert {(row.kind, row.status, row.error_code) for row in await rows()} == {("resource", "denied", "bad_arguments")}


async def test_another_organization_subscribes_to_nothing(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: UpdatingVendor
) -> None:
    session = await session_of(agent, tenant.agent_key)
    await subscribe(agent, tenant.agent_key, session)
    theirs = await begin(agent, other_tenant.agent_key)
    assert "resources" not in theirs.json()["result"]["capabilities"]
    refused = await subscribe(agent, other_tenant.agent_key, theirs.headers["Mcp-Session-Id"])
    assert refused.json()["error"]["code"] == -32601
    assert (await subscribe(agent, other_tenant.agent_key, session)).status_code == 404, "the session of another"
    async with subscribed(other_tenant.agent_key, EXPOSED) as stream:
        begun = await stream.read()
        assert begun is not None
        assert begun["params"]["notifications"] == {}


async def test_a_list_that_limits_the_vendor_closes_its_resources(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor
) -> None:
    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session) as stream:
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
        heard = {(await stream.read() or {})["method"] for _ in range(3)}
        assert UPDATED not in heard
        await until(lambda: runtime.current().listening.taken <= 1)
        await vendor.announce(OWN, to_all=True)
        await silent(stream)
        answer = await subscribe(agent, tenant.agent_key, session)
        assert answer.json()["error"]["code"] in (-32601, -32602)
    opened = await begin(agent, tenant.agent_key)
    assert "resources" not in opened.json()["result"]["capabilities"]


async def test_no_session_no_subscription(agent: Agent, tenant: Tenant, vendor: UpdatingVendor) -> None:
    without = await begin(agent, tenant.agent_key, {})
    assert without.json()["result"]["capabilities"]["resources"] == {"listChanged": False}
    assert (await subscribe(agent, tenant.agent_key, None)).json()["error"]["code"] == -32601
    session = await session_of(agent, tenant.agent_key)
    assert (await subscribe(agent, tenant.agent_key, session)).status_code == 200
    await agent.http.delete("/v1/mcp", headers=headers(tenant.agent_key, named(session)))
    for verb in ("subscribe", "unsubscribe"):
        assert (await subscribe(agent, tenant.agent_key, session, verb=verb)).status_code == 404


async def test_a_vendor_that_announces_nothing_or_refuses(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await session_of(agent, tenant.agent_key)
    vendor.errors["resources/subscribe"] = {"code": -32002, "message": "no such thing"}
    vendor.keeps_none = True
    answer = await subscribe(agent, tenant.agent_key, session)
    assert answer.json()["error"]["code"] == (-32602 if vendor.is_modern else -32002)
    async with subscribed(tenant.agent_key, EXPOSED) as stream:
        begun = await stream.read()
        assert begun is not None
        assert begun["params"]["notifications"] == {}
    await until(lambda: runtime.current().listening.taken == 0)


@pytest.mark.parametrize("status", [400, 404, 405, 500])
async def test_a_vendor_without_a_stream_keeps_its_session(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, status: int
) -> None:
    """Nothing is promised that cannot be kept."""
    vendor.has_stream, vendor.no_stream = False, status
    session = await session_of(agent, tenant.agent_key)
    answer = await subscribe(agent, tenant.agent_key, session)
    if vendor.is_modern:
        assert "result" in answer.json()
    else:
        assert answer.json()["error"]["code"] == -32603
        assert (vendor.seen["resources/subscribe"], vendor.seen["initialize"]) == (0, 1)
        (row,) = await rows()
        assert (row.kind, row.item, row.status) == ("resource", OWN, "error")


async def test_an_address_that_the_vendor_does_not_answer_takes_nothing_from_others(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    if vendor.is_modern:
        pytest.skip("one request names all addresses")
    monkeypatch.setattr(subscribe_item, "CONFIRM_WITHIN_S", 0.5)
    vendor.silent_about.add("file:///notes.md")
    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session) as stream:
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        answer = await subscribe(agent, tenant.agent_key, session, "fake+file:///notes.md")
        assert answer.json()["error"]["data"]["reason"] == "vendor_timeout"
        await vendor.announce(OWN)
        assert await stream.read() == update()
        assert vendor.seen["GET"] == 1


async def test_an_organization_and_its_streams_have_bounds(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.NEW_SUBSCRIPTIONS = Rule("subscriptions", limit=1, window_s=3600)
    session = await session_of(agent, tenant.agent_key)
    assert "result" in (await subscribe(agent, tenant.agent_key, session)).json()
    more = await subscribe(agent, tenant.agent_key, session, "fake+file:///notes.md")
    assert more.json()["error"]["message"] == subscribe_item.TOO_MANY_WITHIN_AN_HOUR
    hub = runtime.current().listening
    monkeypatch.setattr(hub._streams, "_most", (0, 0))
    async with running_vendor(UpdatingVendor) as second:
        await in_thread(lambda: load_vendor(second.url, slug="second"))
        await in_thread(lambda: connect(tenant.organization, tenant.owner, "second"))
        full = await subscribe(agent, tenant.agent_key, session, "second+test://static-text")
        assert full.json()["error"]["data"]["reason"] == "vendor_unavailable"
        assert second.seen["GET"] == 0


async def test_a_vendor_that_does_not_announce(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, committed_cast: Cast
) -> None:
    async with running_vendor(UpdatingVendor, announces=False) as quiet:
        await in_thread(lambda: load_vendor(quiet.url, slug="quiet"))
        await in_thread(lambda: connect(tenant.organization, tenant.owner, "quiet"))
        session = await session_of(agent, tenant.agent_key)
        answer = await subscribe(agent, tenant.agent_key, session, "quiet+test://static-text")
        assert answer.json()["error"] == {"code": -32602, "message": NOT_ANNOUNCED}
        assert "result" in (await subscribe(agent, tenant.agent_key, session)).json()
        both = await subscribe(agent, tenant.agent_key, session, OWN)
        assert "Several vendors" in both.json()["error"]["message"]


async def test_a_replaced_credential_is_listened_with(agent: Agent, tenant: Tenant, vendor: UpdatingVendor) -> None:
    """The resource may be another one with it."""
    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session) as stream:
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        vendor.api_key = "new-key"
        await in_thread(lambda: connect(tenant.organization, tenant.owner, apiKey="new-key"))
        while (await stream.read() or {})["method"] != UPDATED:
            pass
        await until(lambda: vendor.headers.get("X-Api-Key") == "new-key" or vendor.is_modern)
        await vendor.announce(OWN)
        while (await stream.read() or {})["method"] != UPDATED:
            pass


async def test_a_vendor_that_is_disconnected_is_heard_no_more(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor
) -> None:
    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session) as stream:
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        credential = await in_thread(lambda: Credential.objects.get(organization=tenant.organization))
        await in_thread(lambda: delete_credential(actor=tenant.owner, credential=credential))
        heard = {(await stream.read() or {})["method"] for _ in range(3)}
        assert UPDATED not in heard
        await until(lambda: runtime.current().listening.taken <= 1)
        await vendor.announce(OWN, to_all=True)
        await silent(stream)


async def test_a_change_while_the_vendor_is_away_is_told(agent: Agent, tenant: Tenant, vendor: UpdatingVendor) -> None:
    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session) as stream:
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        await silent(stream, 0.2)
        vendor.end_streams()
        assert await stream.read() == update(), "it may have changed meanwhile"
        vendor.forget_sessions()
        vendor.subscribed.clear()
        vendor.end_streams()
        assert await stream.read() == update()
        await until(lambda: vendor.wanted == [OWN])
        await vendor.announce(OWN)
        assert await stream.read() == update()


async def test_a_change_while_no_stream_is_open_is_told(agent: Agent, tenant: Tenant, vendor: UpdatingVendor) -> None:
    session = await session_of(agent, tenant.agent_key)
    await subscribe(agent, tenant.agent_key, session)
    async with listening_to(tenant.agent_key, session) as stream:
        assert await stream.read() == update()
        await silent(stream, 0.2)
        await vendor.announce(OWN)
        assert await stream.read() == update()


async def test_nothing_is_told_while_rights_cannot_be_confirmed(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await session_of(agent, tenant.agent_key)
    live = runtime.current()

    async def unknown(names: object) -> None:
        return None

    async with listening_to(tenant.agent_key, session) as stream:
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        await silent(stream, 0.2)
        with monkeypatch.context() as away:
            away.setattr(live.store, "read_epochs", unknown)
            await asyncio.sleep(0.2)  # a look under way has read the epochs already
            unheard = asyncio.ensure_future(stream.read())
            await vendor.announce(OWN)
            await asyncio.sleep(0.3)
            assert not unheard.done()
        assert await unheard == update()


async def test_a_store_that_is_away_is_said(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await session_of(agent, tenant.agent_key)

    async def away(*values: object, **more: object) -> bool:
        raise CoordinationUnavailable("away")

    monkeypatch.setattr(runtime.current().subscriptions._exchange, "set_field", away)
    assert (await subscribe(agent, tenant.agent_key, session)).status_code == 503


@pytest.mark.parametrize("kind", ["key", "session", "process"])
async def test_a_subscription_ends_with_what_it_stands_on(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(draining, "_draining", threading.Event())
    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session) as stream:
        await subscribe(agent, tenant.agent_key, session)
        await until(lambda: vendor.wanted == [OWN])
        if kind == "key":
            await in_thread(lambda: mint_agent_key(actor=tenant.owner, client=tenant.client))
        elif kind == "session":
            await agent.http.delete("/v1/mcp", headers=headers(tenant.agent_key, named(session)))
        else:
            draining.begin()
        assert await stream.read() is None
    await until(lambda: runtime.current().listening.taken <= 1)


async def test_a_subscription_made_at_another_process(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, other_process: Runtime
) -> None:
    """And its end, and the end of the session."""
    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session) as stream:
        with inside(other_process):
            assert "result" in (await subscribe(agent, tenant.agent_key, session)).json()
        assert await stream.read() == update(), "it may have changed before this process listened"
        await vendor.announce(OWN)
        assert await stream.read() == update()
        with inside(other_process):
            assert "result" in (await subscribe(agent, tenant.agent_key, session, verb="unsubscribe")).json()
        await until(lambda: runtime.current().listening.taken == 0)
        await vendor.announce(OWN, to_all=True)
        await silent(stream)
        with inside(other_process):
            await agent.http.delete("/v1/mcp", headers=headers(tenant.agent_key, named(session)))
        assert await stream.read() is None


@pytest.mark.parametrize("kind", ["tools", "prompts", "resources"])
async def test_a_change_that_another_process_heard(
    agent: Agent,
    tenant: Tenant,
    other_tenant: Tenant,
    vendor: UpdatingVendor,
    other_process: Runtime,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    """The streams of this process tell it, and its list is fetched again."""
    for each in (tool_directory, item_directory):
        monkeypatch.setattr(each, "REFETCH_AFTER_S", 0.0)
    session = await session_of(agent, tenant.agent_key)
    theirs = await session_of(agent, other_tenant.agent_key)
    async with listening_to(tenant.agent_key, session) as stream, listening_to(other_tenant.agent_key, theirs) as other:
        for process in (other_process, runtime.current()):
            with inside(process):
                await agent.rpc(tenant.agent_key, f"{kind}/list")
        before = vendor.seen[f"{kind}/list"]
        await agent.rpc(tenant.agent_key, f"{kind}/list")
        assert vendor.seen[f"{kind}/list"] == before, "it is known"
        [key] = other_process.pool._sessions
        if kind == "tools":
            other_process.pool.tools_changed(key)
        else:
            other_process.pool.items_changed(key, Capability(kind))
        assert await stream.read() == {"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"}
        await agent.rpc(tenant.agent_key, f"{kind}/list")
        assert vendor.seen[f"{kind}/list"] == before + 1
        await silent(other)


async def test_changes_while_the_exchange_is_away_are_told(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, other_process: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the process that heard it, once it can; and a process that could not read tells of everything."""
    monkeypatch.setattr(shared_changes, "_PAUSE_S", 0.1)

    async def away(*values: object, **more: object) -> bool:
        raise CoordinationUnavailable("away")

    session = await session_of(agent, tenant.agent_key)
    async with listening_to(tenant.agent_key, session) as stream:
        for process in (other_process, runtime.current()):
            with inside(process):
                await agent.rpc(tenant.agent_key, "tools/list")
        with monkeypatch.context() as patch:
            patch.setattr(other_process.shared_changes._exchange, "append", away)
            [key] = other_process.pool._sessions
            other_process.pool.tools_changed(key)
            await silent(stream, 0.8)
        assert (await stream.read() or {})["method"] == "notifications/tools/list_changed"
        await silent(stream, 0.8)
        here = runtime.current().shared_changes
        with monkeypatch.context() as patch:
            patch.setattr(here._exchange, "read_after", away)
            await until(lambda: here._place is None)
        heard = {(await stream.read() or {})["method"] for _ in range(3)}
        assert heard == {f"notifications/{each}/list_changed" for each in ("tools", "prompts", "resources")}


@pytest.mark.parametrize("holder", [Holder.SUBJECT, Holder.ORGANIZATION])
async def test_what_all_sessions_keep_is_bounded(
    agent: Agent,
    tenant: Tenant,
    vendor: UpdatingVendor,
    other_process: Runtime,
    monkeypatch: pytest.MonkeyPatch,
    holder: Holder,
) -> None:
    """Over processes, and until a session ends."""
    for live in (runtime.current(), other_process):
        monkeypatch.setattr(live.subscriptions, f"_of_{holder.name.lower()}", 2)
    sessions = [await session_of(agent, tenant.agent_key) for _ in range(3)]
    for session in sessions[:2]:
        assert "result" in (await subscribe(agent, tenant.agent_key, session)).json()
    for process in (other_process, runtime.current()):
        with inside(process):
            full = await subscribe(agent, tenant.agent_key, sessions[2])
        assert full.json()["error"] == {"code": -32602, "message": subscribe_item.TOO_MANY[holder]}
    assert "result" in (await subscribe(agent, tenant.agent_key, sessions[0])).json(), "it has its place"
    ended = await agent.http.delete("/v1/mcp", headers=headers(tenant.agent_key, named(sessions[1])))
    assert ended.status_code == 204
    with inside(other_process):
        assert "result" in (await subscribe(agent, tenant.agent_key, sessions[2])).json()
    await subscribe(agent, tenant.agent_key, sessions[0], verb="unsubscribe")
    assert "result" in (await subscribe(agent, tenant.agent_key, sessions[2], OWN)).json()


async def test_subscriptions_end_with_their_session(
    agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_s: list[int] = []
    exchange = runtime.current().subscriptions._exchange
    set_field = exchange.set_field

    async def noted(table: Table, field: bytes, value: bytes, *, ttl_s: int) -> str:
        kept_s.append(ttl_s)
        return await set_field(table, field, value, ttl_s=ttl_s)

    monkeypatch.setattr(exchange, "set_field", noted)
    await subscribe(agent, tenant.agent_key, await session_of(agent, tenant.agent_key))
    monkeypatch.setattr(client_session, "LIFETIME_S", 90)
    await subscribe(agent, tenant.agent_key, await session_of(agent, tenant.agent_key))
    assert kept_s[0] == KEPT_S
    assert 60 <= kept_s[1] <= 90


async def test_bounds(agent: Agent, tenant: Tenant, vendor: UpdatingVendor, monkeypatch: pytest.MonkeyPatch) -> None:
    session = await session_of(agent, tenant.agent_key)
    live = runtime.current()
    monkeypatch.setattr(live.subscriptions, "_of_session", 1)
    assert "result" in (await subscribe(agent, tenant.agent_key, session)).json()
    more = await subscribe(agent, tenant.agent_key, session, "fake+file:///notes.md")
    assert (more.json()["error"]["code"], "too many" in more.text) == (-32602, True)
    assert "result" in (await subscribe(agent, tenant.agent_key, session)).json(), "it has its place"
    monkeypatch.setattr(live.listening._places, "_most", (10_000, 10_000, 10_000, 0))
    full = await subscribe(agent, tenant.agent_key, await session_of(agent, tenant.agent_key))
    assert full.json()["error"]["data"]["reason"] == "vendor_unavailable"
    async with subscribed(tenant.agent_key, EXPOSED) as stream:
        begun = await stream.read()
        assert begun is not None
        assert begun["params"]["notifications"] == {}
