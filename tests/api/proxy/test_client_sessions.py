"""Sessions of callers of the earlier revisions: who has one, where it counts, and how it ends. docs/decisions/0110"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from gateway.coordination import backend
from gateway.lib import clock
from proxy import runtime
from proxy.sessions import client_session
from proxy.sessions.question_desk import QuestionDesk
from tests.api.proxy import asking
from tests.api.proxy.asking import YES, AskingVendor, begin, calling, named, say, session_of
from tests.api.proxy.conftest import Agent, headers
from tests.factories.cast import Cast
from tests.factories.tenant import Tenant, make_tenant
from tests.factories.threads import in_thread

pytestmark = pytest.mark.django_db(transaction=True)
vendor, tenant = asking.vendor, asking.tenant


async def is_known(agent: Agent, bearer: str, session: str, path: str = "/v1/mcp") -> bool:
    """Whether requests of every kind know the session, or none does."""
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    status = (await agent.http.post(path, json=note, headers=headers(bearer, named(session)))).status_code
    assert status in (202, 404)
    for method in ("ping", "tools/list", "tools/call"):
        answer = await agent.rpc(bearer, method, {"name": "fake_none"}, path=path, **named(session))
        assert answer.status_code == (200 if status == 202 else 404), answer.text
        assert status == 202 or answer.json()["error"] == "unknown_session"
    return status == 202


async def delete(agent: Agent, bearer: str, session: str | None, path: str = "/v1/mcp") -> int:
    return (await agent.http.delete(path, headers=headers(bearer, named(session)))).status_code


async def test_a_session_is_of_one_caller_at_one_endpoint_for_a_week(
    agent: Agent, tenant: Tenant, jwt: str, committed_cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    colleague = await in_thread(lambda: make_tenant(committed_cast.org, committed_cast.user("owner"), name="other bot"))
    session = await session_of(agent, tenant.agent_key)
    assert await is_known(agent, tenant.agent_key, session)
    assert await is_known(agent, jwt, session), "another bearer of the same caller"
    assert not await is_known(agent, colleague.agent_key, session)
    assert not await is_known(agent, jwt, session, "/v1/fake/mcp")
    assert not await is_known(agent, tenant.agent_key, await session_of(agent, jwt, path="/v1/fake/mcp"))
    for wrong in ("session-1", "", "x" * 2_000, session[:-2], session[2:], session + "AA", session[::-1], "AAAA"):
        assert not await is_known(agent, tenant.agent_key, wrong), wrong
    now, principal = clock.now(), (await runtime.current().caller_cache.get(tenant.agent_key, "127.0.0.1")).principal
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now", lambda: now + timedelta(seconds=client_session.LIFETIME_S + 1))
        with pytest.raises(client_session.SessionEnded):
            client_session.opened(principal, "/v1/mcp", session)


async def test_a_session_ends_when_its_client_says_so(agent: Agent, tenant: Tenant, committed_cast: Cast) -> None:
    colleague = await in_thread(lambda: make_tenant(committed_cast.org, committed_cast.user("owner"), name="other bot"))
    session, other = await session_of(agent, tenant.agent_key), await session_of(agent, tenant.agent_key)
    assert await delete(agent, colleague.agent_key, session) == 404
    assert await delete(agent, tenant.agent_key, None) == 405
    assert await is_known(agent, tenant.agent_key, session)
    assert await delete(agent, tenant.agent_key, session) == 204
    assert not await is_known(agent, tenant.agent_key, session)
    assert await delete(agent, tenant.agent_key, session) == 404
    assert await is_known(agent, tenant.agent_key, other)
    answer = await agent.rpc(
        tenant.agent_key, "initialize", {"capabilities": {"sampling": {}}}, **{"Mcp-Session-Id": session}
    )
    assert answer.status_code == 200, "a client may begin anew with the old id attached"
    assert answer.headers["Mcp-Session-Id"] != session


async def test_a_session_that_ends_within_a_batch_loses_no_answer(
    agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results before its end are told."""
    session, states = await session_of(agent, tenant.agent_key), [False, True]

    async def at(*_: object) -> client_session.ClientSessionState:
        return client_session.ClientSessionState(is_ended=states.pop(0))

    monkeypatch.setattr(runtime.current().session_states, "at", at)
    more = {"MCP-Protocol-Version": "2025-03-26", "Mcp-Session-Id": session}
    batch = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(2)]
    answer = await agent.http.post("/v1/mcp", json=batch, headers=headers(tenant.agent_key, more))
    assert answer.status_code == 200
    ran, ended = answer.json()
    assert ran == {"jsonrpc": "2.0", "id": 0, "result": {}}
    assert ended["error"]["data"] == {"reason": "unknown_session"}


async def test_an_ended_session_cannot_answer(agent: Agent, tenant: Tenant, vendor: AskingVendor) -> None:
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        assert await delete(agent, tenant.agent_key, session) == 204
        answer = await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})
        assert answer.status_code == 404
    assert not vendor.answers


async def test_a_batch_of_answers(agent: Agent, tenant: Tenant, vendor: AskingVendor) -> None:
    """Of a client of 2025-03-26."""
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        more = {"MCP-Protocol-Version": "2025-03-26", "Mcp-Session-Id": session}
        good = [{"jsonrpc": "2.0", "id": asked["id"], "result": YES}]
        answers = [
            await agent.http.post("/v1/mcp", json=good, headers=headers(tenant.agent_key, more)) for _ in range(2)
        ]
        assert [each.status_code for each in answers] == [202, 400]
        await stream.read_all()
    assert vendor.answers[0]["result"] == YES


async def test_an_answer_finds_its_call_at_another_process(agent: Agent, tenant: Tenant, vendor: AskingVendor) -> None:
    """Through Redis, or the file of this host."""
    session = await session_of(agent, tenant.agent_key)
    live, exchange = runtime.current(), backend.exchange()
    here = live.questions
    there = QuestionDesk(exchange, b"tests" * 8, of_vendor=1, of_organization=1, of_subject=1)
    there._ids, there._key = here._ids, here._key  # one secret of the deployment
    try:
        async with calling(tenant.agent_key, session) as stream:
            asked = await stream.read()
            assert asked is not None
            live.questions = there
            try:
                good = {"id": asked["id"], "result": YES}
                answers = await asyncio.gather(*(say(agent, tenant.agent_key, session, good) for _ in range(20)))
                assert sorted(each.status_code for each in answers) == [202] + [400] * 19
            finally:
                live.questions = here
            await stream.read_all()
    finally:
        await there.aclose()
        exchange.close()
    assert vendor.answers[0]["result"] == YES
    assert vendor.seen["answer"] == 1


async def test_the_endpoint_of_one_vendor_asks_too(
    agent: Agent, tenant: Tenant, jwt: str, vendor: AskingVendor
) -> None:
    path = "/v1/fake/mcp"
    session = await session_of(agent, jwt, path=path)
    async with calling(jwt, session, path=path) as stream:
        asked = await stream.read()
        assert asked is not None
        assert (await say(agent, jwt, session, {"id": asked["id"], "result": YES}, path)).status_code == 202
        await stream.read_all()
    assert vendor.answers[0]["result"] == YES


# --- log messages ---------------------------------------------------------------------------------------------------


def note(level: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": level, "data": level}}


async def levels_heard(bearer: str, session: str, **params: Any) -> list[str]:
    """The levels of the log messages that reach the caller of one call."""
    async with calling(bearer, session, **params) as stream:
        *notes, found = await stream.read_all()
        assert found["result"]["content"][0]["text"] == "[]"
        return [each["params"]["level"] for each in notes]


async def set_level(agent: Agent, bearer: str, session: str | None, level: Any) -> dict[str, Any]:
    answer = await agent.rpc(bearer, "logging/setLevel", {"level": level}, **named(session))
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


async def test_log_messages_pass_from_the_level_that_the_session_has(
    agent: Agent, tenant: Tenant, vendor: AskingVendor
) -> None:
    vendor.questions, vendor.before = [], [note("debug"), note("warning"), note("error")]
    opened = await begin(agent, tenant.agent_key)
    assert opened.json()["result"]["capabilities"]["logging"] == {}
    session, other = opened.headers["Mcp-Session-Id"], await session_of(agent, tenant.agent_key)
    assert await set_level(agent, tenant.agent_key, session, "warning") == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert await levels_heard(tenant.agent_key, session) == ["warning", "error"]
    assert await set_level(agent, tenant.agent_key, session, "error") == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert await levels_heard(tenant.agent_key, session) == ["error"]
    assert await levels_heard(tenant.agent_key, session) == ["error"]
    assert vendor.levels == ["warning", "error"], "once for each change"
    answer = await agent.rpc(tenant.agent_key, "tools/call", {"name": "fake_write"}, **named(other))
    assert answer.headers["Content-Type"] == "application/json", "a session without a level hears nothing"


async def test_a_log_level_needs_a_session_and_a_name(agent: Agent, tenant: Tenant, vendor: AskingVendor) -> None:
    assert "logging" not in (await begin(agent, tenant.agent_key, {})).json()["result"]["capabilities"]
    assert (await set_level(agent, tenant.agent_key, None, "info"))["error"]["code"] == -32601
    session = await session_of(agent, tenant.agent_key)
    for wrong in ("", "loud", "INFO", None, 3, ["info"]):
        assert (await set_level(agent, tenant.agent_key, session, wrong))["error"]["code"] == -32602
    assert not vendor.levels
