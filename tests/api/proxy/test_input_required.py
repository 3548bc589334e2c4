"""Questions of a vendor of the newest revision: they reach a caller that can answer, and the answers reach the vendor.

docs/decisions/0107
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from audit.models import RequestAuditEntry
from gateway.catalog.tool_config import parse_tool_config
from gateway.lib import clock
from proxy.calls import request_state
from tests.api.proxy import asking, modern
from tests.api.proxy.conftest import Agent
from tests.factories.cast import Cast
from tests.factories.tenant import Tenant, connect, make_connected_tenant, make_tenant
from tests.factories.threads import in_thread
from tests.fakes.era_vendor import META, EraVendor, answer, era_vendor

tenant = asking.tenant
QUESTION = {"method": "elicitation/create", "params": {"mode": "form", "message": "Really?", "requestedSchema": {}}}
BY_URL = {"method": "elicitation/create", "params": {"mode": "url", "message": "Open it", "url": "https://a.example"}}
SAMPLING = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
ANSWER = {"sure": {"action": "accept", "content": {}}}
CAN: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}, "experimental": {"x": {}}}
REFUSED = {"code": -32602, "message": "Invalid or expired requestState"}


@pytest.fixture
async def vendor() -> AsyncIterator[EraVendor]:
    """A vendor whose tool asks first, and runs once it has its own state back."""
    async with era_vendor() as running:

        async def asks_first(writer: Any, asked: dict[str, Any]) -> None:
            params = asked["params"]
            if params.get("requestState") == "the vendor's own" and params.get("inputResponses") == ANSWER:
                running.ran += 1
                answer(writer, asked, {"resultType": "complete", **running.result})
            else:
                answer(writer, asked, {"resultType": "input_required", **running.asks})

        running.asks = {"inputRequests": {"sure": QUESTION}, "requestState": "the vendor's own"}
        running.answers["tools/call"] = asks_first
        yield running


async def call(agent: Agent, bearer: str, *, can: Any = CAN, **more: Any) -> httpx.Response:
    params = {"name": "fake_write", "arguments": more.pop("arguments", {"a": 1, "b": [2]}), **more}
    return await modern.ask(agent, bearer, "tools/call", params, meta=modern.meta(clientCapabilities=can))


async def asked(agent: Agent, tenant: Tenant, *, bearer: str = "", **more: Any) -> dict[str, Any]:
    """The result of a first call."""
    result: dict[str, Any] = (await call(agent, bearer or tenant.agent_key, **more)).json()["result"]
    assert result["resultType"] == "input_required"
    return result


async def test_a_question_reaches_the_caller_and_its_answer_the_vendor(
    agent: Agent, tenant: Tenant, vendor: EraVendor
) -> None:
    result = await asked(agent, tenant)
    assert result["inputRequests"] == {"sure": QUESTION}
    assert "the vendor's own" not in json.dumps(result)
    assert b"the vendor's own" not in base64.urlsafe_b64decode(result["requestState"])
    assert vendor.params["_meta"][f"{META}clientCapabilities"] == {"elicitation": {}, "sampling": {}, "roots": {}}
    again = {"inputResponses": ANSWER, "requestState": result["requestState"]}
    # Members in another order are the same arguments.
    found = (await call(agent, tenant.agent_key, arguments={"b": [2], "a": 1}, **again)).json()["result"]
    assert (found["resultType"], found["content"]) == ("complete", vendor.result["content"])
    assert vendor.ran == 1
    assert vendor.params["name"] == "write"
    rows = await in_thread(lambda: list(RequestAuditEntry.objects.values_list("status", "error_code")))
    assert rows == [("success", ""), ("success", "")]


async def test_a_state_is_of_one_caller_one_call_and_a_short_time(
    agent: Agent, tenant: Tenant, vendor: EraVendor, committed_cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    colleague = await in_thread(lambda: make_tenant(committed_cast.org, committed_cast.user("owner"), name="other bot"))
    foreign = await in_thread(
        lambda: make_connected_tenant(committed_cast.other_org, committed_cast.user("other_owner"), vendor.url)
    )
    state = (await asked(agent, tenant))["requestState"]
    calls = vendor.seen["tools/call"]
    good = {"inputResponses": ANSWER, "requestState": state}

    async def is_refused(bearer: str, **params: Any) -> None:
        found = await call(agent, bearer, **params)
        assert found.json()["error"] == REFUSED
        assert vendor.seen["tools/call"] == calls, "nothing is sent"

    await is_refused(colleague.agent_key, **good)
    await is_refused(foreign.agent_key, **good)
    await is_refused(tenant.agent_key, arguments={"a": 2, "b": [2]}, **good)
    for cut in (state[:-5], state[4:], state + "A", f"{state[:-3]}AAA", "", "?", "ü", "A" * 200_000):
        await is_refused(tenant.agent_key, inputResponses=ANSWER, requestState=cut)
    await is_refused(tenant.agent_key, inputResponses=ANSWER, requestState=7)
    await is_refused(tenant.agent_key, inputResponses=[ANSWER], requestState=state)
    now = clock.now()
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now", lambda: now + timedelta(seconds=request_state.LIFETIME_S + 1))
        await is_refused(tenant.agent_key, **good)
    await in_thread(lambda: connect(committed_cast.org, committed_cast.user("owner"), apiKey="another"))
    await is_refused(tenant.agent_key, **good)
    rows = await in_thread(lambda: RequestAuditEntry.objects.filter(error_code="bad_arguments").count())
    assert rows == 15
    assert vendor.ran == 0


async def test_a_state_works_again_before_its_end(agent: Agent, tenant: Tenant, vendor: EraVendor) -> None:
    """The specification leaves it to the vendor to run something once."""
    good = {"inputResponses": ANSWER, "requestState": (await asked(agent, tenant))["requestState"]}
    for _ in range(2):
        assert (await call(agent, tenant.agent_key, **good)).json()["result"]["resultType"] == "complete"
    wrong = {**good, "inputResponses": {"other": ANSWER["sure"]}}
    assert (await call(agent, tenant.agent_key, **wrong)).json()["result"]["resultType"] == "input_required"


async def test_a_vendor_may_give_a_state_alone(agent: Agent, tenant: Tenant, vendor: EraVendor) -> None:
    vendor.asks = {"requestState": "come again"}
    result = await asked(agent, tenant, can={})
    assert "inputRequests" not in result
    await call(agent, tenant.agent_key, can={}, requestState=result["requestState"])
    assert vendor.params["requestState"] == "come again"
    assert "inputResponses" not in vendor.params


async def test_a_state_alone_is_not_shared_by_equal_reads(
    agent: Agent, tenant: Tenant, vendor: EraVendor, committed_cast: Cast, settings: Any
) -> None:
    """Each caller gets a state that works for it."""
    settings.VENDOR_TOOL_CONFIG = parse_tool_config('{"fake":{"tools":{"write":{"ttl":30}}}}')
    colleague = await in_thread(lambda: make_tenant(committed_cast.org, committed_cast.user("owner"), name="other bot"))
    both_came = asyncio.Event()

    async def puts_off(writer: Any, sent: dict[str, Any]) -> None:
        if vendor.seen["tools/call"] == 2:
            both_came.set()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(both_came.wait(), 5)
        is_again = sent["params"].get("requestState") == "come again"
        again = {"resultType": "input_required", "requestState": "come again"}
        answer(writer, sent, {"resultType": "complete", **vendor.result} if is_again else again)

    vendor.answers["tools/call"] = puts_off
    bearers = (tenant.agent_key, colleague.agent_key)
    answers = await asyncio.gather(*(asked(agent, tenant, bearer=bearer, can={}) for bearer in bearers))
    for bearer, found in zip(bearers, answers, strict=True):
        done = await call(agent, bearer, can={}, requestState=found["requestState"])
        assert done.json()["result"]["resultType"] == "complete"


async def test_an_answer_without_its_state_is_left_out(agent: Agent, tenant: Tenant, vendor: EraVendor) -> None:
    """The vendor asks, as if nothing had been said."""
    result = await asked(agent, tenant, inputResponses=ANSWER)
    assert result["inputRequests"] == {"sure": QUESTION}
    assert set(vendor.params) == {"name", "arguments", "_meta"}


@pytest.mark.parametrize(
    ("can", "question", "methods"),
    [
        ({}, QUESTION, "elicitation/create"),
        ({"sampling": {}}, QUESTION, "elicitation/create"),
        ({"elicitation": {"form": {}}}, BY_URL, "elicitation/create"),
        ({"elicitation": {}}, BY_URL, "elicitation/create"),
        ({"elicitation": {"url": {}}}, QUESTION, "elicitation/create"),
        ({"elicitation": {}}, SAMPLING, "sampling/createMessage"),
        (CAN, {"method": "tools/call", "params": {}}, "tools/call"),
    ],
)
async def test_what_the_caller_cannot_answer_ends_the_call_and_is_said(
    agent: Agent, tenant: Tenant, vendor: EraVendor, can: dict[str, Any], question: dict[str, Any], methods: str
) -> None:
    vendor.asks = {"inputRequests": {"q": question}, "requestState": "s"}
    result = (await call(agent, tenant.agent_key, can=can)).json()["result"]
    assert (result["resultType"], result["isError"]) == ("complete", True)
    assert f"in the middle of the call ({methods})" in result["content"][0]["text"]
    assert "requestState" not in result


async def test_a_link_reaches_who_can_open_links(agent: Agent, tenant: Tenant, vendor: EraVendor) -> None:
    vendor.asks = {"inputRequests": {"q": BY_URL}}
    assert (await asked(agent, tenant, can={"elicitation": {"url": {}}}))["inputRequests"] == {"q": BY_URL}


async def test_callers_of_earlier_revisions_are_told(agent: Agent, tenant: Tenant, jwt: str, vendor: EraVendor) -> None:
    result = (await agent.call(tenant.agent_key, "fake_write")).json()["result"]
    assert result["isError"]
    assert "“Really?”" in result["content"][0]["text"]
    assert vendor.params["_meta"][f"{META}clientCapabilities"] == {}
    answer = await agent.http.post("/v1/fake/cli", json={"tool": "write"}, headers={"Authorization": f"Bearer {jwt}"})
    assert answer.status_code == 422
    assert "elicitation/create" in answer.json()["error"]


@pytest.mark.parametrize(
    "asks",
    [
        {},
        {"inputRequests": {}},
        {"inputRequests": [QUESTION]},
        {"inputRequests": {"q": "?"}},
        {"inputRequests": {"q": {"params": {}}}},
        {"requestState": 7},
        {"requestState": "x" * (64 * 1024 + 1)},
        {"inputRequests": {str(number): QUESTION for number in range(101)}},
    ],
)
async def test_questions_that_are_none(agent: Agent, tenant: Tenant, vendor: EraVendor, asks: dict[str, Any]) -> None:
    vendor.asks = asks
    error = (await call(agent, tenant.agent_key)).json()["error"]
    assert error["data"] == {"vendor": "fake", "reason": "bad_vendor_response"}


async def test_an_answer_does_not_go_to_a_vendor_that_came_back_in_an_earlier_revision(
    agent: Agent, tenant: Tenant, vendor: EraVendor
) -> None:
    state = (await asked(agent, tenant))["requestState"]
    vendor.answers.clear()
    vendor.era = "earlier"
    error = (await call(agent, tenant.agent_key, inputResponses=ANSWER, requestState=state)).json()["error"]
    assert error["data"]["reason"] == "bad_vendor_response"
    assert vendor.ran == 0


async def test_a_kind_that_is_forbidden_meanwhile_gets_no_answer(
    agent: Agent, tenant: Tenant, vendor: EraVendor
) -> None:
    """docs/decisions/0118"""
    result = await asked(agent, tenant)
    again = {"inputResponses": ANSWER, "requestState": result["requestState"]}
    await in_thread(lambda: asking.let_ask(tenant, "roots"))
    found = (await call(agent, tenant.agent_key, **again)).json()["result"]
    assert (found["resultType"], found["isError"]) == ("complete", True)
    assert "inputResponses" not in vendor.params
    assert vendor.ran == 0
    await in_thread(lambda: asking.let_ask(tenant, "elicitation"))
    assert (await call(agent, tenant.agent_key, **again)).json()["result"]["content"] == vendor.result["content"]
    assert vendor.ran == 1


async def test_a_kind_that_is_forbidden_before_the_question_is_not_asked(
    agent: Agent, tenant: Tenant, vendor: EraVendor
) -> None:
    """The call was admitted under the former rule. docs/decisions/0118"""
    asks_first = vendor.answers["tools/call"]

    async def after_the_change(writer: Any, sent: dict[str, Any]) -> None:
        await in_thread(lambda: asking.let_ask(tenant, "roots"))
        await asks_first(writer, sent)

    vendor.answers["tools/call"] = after_the_change
    found = (await call(agent, tenant.agent_key)).json()["result"]
    assert (found["resultType"], found["isError"]) == ("complete", True)
    assert "elicitation/create" in found["content"][0]["text"]
