"""A vendor's error that asks for a page to be opened is a question, and passes as one. docs/decisions/0118"""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.proxy import asking
from tests.api.proxy.asking import AskingItemVendor, let_ask, named, session_of
from tests.api.proxy.conftest import Agent
from tests.factories.tenant import Tenant
from tests.factories.threads import in_thread

pytestmark = pytest.mark.django_db(transaction=True)
vendor, tenant = asking.item_vendor, asking.tenant
PAGE = {"mode": "url", "elicitationId": "7", "url": "https://pay.example/7", "message": "Pay"}
COMPLETE = (
    "completion/complete",
    {"ref": {"type": "ref/prompt", "name": "fake_greet"}, "argument": {"name": "who", "value": "A"}},
)
READ = ("resources/read", {"uri": "fake+test://static-text"})
CAN: dict[str, Any] = {"elicitation": {"url": {}}}
of_each = pytest.mark.parametrize(("method", "params"), [COMPLETE, READ], ids=["completion", "resource"])


def asks(vendor: AskingItemVendor, method: str, *pages: Any, **more: Any) -> None:
    data = {"elicitations": list(pages), **more}
    vendor.errors[method] = {"code": -32042, "message": "Pay first", "data": data}


async def error_of(agent: Agent, tenant: Tenant, method: str, params: Any, can: Any) -> dict[str, Any]:
    session = await session_of(agent, tenant.agent_key, can) if can else None
    found = await agent.rpc(tenant.agent_key, method, params, **named(session))
    error: dict[str, Any] = found.json()["error"]
    return error


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vendor's `errors` come before its questions."""
    usual = AskingItemVendor._answer

    async def answer(self: AskingItemVendor, request: Any, body: dict[str, Any]) -> Any:
        if body["method"] in self.errors:
            return await super(asking.AskingVendor, self)._answer(request, body)
        return await usual(self, request, body)

    monkeypatch.setattr(AskingItemVendor, "_answer", answer)


@of_each
async def test_a_page_passes_to_a_client_that_opens_pages(
    agent: Agent, tenant: Tenant, vendor: AskingItemVendor, method: str, params: Any
) -> None:
    asks(vendor, method, {**PAGE, "message": "Pay\u202e", "more": 1}, other="x")
    error = await error_of(agent, tenant, method, params, CAN)
    assert error == {"code": -32042, "message": "Pay first", "data": {"elicitations": [PAGE]}}


@of_each
@pytest.mark.parametrize("can", [None, {"elicitation": {}}, {"sampling": {}}], ids=["no-session", "forms", "sampling"])
async def test_no_page_for_a_client_that_declared_none(
    agent: Agent, tenant: Tenant, vendor: AskingItemVendor, method: str, params: Any, can: Any
) -> None:
    asks(vendor, method, PAGE)
    error = await error_of(agent, tenant, method, params, can)
    assert (error["code"], "elicitations" in error["data"]) == (-32603, False)
    assert "pay.example" not in str(error)


@of_each
async def test_no_page_where_the_organization_forbids_questions(
    agent: Agent, tenant: Tenant, vendor: AskingItemVendor, method: str, params: Any
) -> None:
    await in_thread(lambda: let_ask(tenant, "sampling"))
    asks(vendor, method, PAGE)
    assert (await error_of(agent, tenant, method, params, CAN | {"sampling": {}}))["code"] == -32603
    await in_thread(lambda: let_ask(tenant, "elicitation"))
    assert (await error_of(agent, tenant, method, params, CAN))["code"] == -32042


@pytest.mark.parametrize(
    "page",
    [
        {**PAGE, "url": "https://bank.example@evil.example/"},
        {**PAGE, "url": "javascript:alert(1)"},
        {**PAGE, "mode": "form"},
        {"mode": "url"},
        7,
    ],
)
async def test_no_page_whose_address_may_mislead(
    agent: Agent, tenant: Tenant, vendor: AskingItemVendor, page: Any
) -> None:
    for pages in ([page], [PAGE, page], [], [PAGE] * 11):
        asks(vendor, READ[0], *pages)
        assert (await error_of(agent, tenant, *READ, CAN))["code"] == -32603
