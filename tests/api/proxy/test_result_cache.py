"""Results used again: one vendor call for many callers, nothing older than a write, nothing across a border."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import Any

import httpx
import pytest

from audit.models import RequestAuditEntry
from credentials.models import Credential
from gateway.catalog.tool_config import parse_tool_config
from gateway.coordination.rules import Rule
from proxy import hot_path_database, runtime
from proxy.cache.keys import epoch_name
from proxy.runtime import Runtime
from tests.api.proxy.conftest import Agent, access_token, inside
from tests.api.proxy.traces import until
from tests.factories.tenant import Tenant, connect, load_vendor, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor


async def how(call: Awaitable[httpx.Response]) -> tuple[int, str]:
    answer = await call
    return answer.status_code, answer.headers["X-Cache"]


async def rows(**where: Any) -> list[tuple[str, str, bool]]:
    """Status, tool and whether it was cached, of each row."""
    found = RequestAuditEntry.objects.filter(**where).order_by("timestamp", "id")
    return await in_thread(lambda: list(found.values_list("status", "tool", "cached")))


async def test_the_second_read_is_answered_without_the_vendor(agent: Agent, jwt: str, vendor: FakeVendor) -> None:
    first = await agent.cli(jwt, "list", {"site": "hq"})
    second = await agent.cli(jwt, "fake_list", {"site": "hq"})
    assert (first.headers["X-Cache"], second.headers["X-Cache"]) == ("MISS", "HIT")
    assert first.content == second.content
    assert vendor.seen["tools/call"] == 1
    assert await rows() == [("success", "fake_list", False), ("success", "fake_list", True)]
    (cached,) = await in_thread(lambda: list(RequestAuditEntry.objects.filter(cached=True)))
    assert cached.vendor_ms == 0
    assert (cached.credential_scope, cached.response_bytes > 0) == ("organization", True)
    assert second.headers["X-Vendor-Ms"] == "0"
    assert await how(agent.cli(jwt, "list", {"site": "elsewhere"})) == (200, "MISS")


async def test_a_thousand_identical_reads_at_once_are_one_vendor_call(
    agent: Agent, jwt: str, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    await in_thread(lambda: load_vendor(vendor.url, timeout_s=60))
    monkeypatch.setattr(hot_path_database, "DB_DEADLINE_S", 60.0)
    vendor.delay_s = 0.5
    answers = await asyncio.gather(*(agent.cli(jwt, "list", {"site": "hq"}) for _ in range(1_000)))
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.content for answer in answers} == {answers[0].content}
    assert vendor.seen["tools/call"] == 1
    assert [answer.headers["X-Cache"] for answer in answers].count("MISS") == 1
    assert len(await rows(status="success", cached=True)) == 999


async def test_a_write_is_seen_by_the_next_read_in_another_process(
    agent: Agent, jwt: str, vendor: FakeVendor, other_process: Runtime
) -> None:
    for _ in range(2):
        with inside(other_process):
            expected = ["MISS", "HIT"]
            assert [await how(agent.cli(jwt, "list")) for _ in range(2)] == [(200, each) for each in expected]
        assert await how(agent.cli(jwt, "write")) == (200, "BYPASS")
        assert await how(agent.cli(jwt, "list")) == (200, "MISS")
        with inside(other_process):
            assert await how(agent.cli(jwt, "list")) == (200, "MISS")
            assert await how(agent.cli(jwt, "write")) == (200, "BYPASS")
        assert await how(agent.cli(jwt, "list")) == (200, "MISS")
        with inside(other_process):
            await agent.cli(jwt, "write")


async def test_a_write_over_mcp_counts_as_well_and_so_does_one_that_failed(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor
) -> None:
    await agent.cli(jwt, "list")
    assert (await agent.call(tenant.agent_key, "fake_write")).status_code == 200
    assert await how(agent.cli(jwt, "list")) == (200, "MISS")
    vendor.status = 500
    assert await how(agent.cli(jwt, "write")) == (502, "BYPASS")
    vendor.status = 200
    assert await how(agent.cli(jwt, "list")) == (200, "MISS")


async def test_a_write_whose_caller_left_counts_too(agent: Agent, jwt: str, vendor: FakeVendor) -> None:
    await agent.cli(jwt, "list")
    vendor.delay_s = 30.0
    leaving = asyncio.ensure_future(agent.cli(jwt, "write"))
    await until(lambda: vendor.seen["tools/call"] >= 2)
    leaving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await leaving
    vendor.delay_s = 0.0
    assert await how(agent.cli(jwt, "list")) == (200, "MISS")


async def test_a_read_that_began_before_a_write_is_not_kept_past_it(agent: Agent, jwt: str, vendor: FakeVendor) -> None:
    await agent.cli(jwt, "list", {"site": "warm"})
    vendor.delay_s = 0.4
    before = asyncio.ensure_future(agent.cli(jwt, "list"))
    await until(lambda: vendor.seen["tools/call"] >= 2)
    vendor.delay_s = 0.0
    await agent.cli(jwt, "write")
    assert await how(agent.cli(jwt, "list")) == (200, "MISS"), "it does not join the call that began before"
    assert await how(before) == (200, "MISS")
    assert vendor.seen["tools/call"] == 4


async def test_two_organizations_never_share(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor
) -> None:
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    ours, theirs = [await in_thread(lambda each=each: access_token(each)) for each in (tenant, other_tenant)]
    assert [await how(agent.cli(token, "list")) for token in (ours, theirs)] == [(200, "MISS")] * 2
    assert [await how(agent.cli(token, "list")) for token in (ours, theirs)] == [(200, "HIT")] * 2
    await agent.cli(theirs, "write")
    assert await how(agent.cli(ours, "list")) == (200, "HIT"), "nor does a write reach across"
    assert vendor.seen["tools/call"] == 3


@pytest.mark.parametrize("setting", [{"status": 503}, {"reply": "html"}, {"reply": "silence"}])
async def test_errors_of_the_vendor_are_not_kept(
    agent: Agent, jwt: str, vendor: FakeVendor, setting: dict[str, Any]
) -> None:
    was = {name: getattr(vendor, name) for name in setting}
    for name, value in setting.items():
        setattr(vendor, name, value)
    assert [await how(agent.cli(jwt, "list")) for _ in range(2)] == [(502, "MISS")] * 2
    for name, value in was.items():
        setattr(vendor, name, value)
    assert await how(agent.cli(jwt, "list")) == (200, "MISS")


async def test_errors_of_the_tool_are_not_kept(agent: Agent, jwt: str, vendor: FakeVendor) -> None:
    assert [await how(agent.cli(jwt, "fail")) for _ in range(2)] == [(422, "MISS")] * 2
    assert vendor.seen["tools/call"] == 2


async def test_the_allowlist_comes_before_the_cache(agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor) -> None:
    await agent.cli(jwt, "list")
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_write"))
    assert await how(agent.cli(jwt, "list")) == (403, "BYPASS")
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
    assert await how(agent.cli(jwt, "list")) == (200, "HIT")


async def test_the_limit_comes_before_the_cache(agent: Agent, jwt: str, settings: Any) -> None:
    settings.TOOL_CALLS = Rule("tools-of-this-test", limit=2, window_s=3600)
    found = [await how(agent.cli(jwt, "list")) for _ in range(3)]
    assert found == [(200, "MISS"), (200, "HIT"), (429, "BYPASS")]


async def test_a_replaced_credential_starts_anew_and_a_deleted_one_ends(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor
) -> None:
    await agent.cli(jwt, "list")
    await in_thread(lambda: connect(tenant.organization, tenant.owner))
    assert await how(agent.cli(jwt, "list")) == (200, "MISS")
    assert await how(agent.cli(jwt, "list")) == (200, "HIT")
    await in_thread(lambda: connect(tenant.organization, tenant.owner, apiKey="wrong-key"))
    assert await how(agent.cli(jwt, "list")) == (502, "BYPASS")
    await in_thread(Credential.objects.all().delete)
    restrict = restrict_tools
    await in_thread(lambda: restrict(tenant.organization, "fake_list"))
    assert await how(agent.cli(jwt, "list")) == (403, "BYPASS")


async def test_results_of_credentials_that_the_vendor_rejects_are_dropped(
    agent: Agent, jwt: str, vendor: FakeVendor
) -> None:
    await agent.cli(jwt, "list")
    vendor.status = 403
    assert await how(agent.cli(jwt, "list", {"site": "hq"})) == (502, "MISS")
    assert await how(agent.cli(jwt, "list")) == (502, "MISS")


async def test_the_first_of_many_may_leave(agent: Agent, jwt: str, vendor: FakeVendor) -> None:
    await agent.cli(jwt, "list", {"site": "warm"})
    vendor.delay_s = 2.0
    first = asyncio.ensure_future(agent.cli(jwt, "list"))
    await until(lambda: vendor.seen["tools/call"] >= 2)
    second = asyncio.ensure_future(agent.cli(jwt, "list"))
    await until(lambda: 2 in runtime.current().results._flights._waiters.values())
    first.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await first
    assert await how(second) == (200, "HIT")
    assert await how(agent.cli(jwt, "list")) == (200, "HIT")
    assert vendor.seen["tools/call"] == 2


async def test_mcp_asks_the_vendor_each_time(agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor) -> None:
    for _ in range(2):
        await agent.call(tenant.agent_key, "fake_list")
    assert await how(agent.cli(jwt, "list")) == (200, "MISS")
    await agent.call(tenant.agent_key, "fake_list")
    assert vendor.seen["tools/call"] == 4
    assert not await rows(cached=True)


async def test_mcp_uses_results_again_where_operators_named_the_tool(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor, settings: Any
) -> None:
    settings.VENDOR_TOOL_CONFIG = parse_tool_config('{"fake":{"tools":{"fake_list":{"ttl":30}}}}')
    answers = [await agent.call(tenant.agent_key, "fake_list", site="hq") for _ in range(2)]
    assert answers[0].json()["result"] == answers[1].json()["result"]
    assert vendor.seen["tools/call"] == 1
    assert await how(agent.cli(jwt, "list", {"site": "hq"})) == (200, "HIT"), "one cache for all routes"
    assert [cached for _, _, cached in await rows()] == [False, True, True]
    batch = [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": {"site": "hq"}}}
        for number, name in enumerate(("fake_list", "fake_write"))
    ]
    await agent.http.post("/v1/mcp", json=batch, headers={"Authorization": f"Bearer {tenant.agent_key}"})
    assert [row for row in await rows() if row[1] == "fake_write" and row[0] == "success"][-1][2] is False


async def test_a_call_with_more_in_its_meta_is_neither_answered_from_a_kept_result_nor_kept(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, settings: Any
) -> None:
    settings.VENDOR_TOOL_CONFIG = parse_tool_config('{"fake":{"tools":{"fake_list":{"ttl":30}}}}')
    params = {"name": "fake_list", "arguments": {"site": "hq"}}
    for meta, asked in (({"com.example/as": "x"}, 1), ({}, 2), ({"progressToken": 1}, 2), ({"traceparent": "00"}, 3)):
        answer = await agent.rpc(tenant.agent_key, "tools/call", {**params, "_meta": meta})
        assert answer.status_code == 200
        assert vendor.seen["tools/call"] == asked, meta
    vendor.delay_s = 0.2
    several = [agent.rpc(tenant.agent_key, "tools/call", {**params, "_meta": {"a": n}}) for n in range(3)]
    await asyncio.gather(*several)
    assert vendor.seen["tools/call"] == 6


@pytest.mark.parametrize("config", ['{"fake":{"ttl":0}}', '{"fake":{"tools":{"fake_list":{"readOnly":false}}}}'])
async def test_operators_can_switch_it_off(
    agent: Agent, jwt: str, vendor: FakeVendor, settings: Any, config: str
) -> None:
    settings.VENDOR_TOOL_CONFIG = parse_tool_config(config)
    assert [await how(agent.cli(jwt, "list")) for _ in range(2)] == [(200, "BYPASS")] * 2
    assert vendor.seen["tools/call"] == 2


async def test_what_never_reached_the_cache_says_so(agent: Agent, jwt: str) -> None:
    assert await how(agent.cli("wrong", "list")) == (401, "BYPASS")
    assert await how(agent.cli(jwt, "")) == (400, "BYPASS")
    assert await how(agent.cli(jwt, "list", vendor="unknown")) == (403, "BYPASS")
    assert (
        "X-Cache"
        in (await agent.http.post("/v1/fake/cli", headers={"Origin": "http://localhost"})).headers[
            "Access-Control-Expose-Headers"
        ]
    )


async def test_the_epoch_has_the_name_of_scope_and_vendor(agent: Agent, tenant: Tenant, jwt: str) -> None:
    name = epoch_name(tenant.organization.id, f"org:{tenant.organization.id}", "fake")
    assert await runtime.current().store.read_epochs([name]) == ("",)
    await agent.cli(jwt, "write")
    assert await runtime.current().store.read_epochs([name]) == ("",), "nothing is kept yet, so nothing is dropped"
    await agent.cli(jwt, "list")
    (before,) = await runtime.current().store.read_epochs([name]) or ("",)
    await agent.cli(jwt, "write")
    (after,) = await runtime.current().store.read_epochs([name]) or ("",)
    assert before
    assert after not in ("", before)
