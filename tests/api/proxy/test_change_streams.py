"""Streams that tell a caller of changed lists, in both revisions. docs/decisions/0110"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from gateway import draining
from oauth_ext.services.agent_keys import mint_agent_key
from orgs.services.organizations import delete_organization
from proxy import runtime
from proxy.sessions.stream_places import StreamPlaces
from proxy.views import change_streams
from tests.api.proxy import modern
from tests.api.proxy.asking import begin, named, session_of
from tests.api.proxy.conftest import Agent, headers
from tests.api.proxy.streams import Stream
from tests.factories.cast import Cast
from tests.factories.tenant import Tenant, connect, make_tenant, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

pytestmark = pytest.mark.django_db(transaction=True)
TOOLS = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_streams, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(change_streams, "LEAST_GAP_S", 0.05)


def listening(bearer: str, session: str | None) -> Stream:
    """The GET stream of a client."""
    return Stream("/v1/mcp", bearer, None, named(session), "GET")


def subscribed(bearer: str, wanted: dict[str, Any]) -> Stream:
    """The stream of a client of the modern revision."""
    params = {"_meta": modern.meta(), "notifications": wanted}
    body = {"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": params}
    return Stream("/v1/mcp", bearer, body, modern.said("subscriptions/listen", params))


async def list_tools(agent: Agent, bearer: str, session: str | None = None) -> list[str]:
    answer = await agent.rpc(bearer, "tools/list", **named(session))
    return [each["name"] for each in answer.json()["result"]["tools"]]


async def test_what_changes_for_a_caller_is_told(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, committed_cast: Cast
) -> None:
    """Rights, and a list that the vendor announced as changed."""
    opened = await begin(agent, tenant.agent_key)
    assert opened.json()["result"]["capabilities"]["tools"] == {"listChanged": True}
    session = opened.headers["Mcp-Session-Id"]
    await list_tools(agent, tenant.agent_key, session)
    async with listening(tenant.agent_key, session) as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
        await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
        assert await stream.read() == TOOLS
        live = runtime.current()
        [key] = live.pool._sessions
        for _ in range(2):
            live.pool.tools_changed(key)
            assert await stream.read() == TOOLS
        unheard = asyncio.ensure_future(stream.read())
        await in_thread(lambda: restrict_tools(committed_cast.other_org, "fake_list"))
        await list_tools(agent, tenant.agent_key, session)
        await asyncio.sleep(0.3)
        assert not unheard.done(), "nothing changed for this caller"
        unheard.cancel()


async def test_a_connection_that_is_made_is_told(agent: Agent, tenant: Tenant, committed_cast: Cast) -> None:
    other = await in_thread(lambda: make_tenant(committed_cast.other_org, committed_cast.user("other_owner"), name="b"))
    session = await session_of(agent, other.agent_key)
    async with listening(other.agent_key, session) as stream:
        await in_thread(lambda: connect(committed_cast.other_org, committed_cast.user("other_owner")))
        assert (await stream.read() or {})["method"] == "notifications/tools/list_changed"


async def test_a_subscription_of_the_modern_revision_is_told(agent: Agent, tenant: Tenant) -> None:
    wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": ["a:b"]}
    own = {f"{modern.RESERVED}subscriptionId": 7}
    async with subscribed(tenant.agent_key, wanted) as stream:
        begun = await stream.read()
        assert begun is not None
        assert begun["params"] == {"_meta": own, "notifications": {"toolsListChanged": True}}
        await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
        assert await stream.read() == {**TOOLS, "params": {"_meta": own}}
        await in_thread(lambda: mint_agent_key(actor=tenant.owner, client=tenant.client))
        ended = await stream.read()
        assert ended is not None
        assert (ended["id"], ended["result"]["_meta"][f"{modern.RESERVED}subscriptionId"]) == (7, 7)
        assert await stream.read() is None


async def test_nothing_is_told_while_rights_cannot_be_confirmed(
    agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key may have ended. A change meanwhile is told afterwards."""
    session = await session_of(agent, tenant.agent_key)
    await list_tools(agent, tenant.agent_key, session)
    live = runtime.current()

    async def unknown(names: object) -> None:
        return None

    async with listening(tenant.agent_key, session) as stream:
        with monkeypatch.context() as away:
            away.setattr(live.store, "read_epochs", unknown)
            unheard = asyncio.ensure_future(stream.read())
            [key] = live.pool._sessions
            live.pool.tools_changed(key)
            await asyncio.sleep(0.3)
            assert not unheard.done()
        assert await unheard == TOOLS


async def end_key(agent: Agent, tenant: Tenant, session: str) -> None:
    await in_thread(lambda: mint_agent_key(actor=tenant.owner, client=tenant.client))


async def end_organization(agent: Agent, tenant: Tenant, session: str) -> None:
    await in_thread(lambda: delete_organization(actor=tenant.owner, organization=tenant.organization))


async def end_session(agent: Agent, tenant: Tenant, session: str) -> None:
    answer = await agent.http.delete("/v1/mcp", headers=headers(tenant.agent_key, named(session)))
    assert answer.status_code == 204


async def stop(agent: Agent, tenant: Tenant, session: str) -> None:
    draining.begin()


@pytest.mark.parametrize("end", [end_key, end_organization, end_session, stop])
async def test_a_stream_ends_with_what_it_stands_on(
    agent: Agent,
    tenant: Tenant,
    monkeypatch: pytest.MonkeyPatch,
    end: Callable[[Agent, Tenant, str], Awaitable[None]],
) -> None:
    monkeypatch.setattr(draining, "_draining", threading.Event())
    session = await session_of(agent, tenant.agent_key)
    async with listening(tenant.agent_key, session) as stream:
        assert runtime.current().streams.taken == 1
        await end(agent, tenant, session)
        assert await stream.read() is None
    assert runtime.current().streams.taken == 0


async def test_streams_are_few(agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime.current(), "streams", StreamPlaces(of_all=3, of_organization=2, of_subject=1))
    session = await session_of(agent, tenant.agent_key)
    async with listening(tenant.agent_key, session):
        refused = await agent.http.get("/v1/mcp", headers=headers(tenant.agent_key, named(session)))
        assert refused.status_code == 405
        wanted = {"notifications": {"toolsListChanged": True}}
        answer = await modern.ask(agent, tenant.agent_key, "subscriptions/listen", wanted)
        assert '"notifications":{}' in answer.text, "honours nothing, and ends"
    async with listening(tenant.agent_key, session) as again:
        assert again.status == 200


async def test_a_stream_needs_a_session_of_its_own_and_reads_events(
    agent: Agent, tenant: Tenant, jwt: str, committed_cast: Cast
) -> None:
    async def get(bearer: str | None, session: str | None, path: str = "/v1/mcp", **more: str) -> httpx.Response:
        return await agent.http.get(path, headers=headers(bearer, {**named(session), **more}))

    colleague = await in_thread(lambda: make_tenant(committed_cast.org, committed_cast.user("owner"), name="other bot"))
    session = await session_of(agent, tenant.agent_key)
    assert (await get(tenant.agent_key, None)).status_code == 405
    assert (await get(None, session)).status_code == 401
    assert (await get(colleague.agent_key, session)).status_code == 404
    assert (await get(jwt, session, "/v1/fake/mcp")).status_code == 404
    assert (await get(tenant.agent_key, session, Accept="application/json")).status_code == 406
