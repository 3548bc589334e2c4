"""Questions of vendors in the middle of a call, for callers of the earlier revisions. docs/decisions/0110"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from audit.models import RequestAuditEntry
from credentials.credential_scope import CredentialScope
from gateway import draining
from gateway.catalog.tool_config import parse_tool_config
from oauth_ext.services.agent_keys import mint_agent_key
from proxy import runtime
from proxy.calls import ask_caller
from proxy.calls.ask_caller import MAX_QUESTIONS_OF_CALL
from proxy.hot_path_database import DatabaseUnavailable
from proxy.protocol import questions
from proxy.sessions import question_desk
from proxy.sessions.shared_places import SharedPlaces
from proxy.vendors import shared_circuits
from proxy.vendors.circuit import CLOSED
from tests.api.proxy import asking
from tests.api.proxy.asking import CAN, FORM, YES, AskingVendor, begin, calling, form, named, say, session_of
from tests.api.proxy.conftest import Agent
from tests.factories.cast import Cast
from tests.factories.tenant import Tenant, connect, load_vendor, make_connected_tenant, make_tenant, restrict_tools
from tests.factories.threads import in_thread

pytestmark = pytest.mark.django_db(transaction=True)
vendor, tenant = asking.vendor, asking.tenant


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that the test may stop."""
    monkeypatch.setattr(draining, "_calls_ended", threading.Event())


async def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come about")


async def test_a_question_reaches_the_caller_and_its_answer_the_vendor(
    agent: Agent, tenant: Tenant, vendor: AskingVendor
) -> None:
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        assert (asked["method"], asked["params"]) == ("elicitation/create", FORM)
        answer = await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})
        assert (answer.status_code, answer.content) == (202, b"")
        [found] = await stream.read_all()
    assert json.loads(found["result"]["content"][0]["text"]) == [YES]
    assert found["id"] == "call-1"
    assert "_meta" not in found["result"]
    rows = await in_thread(lambda: list(RequestAuditEntry.objects.values_list("status", "tool", "item", "kind")))
    assert rows == [("success", "fake_write", "elicitation/create", "tool")]


async def test_a_session_is_for_clients_that_can_answer(agent: Agent, tenant: Tenant, vendor: AskingVendor) -> None:
    for can in ({}, {"tools": {}}, {"elicitation": 7}, {"roots": None}):
        assert "Mcp-Session-Id" not in (await begin(agent, tenant.agent_key, can)).headers, can
    answer = await begin(agent, tenant.agent_key, {"sampling": {}})
    assert answer.headers["Mcp-Session-Id"].isascii()
    assert answer.headers["Mcp-Session-Id"].isprintable()
    assert len(answer.headers["Mcp-Session-Id"]) < 400


async def test_a_vendor_is_told_what_the_caller_can_and_no_more(
    agent: Agent, tenant: Tenant, vendor: AskingVendor
) -> None:
    """Each session of a client has one of its own with the vendor. All others share one that can answer nothing."""
    vendor.questions = []
    odd = {"elicitation": {"url": {"x": 1}, "odd": {}}, "roots": {"listChanged": True}, "experimental": {"x": {}}}
    first, second = await session_of(agent, tenant.agent_key, odd), await session_of(agent, tenant.agent_key)
    for session in (first, first, second, None):
        answer = await agent.rpc(tenant.agent_key, "tools/call", {"name": "fake_write"}, **named(session))
        assert answer.json()["result"]["content"][0]["text"] == "[]"
    assert vendor.told == [{}, {"elicitation": {"url": {}}, "roots": {}}, {"elicitation": {}, "sampling": {}}]
    ours, again, theirs, shared = vendor.called_in
    assert ours == again
    assert len({ours, theirs, shared}) == 3


async def test_several_questions_of_one_call(agent: Agent, tenant: Tenant, vendor: AskingVendor) -> None:
    sampling = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
    vendor.questions, vendor.at_once = [form(message="1"), sampling, form(message="3")], True
    session = await session_of(agent, tenant.agent_key)
    results = [{"action": "decline"}, {"role": "assistant", "content": {}}, {"action": "cancel"}]
    async with calling(tenant.agent_key, session) as stream:
        for result in results:
            asked = await stream.read()
            assert asked is not None
            assert (await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": result})).is_success
        [found] = await stream.read_all()
    assert json.loads(found["result"]["content"][0]["text"]) == results
    items = await in_thread(lambda: list(RequestAuditEntry.objects.values_list("item", flat=True)))
    assert items == ["elicitation/create, sampling/createMessage"]


async def test_an_error_of_the_client_reaches_the_vendor(agent: Agent, tenant: Tenant, vendor: AskingVendor) -> None:
    session = await session_of(agent, tenant.agent_key)
    error = {"code": -1, "message": "The person said no.", "data": {"why": 7}}
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        assert (await say(agent, tenant.agent_key, session, {"id": asked["id"], "error": error})).status_code == 202
        await stream.read_all()
    assert vendor.answers[0] == {"jsonrpc": "2.0", "id": 0, "error": error}


@pytest.mark.parametrize(
    ("can", "question"),
    [
        ({"sampling": {}}, form()),
        ({"elicitation": {}}, {"method": "sampling/createMessage", "params": {}}),
        ({"elicitation": {}}, form(mode="url", url="https://a.example")),
        ({"elicitation": {"url": {}}}, form()),
        (CAN, {"method": "tools/call", "params": {}}),
        (CAN, form(message="x" * 600_000)),
        (CAN, {"method": "elicitation/create", "params": [1]}),
    ],
)
async def test_what_the_caller_cannot_answer_is_refused_at_once_and_said(
    agent: Agent, tenant: Tenant, vendor: AskingVendor, can: dict[str, Any], question: dict[str, Any]
) -> None:
    vendor.questions = [question]
    session = await session_of(agent, tenant.agent_key, can)
    answer = await agent.rpc(tenant.agent_key, "tools/call", {"name": "fake_write"}, **named(session))
    result = answer.json()["result"]
    assert result["_meta"]["gateway/refused"] == [question["method"]]
    assert vendor.answers[0]["error"]["code"] == -32601


async def test_who_reads_no_streams_is_not_asked(agent: Agent, tenant: Tenant, vendor: AskingVendor) -> None:
    session = await session_of(agent, tenant.agent_key)
    more = {**named(session), "Accept": "application/json"}
    answer = await agent.rpc(tenant.agent_key, "tools/call", {"name": "fake_write"}, **more)
    assert answer.json()["result"]["_meta"]["gateway/refused"] == ["elicitation/create"]
    assert vendor.told == [{}]


async def test_a_result_after_an_answer_is_kept_for_nobody(
    agent: Agent, tenant: Tenant, vendor: AskingVendor, settings: Any
) -> None:
    settings.VENDOR_TOOL_CONFIG = parse_tool_config('{"fake":{"tools":{"fake_list":{"ttl":30}}}}')
    session = await session_of(agent, tenant.agent_key)
    for number in range(2):
        vendor.answers.clear()
        async with calling(tenant.agent_key, session, tool="fake_list") as stream:
            asked = await stream.read()
            assert asked is not None
            result = {"action": "accept", "content": {"n": number}}
            await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": result})
            [found] = await stream.read_all()
        assert json.loads(found["result"]["content"][0]["text"]) == [result]
    assert vendor.seen["tools/call"] == 2


async def test_what_a_vendor_remembers_of_an_answer_reaches_nobody_else(
    agent: Agent, tenant: Tenant, vendor: AskingVendor, settings: Any
) -> None:
    """A later call in the same session of the vendor asks nothing, and its result may hold the answer before."""
    settings.VENDOR_TOOL_CONFIG = parse_tool_config('{"fake":{"tools":{"fake_list":{"ttl":30}}}}')
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})
        await stream.read_all()
    vendor.questions = []
    for of_session in (session, None):
        answer = await agent.rpc(tenant.agent_key, "tools/call", {"name": "fake_list"}, **named(of_session))
        assert answer.json()["result"]["content"][0]["text"] == "[]"
    assert vendor.seen["tools/call"] == 3
    assert len(set(vendor.called_in)) == 2


async def test_a_vendor_is_given_its_time_again_after_an_answer(
    agent: Agent, tenant: Tenant, vendor: AskingVendor
) -> None:
    """The person's time is not the vendor's; the row counts it as neither."""
    await in_thread(lambda: load_vendor(vendor.url, timeout_s=1))
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        await asyncio.sleep(1.3)
        await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})
        [found] = await stream.read_all()
    assert json.loads(found["result"]["content"][0]["text"]) == [YES]
    [vendor_ms] = await in_thread(lambda: list(RequestAuditEntry.objects.values_list("vendor_ms", flat=True)))
    assert vendor_ms < 1_000


async def test_a_vendor_that_is_silent_after_an_answer_runs_out_of_time(
    agent: Agent, tenant: Tenant, vendor: AskingVendor
) -> None:
    await in_thread(lambda: load_vendor(vendor.url, timeout_s=1))
    vendor.questions, vendor.never_ends = [form()], True
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})
        [found] = await stream.read_all()
    assert found["error"]["data"]["reason"] == "vendor_timeout"


# --- answers that are none ------------------------------------------------------------------------------------------


async def refused(agent: Agent, bearer: str, session: str | None, message: dict[str, Any], **more: Any) -> None:
    answer = await say(agent, bearer, session, message, **more)
    assert answer.status_code == 400
    error = {"code": -32600, "message": "No question with this id waits for an answer"}
    assert answer.json() == {"jsonrpc": "2.0", "id": None, "error": error}


async def test_an_answer_counts_once_and_only_from_whom_was_asked(
    agent: Agent, tenant: Tenant, vendor: AskingVendor, committed_cast: Cast
) -> None:
    colleague = await in_thread(lambda: make_tenant(committed_cast.org, committed_cast.user("owner"), name="other bot"))
    foreign = await in_thread(
        lambda: make_connected_tenant(committed_cast.other_org, committed_cast.user("other_owner"), vendor.url)
    )
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        good = {"id": asked["id"], "result": YES}
        for other in (colleague, foreign):
            await refused(agent, other.agent_key, await session_of(agent, other.agent_key), good)
            answer = await say(agent, other.agent_key, session, good)
            assert answer.status_code == 404, "a session of another caller is none"
        await refused(agent, tenant.agent_key, await session_of(agent, tenant.agent_key), good)
        assert (await say(agent, tenant.agent_key, None, good)).status_code == 202, "as ever, and dropped"
        assert not vendor.answers
        for wrong in ("q1", "", 0, None, asked["id"][:-4], asked["id"][::-1], asked["id"] + "AAAA", "ü" * 60):
            await refused(agent, tenant.agent_key, session, {**good, "id": wrong})
        for wrong in ([], 7, "yes"):
            await refused(agent, tenant.agent_key, session, {"id": asked["id"], "result": wrong})
        await refused(agent, tenant.agent_key, session, {"id": asked["id"], "error": {"code": "x"}})
        await refused(agent, tenant.agent_key, session, {**good, "result": {"content": "x" * 600_000}})
        huge = await say(agent, tenant.agent_key, session, {**good, "result": {"x": "y" * 10_000_000}})
        assert huge.status_code == 413
        assert not vendor.answers
        answers = await asyncio.gather(*(say(agent, tenant.agent_key, session, good) for _ in range(50)))
        assert sorted(each.status_code for each in answers) == [202] + [400] * 49
        await stream.read_all()
        await refused(agent, tenant.agent_key, session, good)
    assert vendor.seen["answer"] == 1


async def test_an_answer_after_the_deadline(
    agent: Agent, tenant: Tenant, vendor: AskingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client is told that its answer is not awaited any more, and the vendor that none came."""
    monkeypatch.setattr(question_desk, "ANSWER_WITHIN_S", 0.2)
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        asked, cancelled, found = await stream.read_all()
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"]["requestId"] == asked["id"]
    assert found["result"]["content"][0]["text"] == "[null]"
    assert vendor.answers[0]["error"] == {"code": -32001, "message": question_desk.TOO_LATE}
    await refused(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})


async def test_a_vendor_that_asks_without_end(agent: Agent, tenant: Tenant, vendor: AskingVendor) -> None:
    vendor.questions, vendor.at_once, vendor.never_waits = [form(message=str(n)) for n in range(1_000)], True, True
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        count = 0
        while (message := await stream.read()) is not None and "method" in message:
            count += 1
            await say(agent, tenant.agent_key, session, {"id": message["id"], "result": YES})
    assert count == MAX_QUESTIONS_OF_CALL
    assert message is not None
    assert message["result"]["_meta"]["gateway/refused"] == ["elicitation/create"]


async def test_a_caller_with_many_open_questions_is_asked_no_more(
    agent: Agent, tenant: Tenant, vendor: AskingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime.current().questions, "_places", SharedPlaces(50, 15, 1))
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as first:
        asked = await first.read()
        assert asked is not None
        answer = await agent.rpc(tenant.agent_key, "tools/call", {"name": "fake_write"}, **named(session))
        assert vendor.answers.pop(0)["error"]["message"] == question_desk.TOO_MANY
        assert answer.status_code == 200
        await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})
        await first.read_all()
    assert runtime.current().questions.open_count == 0
    assert not runtime.current().questions._places._taken


async def test_a_client_that_leaves_ends_its_question(agent: Agent, tenant: Tenant, vendor: AskingVendor) -> None:
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        await stream.leave()
    await refused(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})
    await eventually(lambda: vendor.seen["notifications/cancelled"] == 1)
    rows = await in_thread(lambda: list(RequestAuditEntry.objects.values_list("error_code", "item")))
    assert rows == [("client_closed", "elicitation/create")]


async def test_a_stop_ends_a_question_that_nobody_answers(
    agent: Agent, tenant: Tenant, vendor: AskingVendor, stopping: None
) -> None:
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        assert await stream.read() is not None
        draining.end_calls()
        [found] = await stream.read_all()
    assert found["error"]["message"] == draining.CUT_OFF
    rows = await in_thread(lambda: list(RequestAuditEntry.objects.values_list("error_code", "item")))
    assert rows == [("gateway_stopped", "elicitation/create")]


async def test_access_that_ends_while_a_question_is_open_ends_the_call(
    agent: Agent, tenant: Tenant, vendor: AskingVendor
) -> None:
    """The answer is taken, and the vendor gets none."""
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        await in_thread(lambda: restrict_tools(tenant.organization))
        assert (await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})).status_code == 202
        [found] = await stream.read_all()
    assert found["result"]["isError"]
    assert "#tool_not_allowed" in found["result"]["_meta"]["gateway/help"]
    assert not vendor.answers
    await eventually(lambda: vendor.seen["notifications/cancelled"] == 1)
    rows = await in_thread(lambda: list(RequestAuditEntry.objects.values_list("status", "error_code")))
    assert rows == [("error", "tool_not_allowed")], "it was made"


async def test_rights_that_cannot_be_read_after_an_answer_end_the_call(
    agent: Agent, tenant: Tenant, vendor: AskingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The vendor learns that nobody waits any more."""

    async def away(*_: object) -> None:
        raise DatabaseUnavailable("away")

    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        answered = {"id": asked["id"], "result": YES}
        monkeypatch.setattr(ask_caller, "rights_now", away)  # after the answer's own request was admitted
        assert (await say(agent, tenant.agent_key, session, answered)).status_code == 202
        [found] = await stream.read_all()
    assert found["error"]
    assert not vendor.answers
    await eventually(lambda: vendor.seen["notifications/cancelled"] == 1)
    rows = await in_thread(lambda: list(RequestAuditEntry.objects.values_list("status", "error_code", "item")))
    assert rows == [("error", "internal_error", "elicitation/create")]


async def test_a_key_that_ends_while_a_question_is_open_ends_the_call(
    agent: Agent, tenant: Tenant, vendor: AskingVendor
) -> None:
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        await in_thread(lambda: mint_agent_key(actor=tenant.owner, client=tenant.client))
        assert (await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})).status_code == 401
        assert not vendor.answers


async def test_a_long_question_is_read_beside_the_event_loop(
    agent: Agent, tenant: Tenant, vendor: AskingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each character of it is looked at."""
    threads = set()

    def read(raw: bytes) -> questions.VendorQuestion | None:
        threads.add(threading.current_thread() is threading.main_thread())
        return known(raw)

    known = questions.read
    monkeypatch.setattr(questions, "read", read)
    vendor.questions = [form(message="\u202e" * 30_000)]
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        assert asked["params"]["message"] == ""
    assert threads == {False}


async def test_a_stored_key_in_a_question_is_masked(agent: Agent, tenant: Tenant, vendor: AskingVendor) -> None:
    vendor.questions = [form(message="Is right-key yours?", requestedSchema={"title": "right-key"})]
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        assert "right-key" not in json.dumps(asked)
        assert asked["params"]["message"].startswith("Is ")


async def test_an_open_question_keeps_no_other_call_from_the_vendor(
    agent: Agent, tenant: Tenant, vendor: AskingVendor
) -> None:
    """Its call may be the trial of a vendor that failed before. The question shows that it works again."""
    session = await session_of(agent, tenant.agent_key)
    await agent.rpc(tenant.agent_key, "tools/list")
    pool = runtime.current().pool
    [shared] = pool._sessions
    failed = CLOSED
    while failed.until_s is None:
        failed = failed.failed(time.monotonic() - 10_000)
    pool.circuits._circuits[shared_circuits.of_credential(shared.vendor, shared.credential_id)] = failed
    async with calling(tenant.agent_key, session) as stream:
        assert await stream.read() is not None
        assert not pool.circuits.has_trouble
        vendor.questions = []
        answer = await agent.rpc(tenant.agent_key, "tools/call", {"name": "fake_write"})
        assert answer.json()["result"]["content"][0]["text"] == "[]"


def replace_key(tenant: Tenant) -> None:
    connect(tenant.organization, tenant.owner)


def give_own_key(tenant: Tenant) -> None:
    more = {"service_client": tenant.client}
    connect(tenant.organization, tenant.owner, scope=CredentialScope.SERVICE_CLIENT, more=more)


@pytest.mark.parametrize("end", [replace_key, give_own_key])
async def test_credentials_that_end_while_a_question_is_open_end_the_call(
    agent: Agent, tenant: Tenant, vendor: AskingVendor, end: Callable[[Tenant], None]
) -> None:
    """Also where others apply instead: the vendor gets no answer under the former."""
    session = await session_of(agent, tenant.agent_key)
    async with calling(tenant.agent_key, session) as stream:
        asked = await stream.read()
        assert asked is not None
        await in_thread(lambda: end(tenant))
        assert (await say(agent, tenant.agent_key, session, {"id": asked["id"], "result": YES})).status_code == 202
        [found] = await stream.read_all()
    assert found["result"]["isError"]
    assert not vendor.answers
    rows = await in_thread(lambda: list(RequestAuditEntry.objects.values_list("status", "error_code")))
    assert rows == [("error", "no_credentials")]
