"""A vendor that sends the organization's key back: no caller reads it, and the organization's log says so.

Spec: SECURITY.md
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web
from django.conf import LazySettings

from audit.models import AdminAuditEntry
from gateway.catalog.tool_config import parse_tool_config
from orgs.services import secret_echoes
from proxy import runtime, secret_echo_detector
from proxy.vendors import message_reader
from tests.api.proxy.conftest import Agent
from tests.factories.tenant import Tenant, connect
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor, running_vendor

KEY = "right-key"
MASK = "********"


@dataclass
class EchoingVendor(FakeVendor):
    """Puts the key of the request into everything that it says; `padding` makes its results long."""

    padding: int = 0
    wraps: str = "{key}"
    in_errors: bool = False

    def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        key = self.headers["X-Api-Key"]
        encoded = base64.b64encode(f"user:{key}".encode()).decode()
        text = self.wraps.format(key=key, encoded=encoded) + "x" * self.padding
        if self.in_errors:
            return {"error": {"code": -32000, "message": f"bad key {key}", "data": {"headers": [key]}}}
        result = super()._call(params)
        result["result"]["content"].append({"type": "text", "text": text})
        return result

    async def _answer(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if self.status == 400 and body["method"] == "tools/call":
            error = {"code": -32602, "message": f"refused for {KEY}"}
            return web.json_response({"jsonrpc": "2.0", "id": body["id"], "error": error}, status=400)
        return await super()._answer(request, body)


@pytest.fixture
async def vendor() -> AsyncIterator[EchoingVendor]:
    async with running_vendor(EchoingVendor) as running:
        assert isinstance(running, EchoingVendor)
        yield running


async def echoes(tenant: Tenant) -> list[tuple[str, str, Any]]:
    """Actor, target and metadata of the rows in the organization's log."""
    await settled()
    rows = AdminAuditEntry.objects.filter(org_id=tenant.organization.id, event_type="vendor.secret_echoed")
    return await in_thread(lambda: list(rows.values_list("actor_label", "target_id", "metadata")))


async def settled() -> None:
    detector = runtime.current().secret_echo_detector
    while detector._tasks:
        await asyncio.wait(set(detector._tasks))


@pytest.mark.parametrize("reply", ["json", "sse"])
@pytest.mark.parametrize("padding", [0, 2 * message_reader.INLINE_MASK_BYTES], ids=["short", "long"])
async def test_the_key_reaches_no_caller_and_no_cache(
    agent: Agent, tenant: Tenant, jwt: str, vendor: EchoingVendor, settings: LazySettings, reply: str, padding: int
) -> None:
    settings.VENDOR_TOOL_CONFIG = parse_tool_config('{"fake":{"tools":{"fake_list":{"ttl":30}}}}')
    vendor.reply, vendor.padding = reply, padding
    vendor.wraps = "key {key}, header Basic {encoded}, again {key}"
    for _ in range(2):
        for answer in (
            await agent.call(tenant.agent_key, "fake_list", site="hq"),
            await agent.call(tenant.agent_key, "fake_write"),
            await agent.cli(jwt, "list", {"site": "hq"}),
        ):
            assert answer.status_code == 200
            assert KEY not in answer.text
            assert f"key {MASK}, header Basic " in answer.text
            assert base64.b64encode(b"user:" + KEY.encode()).decode() not in answer.text
            assert f"again {MASK}" in answer.text
    assert json.loads(answer.content)["result"]["content"][0]["text"] == '{"site": "hq"}'
    assert sorted(metadata["tool"] for _, _, metadata in await echoes(tenant)) == ["fake_list", "fake_write"]
    assert {(actor, target) for actor, target, _ in await echoes(tenant)} == {("System (secret watch)", "fake")}


@pytest.mark.parametrize("status", [200, 400])
async def test_errors_are_masked_too(
    agent: Agent, tenant: Tenant, jwt: str, vendor: EchoingVendor, status: int
) -> None:
    vendor.in_errors, vendor.status = True, status
    for answer in (await agent.call(tenant.agent_key, "fake_list"), await agent.cli(jwt, "list")):
        assert KEY not in answer.text
        assert MASK in answer.text
    assert len(await echoes(tenant)) == 1


async def test_progress_and_log_messages_are_masked(agent: Agent, tenant: Tenant, vendor: EchoingVendor) -> None:
    vendor.reply, vendor.steps, vendor.wraps = "sse", 2, "fine"
    vendor.strays = [{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": KEY}}]
    params = {"name": "fake_list", "arguments": {"note": KEY}, "_meta": {"progressToken": 1}}
    answer = await agent.rpc(tenant.agent_key, "tools/call", params)
    assert KEY not in answer.text
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    methods = [event.get("method") for event in events]
    assert methods == ["notifications/message", "notifications/progress"] * 2 + [None]
    assert answer.text.count(MASK) >= 5
    assert len(await echoes(tenant)) == 1


async def test_tool_lists_are_masked(agent: Agent, tenant: Tenant, vendor: EchoingVendor) -> None:
    vendor.tools = [{**vendor.tools[0], "description": f"Call me with {KEY}."}]
    vendor.wraps = "fine"
    answer = await agent.rpc(tenant.agent_key, "tools/list")
    assert KEY not in answer.text
    assert f"Call me with {MASK}." in answer.text
    assert [metadata["tool"] for _, _, metadata in await echoes(tenant)] == ["tools/list"]


async def test_the_key_of_another_organization_is_another_value(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: EchoingVendor
) -> None:
    vendor.api_key = None
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner, apiKey="another-key"))
    vendor.wraps = "right-key another-key"
    first = (await agent.call(tenant.agent_key, "fake_list")).text
    second = (await agent.call(other_tenant.agent_key, "fake_list")).text
    assert "******** another-key" in first
    assert "right-key ********" in second
    assert len(await echoes(tenant)) == len(await echoes(other_tenant)) == 1


async def test_a_key_that_is_too_common_is_left_alone(agent: Agent, tenant: Tenant, vendor: EchoingVendor) -> None:
    vendor.api_key = None
    await in_thread(lambda: connect(tenant.organization, tenant.owner, apiKey="changeme"))
    assert "changeme" in (await agent.call(tenant.agent_key, "fake_list")).text
    assert await echoes(tenant) == []


async def test_one_row_for_each_tool_and_hour_over_all_processes(
    agent: Agent, tenant: Tenant, vendor: EchoingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await agent.call(tenant.agent_key, "fake_list")
    assert len(await echoes(tenant)) == 1
    detector = runtime.current().secret_echo_detector
    detector._recorded_at_s.clear()  # as another process
    await agent.call(tenant.agent_key, "fake_list")
    assert len(await echoes(tenant)) == 1
    await in_thread(lambda: AdminAuditEntry.objects.update(timestamp=secret_echoes.clock.now() - secret_echoes.WINDOW))
    later_s = detector._monotonic() + secret_echo_detector.WINDOW_S
    detector._monotonic = lambda: later_s
    await agent.call(tenant.agent_key, "fake_list")
    assert len(await echoes(tenant)) == 2
    monkeypatch.setattr(secret_echoes, "RECORDED_PER_WINDOW", 1)
    await agent.call(tenant.agent_key, "fake_write")
    assert len(await echoes(tenant)) == 2


async def test_a_row_that_could_not_be_written_is_tried_again(
    agent: Agent, tenant: Tenant, vendor: EchoingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import OperationalError

    with monkeypatch.context() as patch:

        def away(**_: Any) -> bool:
            raise OperationalError

        patch.setattr(secret_echo_detector, "record_echo", away)
        assert KEY not in (await agent.call(tenant.agent_key, "fake_list")).text
        await settled()
    assert await echoes(tenant) == []
    assert KEY not in (await agent.call(tenant.agent_key, "fake_list")).text
    assert len(await echoes(tenant)) == 1
