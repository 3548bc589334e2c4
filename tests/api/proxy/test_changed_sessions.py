"""Sessions whose end or log level is kept are bounded, per subject and per organization. docs/decisions/0110"""

from __future__ import annotations

from typing import Any

import pytest

from gateway.coordination.rules import Rule
from orgs.principal import Principal
from proxy import runtime
from proxy.sessions import client_session
from proxy.sessions.client_session import ClientSession, ClientSessionState
from proxy.sessions.session_states import SessionStates, TooManyChanges
from tests.api.proxy import asking
from tests.api.proxy.asking import named, session_of
from tests.api.proxy.conftest import Agent, headers
from tests.factories.cast import Cast
from tests.factories.tenant import Tenant, make_connected_tenant, make_tenant
from tests.factories.threads import in_thread

pytestmark = pytest.mark.django_db(transaction=True)
vendor, tenant = asking.vendor, asking.tenant
ENDED = ClientSessionState(is_ended=True)
SECRET = b"tests" * 8


async def principal_of(tenant: Tenant) -> Principal:
    return (await runtime.current().caller_cache.get(tenant.agent_key, "127.0.0.1")).principal


async def colleague_of(cast: Cast) -> Tenant:
    return await in_thread(lambda: make_tenant(cast.org, cast.user("owner"), name="other bot"))


async def foreign_to(cast: Cast, url: str) -> Tenant:
    return await in_thread(lambda: make_connected_tenant(cast.other_org, cast.user("other_owner"), url))


def new_session(principal: Principal) -> ClientSession:
    issued = client_session.issued(principal, "/v1/mcp", {"elicitation": {}})
    return client_session.opened(principal, "/v1/mcp", issued)


async def is_kept(states: SessionStates, principal: Principal) -> bool:
    """Whether the end of one more session is kept."""
    try:
        await states.change(principal, new_session(principal), ENDED, is_first=True)
    except TooManyChanges:
        return False
    return True


async def test_ten_thousand_ended_sessions_leave_a_bounded_number(
    agent: Agent, tenant: Tenant, vendor: asking.AskingVendor, committed_cast: Cast, settings: Any
) -> None:
    live, principal = runtime.current(), await principal_of(tenant)
    names = []
    for _ in range(10_000):
        session = new_session(principal)
        names.append(session.epoch)
        try:
            await live.session_states.change(principal, session, ENDED, is_first=True)
        except TooManyChanges:
            continue
    kept = 0
    for first in range(0, len(names), 1_000):
        kept += sum(1 for value in await live.store.read_epochs(names[first : first + 1_000]) or () if value)
    assert kept == settings.SESSION_CHANGES.limit
    for other in (await colleague_of(committed_cast), await foreign_to(committed_cast, vendor.url)):
        assert await is_kept(live.session_states, await principal_of(other))


async def test_an_organization_has_a_bound_of_its_own(
    agent: Agent, tenant: Tenant, vendor: asking.AskingVendor, committed_cast: Cast
) -> None:
    live = runtime.current()
    rules: dict[str, Any] = {"of_subject": Rule("few", 5, 60), "of_organization": Rule("few-of-organization", 3, 60)}
    states = SessionStates(live.store, live.exchange, SECRET, **rules)
    colleague, foreign = await colleague_of(committed_cast), await foreign_to(committed_cast, vendor.url)
    assert [await is_kept(states, await principal_of(tenant)) for _ in range(2)] == [True, True]
    assert [await is_kept(states, await principal_of(colleague)) for _ in range(2)] == [True, False]
    assert await is_kept(states, await principal_of(foreign))


async def test_a_session_that_may_not_end_lives_on(
    agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes of a session that has changed before take no more room."""
    monkeypatch.setattr(runtime.current().session_states, "_of_subject", Rule("one-change", 1, 60))
    first, second = await session_of(agent, tenant.agent_key), await session_of(agent, tenant.agent_key)
    for level in ("info", "error"):
        answer = await agent.rpc(tenant.agent_key, "logging/setLevel", {"level": level}, **named(first))
        assert answer.json()["result"] == {}
    answer = await agent.http.delete("/v1/mcp", headers=headers(tenant.agent_key, named(second)))
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0
    assert (
        await agent.rpc(tenant.agent_key, "logging/setLevel", {"level": "info"}, **named(second))
    ).status_code == 429
    assert (await agent.rpc(tenant.agent_key, "ping", {}, **named(second))).status_code == 200
    answer = await agent.http.delete("/v1/mcp", headers=headers(tenant.agent_key, named(first)))
    assert answer.status_code == 204
    assert (await agent.rpc(tenant.agent_key, "ping", {}, **named(first))).status_code == 404
