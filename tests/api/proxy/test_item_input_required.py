"""A vendor of 2026-07-28 asks by a result of prompts/get and resources/read. docs/decisions/0107, 0117"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from gateway.lib import clock
from proxy.calls import request_state
from tests.api.proxy import asking, modern
from tests.api.proxy.asking import YES, form, say, sending, session_of
from tests.api.proxy.conftest import Agent
from tests.api.proxy.items import PROMPT, RESOURCE, of_each, row_ends
from tests.factories.cast import Cast
from tests.factories.tenant import Tenant, connect, make_connected_tenant, make_tenant, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.era_vendor import META, EraVendor, answer, era_vendor

pytestmark = pytest.mark.django_db(transaction=True)
tenant = asking.tenant
QUESTION = form(mode="form")
ANSWERS = {"sure": YES}
CAN: dict[str, Any] = {"elicitation": {}, "sampling": {}}
RESULTS: dict[str, dict[str, Any]] = {
    "prompts/get": {"messages": []},
    "resources/read": {"contents": [{"uri": "test://static-text", "text": "t"}]},
}
REFUSED = {"code": -32602, "message": "Invalid or expired requestState"}


@pytest.fixture
async def vendor() -> AsyncIterator[EraVendor]:
    """Asks first, and answers once it has its own state back."""
    async with era_vendor() as running:

        async def discovered(writer: Any, asked: dict[str, Any]) -> None:
            more: dict[str, Any] = {"capabilities": {"tools": {}, "prompts": {}, "resources": {}}}
            answer(writer, asked, {"resultType": "complete", "supportedVersions": ["2026-07-28"], **more})

        async def lists(writer: Any, asked: dict[str, Any]) -> None:
            more: dict[str, Any] = {"prompts": [{"name": "greet"}], "resources": [], "resourceTemplates": []}
            answer(writer, asked, {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **more})

        async def asks_first(writer: Any, asked: dict[str, Any]) -> None:
            params = running.params = asked["params"]
            if params.get("requestState") == "own" and params.get("inputResponses") == ANSWERS:
                running.ran += 1
                answer(writer, asked, {"resultType": "complete", **RESULTS[asked["method"]]})
            else:
                asks = {"inputRequests": {"sure": QUESTION}, "requestState": "own"}
                answer(writer, asked, {"resultType": "input_required", **asks})

        running.answers |= {"server/discover": discovered}
        running.answers |= dict.fromkeys(("prompts/list", "resources/list", "resources/templates/list"), lists)
        running.answers |= dict.fromkeys(RESULTS, asks_first)
        yield running


async def ask(agent: Agent, bearer: str, method: str, params: dict[str, Any], can: Any = CAN) -> dict[str, Any]:
    found = await modern.ask(agent, bearer, method, params, meta=modern.meta(clientCapabilities=can))
    body: dict[str, Any] = found.json()
    return body


@of_each
async def test_a_question_by_a_result_reaches_the_caller(
    agent: Agent, tenant: Tenant, vendor: EraVendor, method: str, params: dict[str, Any]
) -> None:
    result = (await ask(agent, tenant.agent_key, method, params))["result"]
    assert (result["resultType"], result["inputRequests"]) == ("input_required", {"sure": QUESTION})
    assert "ttlMs" not in result
    assert vendor.params["_meta"][f"{META}clientCapabilities"] == CAN
    again = {**params, "inputResponses": ANSWERS, "requestState": result["requestState"]}
    found = (await ask(agent, tenant.agent_key, method, again))["result"]
    assert found["resultType"] == "complete"
    assert vendor.ran == 1
    assert [row[2:] for row in await row_ends()] == [("success", "")] * 2


@of_each
async def test_a_state_is_of_one_caller_one_request_and_a_short_time(
    agent: Agent,
    tenant: Tenant,
    vendor: EraVendor,
    committed_cast: Cast,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    params: dict[str, Any],
) -> None:
    colleague = await in_thread(lambda: make_tenant(committed_cast.org, committed_cast.user("owner"), name="other bot"))
    foreign = await in_thread(
        lambda: make_connected_tenant(committed_cast.other_org, committed_cast.user("other_owner"), vendor.url)
    )
    state = (await ask(agent, tenant.agent_key, method, params))["result"]["requestState"]
    good = {"inputResponses": ANSWERS, "requestState": state}
    other_method, other_params = RESOURCE if method == "prompts/get" else PROMPT

    async def is_refused(bearer: str, method: str, params: dict[str, Any]) -> None:
        seen = vendor.seen[method]
        assert (await ask(agent, bearer, method, params))["error"] == REFUSED
        assert vendor.seen[method] == seen, "nothing is sent"

    for other in (colleague, foreign):
        await is_refused(other.agent_key, method, {**params, **good})
    await is_refused(tenant.agent_key, other_method, {**other_params, **good})
    if method == "prompts/get":
        await is_refused(tenant.agent_key, method, {**params, "arguments": {"who": "Bob"}, **good})
    else:
        await is_refused(tenant.agent_key, method, {"uri": "fake+test://another", **good})
    for wrong in (state[:-5], "", 7):
        await is_refused(tenant.agent_key, method, {**params, **good, "requestState": wrong})
    now = clock.now()
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now", lambda: now + timedelta(seconds=request_state.LIFETIME_S + 1))
        await is_refused(tenant.agent_key, method, {**params, **good})
    await in_thread(lambda: connect(committed_cast.org, committed_cast.user("owner"), apiKey="another"))
    await is_refused(tenant.agent_key, method, {**params, **good})
    assert vendor.ran == 0


@of_each
async def test_rights_are_judged_again_at_the_retry(
    agent: Agent, tenant: Tenant, vendor: EraVendor, method: str, params: dict[str, Any]
) -> None:
    state = (await ask(agent, tenant.agent_key, method, params))["result"]["requestState"]
    await in_thread(lambda: restrict_tools(tenant.organization))
    again = {**params, "inputResponses": ANSWERS, "requestState": state}
    error = (await ask(agent, tenant.agent_key, method, again))["error"]
    assert error["data"]["reason"] == "item_not_allowed"
    assert vendor.ran == 0
    assert [row[2:] for row in await row_ends()] == [("success", ""), ("denied", "item_not_allowed")]


@of_each
async def test_what_the_caller_cannot_answer_is_an_error_that_names_it(
    agent: Agent, tenant: Tenant, vendor: EraVendor, method: str, params: dict[str, Any]
) -> None:
    error = (await ask(agent, tenant.agent_key, method, params, can={"sampling": {}}))["error"]
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {}}})
    assert "in the middle of the call (elicitation/create): “Really?”" in error["message"]
    earlier = (await agent.rpc(tenant.agent_key, method, params)).json()["error"]
    assert "can’t be asked" in earlier["message"]


@of_each
async def test_a_caller_of_an_earlier_revision_is_asked_on_its_stream(
    agent: Agent, tenant: Tenant, vendor: EraVendor, method: str, params: dict[str, Any]
) -> None:
    session = await session_of(agent, tenant.agent_key)
    async with sending(tenant.agent_key, session, method, params) as stream:
        asked = await stream.read()
        assert asked is not None
        assert asked["method"] == "elicitation/create"
        await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})
        [found] = await stream.read_all()
    assert "result" in found
    assert vendor.ran == 1
    async with sending(tenant.agent_key, session, method, params) as stream:
        asked = await stream.read()
        assert asked is not None
        error = {"code": -1, "message": "no"}
        await say(agent, tenant.agent_key, session, {"id": asked["id"], "error": error})
        [found] = await stream.read_all()
    assert found["error"]["message"].endswith("(elicitation/create). No answer came.")
    assert vendor.ran == 1
