"""An organization says what a vendor may ask its callers. docs/decisions/0118"""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.catalog.tool_config import parse_tool_config
from proxy.hot_path_database import HotPathDatabase
from tests.api.proxy import asking
from tests.api.proxy.asking import YES, AskingVendor, calling, form, let_ask, named, say, session_of
from tests.api.proxy.conftest import Agent
from tests.factories.cast import Cast
from tests.factories.tenant import Tenant, make_connected_tenant
from tests.factories.threads import in_thread

pytestmark = pytest.mark.django_db(transaction=True)
vendor = asking.vendor
CAN: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
SAMPLING = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
ROOTS = {"method": "roots/list", "params": {}}


@pytest.fixture
def tenant(vendor: AskingVendor, committed_cast: Cast) -> Tenant:
    """Of an organization that has not chosen."""
    return make_connected_tenant(committed_cast.org, committed_cast.user("owner"), vendor.url)


async def call(agent: Agent, tenant: Tenant, session: str) -> dict[str, Any]:
    """The result of a call during which nobody is asked."""
    answer = await agent.rpc(tenant.agent_key, "tools/call", {"name": "fake_write"}, **named(session))
    found: dict[str, Any] = answer.json()["result"]
    return found


async def test_forms_alone_are_allowed_at_first(agent: Agent, tenant: Tenant, vendor: AskingVendor) -> None:
    vendor.questions, vendor.at_once = [SAMPLING, ROOTS], True
    session = await session_of(agent, tenant.agent_key, CAN)
    found = await call(agent, tenant, session)
    assert found["_meta"]["gateway/refused"] == ["sampling/createMessage", "roots/list"]
    assert vendor.told[-1] == {"elicitation": {}}
    assert {each["error"]["code"] for each in vendor.answers.values()} == {-32601}


@pytest.mark.parametrize(("kind", "question"), [("sampling", SAMPLING), ("roots", ROOTS), ("elicitation", form())])
async def test_a_kind_that_is_allowed_reaches_the_caller_from_the_next_call_on(
    agent: Agent, tenant: Tenant, vendor: AskingVendor, kind: str, question: dict[str, Any]
) -> None:
    vendor.questions = [question]
    await in_thread(lambda: let_ask(tenant))
    session = await session_of(agent, tenant.agent_key, CAN)
    found = await call(agent, tenant, session)
    assert found["_meta"]["gateway/refused"] == [question["method"]]
    assert vendor.told[-1] == {}
    vendor.answers.clear()
    await in_thread(lambda: let_ask(tenant, kind))
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        assert asked["method"] == question["method"]
        assert (await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})).status_code == 202
        [last] = await stream.read_all()
    assert json.loads(last["result"]["content"][0]["text"]) == [YES]
    assert vendor.told[-1] == {kind: {}}


async def test_a_kind_that_is_forbidden_meanwhile_gets_no_answer(
    agent: Agent, tenant: Tenant, vendor: AskingVendor
) -> None:
    session = await session_of(agent, tenant.agent_key, CAN)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        await in_thread(lambda: let_ask(tenant, "roots"))
        assert (await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})).status_code == 202
        [last] = await stream.read_all()
    assert last["result"]["_meta"]["gateway/refused"] == ["elicitation/create"]
    assert vendor.answers[0]["error"]["code"] == -32601


async def test_each_organization_decides_for_itself(
    agent: Agent, tenant: Tenant, vendor: AskingVendor, committed_cast: Cast
) -> None:
    other = await in_thread(
        lambda: make_connected_tenant(committed_cast.other_org, committed_cast.user("other_owner"), vendor.url)
    )
    await in_thread(lambda: let_ask(other, "sampling", "roots"))
    vendor.questions = []
    for each in (tenant, other):
        await call(agent, each, await session_of(agent, each.agent_key, CAN))
    assert [told for told in vendor.told if told] == [{"elicitation": {}}, {"sampling": {}, "roots": {}}]


async def test_the_rule_costs_no_statement(
    agent: Agent, tenant: Tenant, vendor: AskingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes with the rows of the organization."""

    async def none(*_: object) -> None:
        raise AssertionError("a row was read")

    vendor.questions = []
    session = await session_of(agent, tenant.agent_key, CAN)
    await call(agent, tenant, session)
    monkeypatch.setattr(HotPathDatabase, "read", none)
    await call(agent, tenant, session)
    assert vendor.seen["tools/call"] == 2


async def test_a_kind_that_is_forbidden_before_the_question_is_not_asked(
    agent: Agent, tenant: Tenant, vendor: AskingVendor
) -> None:
    """The call was admitted under the former rule."""
    await in_thread(lambda: let_ask(tenant, "elicitation", "sampling"))
    vendor.questions = [form(), SAMPLING]
    session = await session_of(agent, tenant.agent_key, CAN)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        await in_thread(lambda: let_ask(tenant, "elicitation"))
        assert (await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})).status_code == 202
        [last] = await stream.read_all()
    assert json.loads(last["result"]["content"][0]["text"]) == [YES, None]
    assert last["result"]["_meta"]["gateway/refused"] == ["sampling/createMessage"]


async def test_a_result_whose_question_was_refused_is_not_kept(
    agent: Agent, tenant: Tenant, vendor: AskingVendor, settings: Any
) -> None:
    """The tool only reads: its results are kept for others, who can perhaps be asked."""
    settings.VENDOR_TOOL_CONFIG = parse_tool_config('{"fake":{"tools":{"fake_list":{"ttl":30}}}}')
    read = {"name": "fake_list"}
    refused = (await agent.rpc(tenant.agent_key, "tools/call", read)).json()["result"]
    assert refused["_meta"]["gateway/refused"] == ["elicitation/create"]
    vendor.answers.clear()
    session = await session_of(agent, tenant.agent_key, CAN)
    async with calling(tenant.agent_key, session, tool="fake_list") as stream:
        asked = await stream.read()
        assert asked is not None
        assert asked.get("method") == "elicitation/create"
        await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})
        [last] = await stream.read_all()
    assert json.loads(last["result"]["content"][0]["text"]) == [YES]
