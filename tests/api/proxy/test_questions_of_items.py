"""Questions of vendors in the middle of prompts/get and resources/read, on the stream. docs/decisions/0117"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.proxy import asking
from tests.api.proxy.asking import FORM, YES, AskingItemVendor, named, say, sending, session_of
from tests.api.proxy.conftest import Agent
from tests.api.proxy.items import of_each, row_ends
from tests.factories.tenant import Tenant, restrict_tools
from tests.factories.threads import in_thread

pytestmark = pytest.mark.django_db(transaction=True)
vendor, tenant = asking.item_vendor, asking.tenant


def said_of(result: dict[str, Any]) -> Any:
    """The answers that the vendor repeats."""
    text = result["contents"][0]["text"] if "contents" in result else result["messages"][0]["content"]["text"]
    return json.loads(text)


@of_each
async def test_a_question_on_the_stream_reaches_the_caller(
    agent: Agent, tenant: Tenant, vendor: AskingItemVendor, method: str, params: dict[str, Any]
) -> None:
    session = await session_of(agent, tenant.agent_key)
    async with sending(tenant.agent_key, session, method, params) as stream:
        asked = await stream.read()
        assert asked is not None
        assert (asked["method"], asked["params"]) == ("elicitation/create", FORM)
        assert (await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})).status_code == 202
        [found] = await stream.read_all()
    assert said_of(found["result"]) == [YES]
    kind, item = ("prompt", "greet") if method == "prompts/get" else ("resource", "test://static-text")
    assert await row_ends() == [(kind, item, "success", "")]


@of_each
async def test_who_cannot_be_asked_is_told(
    agent: Agent, tenant: Tenant, vendor: AskingItemVendor, method: str, params: dict[str, Any]
) -> None:
    found = (await agent.rpc(tenant.agent_key, method, params)).json()["result"]
    assert found["_meta"]["gateway/refused"] == ["elicitation/create"]
    assert "content" not in found, "such results have no blocks of their own"
    assert vendor.answers[0]["error"]["code"] == -32601


async def test_completion_asks_nobody(agent: Agent, tenant: Tenant, vendor: AskingItemVendor) -> None:
    session = await session_of(agent, tenant.agent_key)
    params = {"ref": {"type": "ref/prompt", "name": "fake_greet"}, "argument": {"name": "who", "value": "A"}}
    found = await agent.rpc(tenant.agent_key, "completion/complete", params, **named(session))
    assert found.json()["result"]["completion"]
    assert not vendor.answers


@of_each
async def test_rights_that_end_meanwhile_end_the_request(
    agent: Agent, tenant: Tenant, vendor: AskingItemVendor, method: str, params: dict[str, Any]
) -> None:
    session = await session_of(agent, tenant.agent_key)
    async with sending(tenant.agent_key, session, method, params) as stream:
        asked = await stream.read()
        assert asked is not None
        await in_thread(lambda: restrict_tools(tenant.organization))
        assert (await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})).status_code == 202
        [found] = await stream.read_all()
    assert found["error"]["data"]["reason"] == "item_not_allowed"
    assert not vendor.answers
    [(_, _, status, code)] = await row_ends()
    assert (status, code) == ("error", "item_not_allowed"), "the request was made"
