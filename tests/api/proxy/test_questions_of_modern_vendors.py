"""Callers of the earlier revisions answer what a vendor of MCP 2026-07-28 asks by a result. docs/decisions/0110"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from audit.models import RequestAuditEntry
from proxy.calls import ask_caller
from tests.api.proxy import asking
from tests.api.proxy.asking import YES, calling, form, named, say, session_of
from tests.api.proxy.conftest import Agent
from tests.factories.tenant import Tenant
from tests.factories.threads import in_thread
from tests.fakes.era_vendor import META, Answer, EraVendor, answer, era_vendor

pytestmark = pytest.mark.django_db(transaction=True)
tenant = asking.tenant


@pytest.fixture
async def vendor() -> AsyncIterator[EraVendor]:
    """Its tool asks twice, one thing and then two, and runs once it has all answers and its state."""
    async with era_vendor() as running:
        rounds = {None: ["a"], "1": ["b", "c"]}

        async def asks(writer: Any, asked: dict[str, Any]) -> None:
            params = asked["params"]
            state, said = params.get("requestState"), set(params.get("inputResponses", {}))
            if state is not None and said != set(rounds[None if state == "1" else "1"]):
                answer(writer, asked, {"resultType": "complete", "content": [], "isError": True})
            elif state in rounds:
                questions = {name: form(message=name) for name in rounds[state]}
                more = {"inputRequests": questions, "requestState": "1" if state is None else "2"}
                answer(writer, asked, {"resultType": "input_required", **more})
            else:
                running.ran += 1
                answer(writer, asked, {"resultType": "complete", **running.result})

        running.answers["tools/call"] = asks
        yield running


async def test_questions_of_all_rounds_reach_the_caller(agent: Agent, tenant: Tenant, vendor: EraVendor) -> None:
    session = await session_of(agent, tenant.agent_key)
    heard = []
    async with calling(tenant.agent_key, session) as stream:
        while (message := await stream.read()) is not None and "method" in message:
            heard.append(message["params"]["message"])
            await asyncio.sleep(0.1)
            answered = await say(agent, tenant.agent_key, session, {"id": message["id"], "result": YES})
            assert answered.status_code == 202
    assert message is not None
    assert message["result"] == vendor.result
    assert heard == ["a", "b", "c"]
    assert (vendor.ran, vendor.seen["tools/call"]) == (1, 3)
    assert vendor.params["inputResponses"] == {"b": YES, "c": YES}
    assert vendor.params["_meta"][f"{META}clientCapabilities"] == {"elicitation": {}, "sampling": {}}
    rows = await in_thread(lambda: list(RequestAuditEntry.objects.values_list("status", "item", "vendor_ms")))
    assert [row[:2] for row in rows] == [("success", "elicitation/create")]
    assert 0 <= rows[0][2] < 1_000


async def test_a_client_that_refuses_ends_the_call(agent: Agent, tenant: Tenant, vendor: EraVendor) -> None:
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        await say(agent, tenant.agent_key, session, {"id": asked["id"], "error": {"code": -1, "message": "no"}})
        [found] = await stream.read_all()
    assert found["result"]["isError"]
    assert "(elicitation/create). No answer came." in found["result"]["content"][0]["text"]
    assert vendor.ran == 0


async def test_what_a_client_cannot_answer_is_said(agent: Agent, tenant: Tenant, vendor: EraVendor) -> None:
    session = await session_of(agent, tenant.agent_key, {"sampling": {}})
    found = await agent.rpc(tenant.agent_key, "tools/call", {"name": "fake_write"}, **named(session))
    assert "in the middle of the call (elicitation/create)" in found.json()["result"]["content"][0]["text"]


async def test_a_vendor_that_puts_off_its_work_is_asked_again(
    agent: Agent, tenant: Tenant, vendor: EraVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not without end."""
    monkeypatch.setattr(ask_caller, "PAUSE_S", 0.0)

    async def puts_off(writer: Any, asked: dict[str, Any]) -> None:
        answer(writer, asked, {"resultType": "input_required", "requestState": "later"})

    vendor.answers["tools/call"] = puts_off
    session = await session_of(agent, tenant.agent_key)
    found = await agent.rpc(tenant.agent_key, "tools/call", {"name": "fake_write"}, **named(session))
    assert found.json()["result"]["isError"]
    assert vendor.seen["tools/call"] == ask_caller.MAX_ROUNDS + 1


def asks_once(questions: dict[str, Any], result: dict[str, Any]) -> Answer:
    """Of a tool that runs once it has a state."""

    async def asks(writer: Any, asked: dict[str, Any]) -> None:
        await asyncio.sleep(0.1)
        if "requestState" in asked["params"]:
            answer(writer, asked, {"resultType": "complete", **result})
        else:
            answer(writer, asked, {"resultType": "input_required", "inputRequests": questions, "requestState": "1"})

    return asks


async def test_a_vendors_time_is_not_that_of_the_person(agent: Agent, tenant: Tenant, vendor: EraVendor) -> None:
    vendor.answers["tools/call"] = asks_once({"a": form()}, vendor.result)
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        await asyncio.sleep(0.5)
        await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})
        [found] = await stream.read_all()
    assert found.get("result") == vendor.result
    rows = await in_thread(lambda: list(RequestAuditEntry.objects.values_list("status", "vendor_ms", "duration_ms")))
    [(status, vendor_ms, duration_ms)] = rows
    assert status == "success"
    assert 190 <= vendor_ms < 500
    assert duration_ms >= 700


async def test_a_call_asks_twenty_times_at_most(agent: Agent, tenant: Tenant, vendor: EraVendor) -> None:
    """However many questions the vendor puts into a round."""
    questions = {str(number): form(message=str(number)) for number in range(100)}
    vendor.answers["tools/call"] = asks_once(questions, vendor.result)
    session = await session_of(agent, tenant.agent_key)
    found = await agent.rpc(tenant.agent_key, "tools/call", {"name": "fake_write"}, **named(session))
    assert found.headers["Content-Type"] == "application/json", "what cannot be answered in full is not asked at all"
    assert found.json()["result"]["isError"]
    assert vendor.seen["tools/call"] == 1
