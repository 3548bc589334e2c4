"""A write goes to the vendor once, whatever its refusal sounds like; the vendor's own error reaches the caller.

Spec: §4.14 (3)-(5) · D104, D105
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from django.conf import LazySettings

from tests.api.proxy.conftest import Agent
from tests.factories.tenant import Tenant
from tests.fakes.vendor import FakeVendor, running_vendor


@dataclass
class RefusingVendor(FakeVendor):
    """Runs its tools, and refuses the next ones all the same: `refused` holds status and body of each."""

    refused: list[tuple[int, Any]] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)

    async def _answer(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if body["method"] == "tools/call":
            self.ran.append(body["params"]["name"])
            if self.refused:
                status, refusal = self.refused.pop(0)
                if isinstance(refusal, dict):
                    refusal = json.dumps({"jsonrpc": "2.0", "id": None, "error": refusal} | refusal.pop("envelope", {}))
                return web.Response(status=status, text=refusal)
        return await super()._answer(request, body)


@pytest.fixture
async def vendor() -> AsyncIterator[RefusingVendor]:
    async with running_vendor(RefusingVendor) as running:
        assert isinstance(running, RefusingVendor)
        yield running


CREATED = {"code": -32000, "message": "checkout session cs_1 was created but could not be confirmed"}
FULL = {"code": -32602, "message": "The training session is full", "data": {"room": 3}}


@pytest.mark.parametrize("status", [400, 404])
@pytest.mark.parametrize("refusal", [CREATED, FULL], ids=["created", "full"])
async def test_a_write_that_failed_in_the_words_of_a_session_is_not_sent_again(
    agent: Agent, tenant: Tenant, vendor: RefusingVendor, status: int, refusal: dict[str, Any]
) -> None:
    vendor.refused = [(status, dict(refusal))]
    answer = await agent.call(tenant.agent_key, "fake_write", n=1)
    assert vendor.ran == ["fake_write"]
    assert answer.status_code == 200
    assert answer.json()["error"] == refusal
    answer = await agent.call(tenant.agent_key, "fake_write", n=2)
    assert answer.json()["result"]["structuredContent"] == {"n": 2}
    assert vendor.ran == ["fake_write"] * 2


async def test_a_write_is_not_sent_again_for_a_text_about_a_session(
    agent: Agent, tenant: Tenant, jwt: str, vendor: RefusingVendor
) -> None:
    vendor.refused = [(400, "the session is full")]
    answer = await agent.call(tenant.agent_key, "fake_write")
    assert vendor.ran == ["fake_write"]
    error = answer.json()["error"]
    assert (error["code"], error["data"]) == (-32603, {"vendor": "fake", "reason": "bad_vendor_response"})
    vendor.refused = [(400, "the session is full")]
    answer = await agent.cli(jwt, "write")
    assert (answer.status_code, "HTTP 400" in answer.text) == (502, True)
    assert vendor.ran == ["fake_write"] * 2


async def test_a_read_may_be_sent_again_for_a_text_about_a_session(
    agent: Agent, tenant: Tenant, vendor: RefusingVendor
) -> None:
    vendor.refused = [(400, "unknown session")]
    answer = await agent.call(tenant.agent_key, "fake_list", site="hq")
    assert answer.json()["result"]["structuredContent"] == {"site": "hq"}
    assert vendor.ran == ["fake_list"] * 2
    assert vendor.seen["initialize"] == 2


@pytest.mark.parametrize(
    "refusal",
    [
        (404, ""),
        (404, {"code": -32001, "message": "Session not found"}),
        (404, {"code": -32600, "message": "Session not found", "envelope": {"id": "server-error"}}),
        (400, {"code": -32000, "message": "Bad Request: No valid session ID provided"}),
    ],
)
async def test_a_write_is_sent_again_once_when_the_session_is_unknown(
    agent: Agent, tenant: Tenant, vendor: RefusingVendor, refusal: tuple[int, Any]
) -> None:
    vendor.refused = [refusal]
    answer = await agent.call(tenant.agent_key, "fake_write", n=1)
    assert answer.json()["result"]["structuredContent"] == {"n": 1}
    assert vendor.ran == ["fake_write"] * 2


@pytest.mark.parametrize("status", [400, 404])
@pytest.mark.parametrize("tool", ["fake_list", "fake_write"])
async def test_an_error_in_the_body_of_a_refusal_is_the_vendors_own(
    agent: Agent, tenant: Tenant, jwt: str, vendor: RefusingVendor, status: int, tool: str
) -> None:
    error = {"code": -32602, "message": "Unknown site", "data": {"known": ["hq"]}}
    vendor.refused = [(status, dict(error))]
    answer = await agent.call(tenant.agent_key, tool)
    assert (answer.status_code, answer.json()["error"]) == (200, error)
    vendor.refused = [(status, dict(error))]
    answer = await agent.cli(jwt, tool)
    assert (answer.status_code, answer.json()["error"]) == (
        502,
        "The vendor returned an error: Unknown site",
    )
    assert vendor.ran == [tool] * 2


async def test_no_call_goes_to_our_own_address(
    agent: Agent, tenant: Tenant, vendor: RefusingVendor, settings: LazySettings
) -> None:
    settings.BASE_URL = vendor.url.removesuffix("/mcp")
    answer = await agent.call(tenant.agent_key, "fake_list")
    assert answer.json()["error"]["message"] == "The vendor’s address is not allowed."
    assert sum(vendor.seen.values()) == 0


async def test_reserved_members_of_meta_pass_in_neither_direction(
    agent: Agent, tenant: Tenant, vendor: RefusingVendor
) -> None:
    reserved = "io.modelcontextprotocol/"
    own = {f"{reserved}serverInfo": {"name": "x"}, "com.example/cost": 3}
    call = vendor._call
    vendor._call = lambda params: {"result": {**call(params)["result"], "_meta": own}}  # type: ignore[method-assign]
    meta = {
        f"{reserved}protocolVersion": "2025-11-25",
        f"{reserved}clientInfo": {},
        "dev.mcp/x": 1,
        "traceparent": "00-1",
    }
    answer = await agent.rpc(
        tenant.agent_key, "tools/call", {"name": "fake_list", "arguments": {"site": "hq"}, "_meta": meta}
    )
    assert vendor.bodies[-1]["params"]["_meta"] == {"traceparent": "00-1"}
    assert answer.json()["result"]["_meta"] == {"com.example/cost": 3}
    assert answer.json()["result"]["structuredContent"] == {"site": "hq"}
