"""Questions of vendors in the middle of a call, for callers of the earlier revisions. docs/decisions/0110"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from audit.models import RequestAuditEntry
from tests.api.proxy.asking import CAN, FORM, YES, AskingVendor, begin, calling, form, named, say, session_of
from tests.api.proxy.conftest import Agent, headers
from tests.factories.cast import Cast
from tests.factories.tenant import Tenant, make_connected_tenant
from tests.factories.threads import in_thread
from tests.fakes.vendor import running_vendor

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def vendor() -> AsyncIterator[AskingVendor]:
    async with running_vendor(AskingVendor) as running:
        assert isinstance(running, AskingVendor)
        yield running


@pytest.fixture
def tenant(vendor: AskingVendor, committed_cast: Cast) -> Tenant:
    return make_connected_tenant(committed_cast.org, committed_cast.user("owner"), vendor.url)


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
