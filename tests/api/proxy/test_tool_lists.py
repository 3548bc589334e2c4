"""Lists of tools: as large as vendors like, read beside the event loop and kept within a bound of bytes; and of several
vendors at once, of which some do not answer."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web
from django.conf import LazySettings
from structlog.testing import capture_logs

from gateway.catalog.vendor import Vendor
from proxy import runtime
from proxy.calls import list_tools
from proxy.protocol import cli_schema
from proxy.vendors import tool_directory
from proxy.vendors.tool_directory import ToolDirectory
from proxy.vendors.tool_list_cache import ToolIndex
from tests.api.proxy.conftest import Agent
from tests.factories.tenant import Tenant, connect, load_vendor
from tests.factories.threads import in_thread
from tests.fakes.vendor import TOOLS, FakeVendor, running_vendor


def large(count: int = 300, size: int = 1_000) -> list[dict[str, Any]]:
    """So many tools, with a description of so many characters each."""
    more = [
        {"name": f"fake_tool_{n}", "description": "x" * size, "inputSchema": {"type": "object"}} for n in range(count)
    ]
    return [*TOOLS, *more]


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where lists were read, and commands made of them."""
    seen: list[str] = []

    def recording(original: Any) -> Any:
        def recorded(*args: Any, **kwargs: Any) -> Any:
            is_loop = threading.current_thread() is threading.main_thread()
            seen.append("loop" if is_loop else "thread")
            return original(*args, **kwargs)

        return recorded

    monkeypatch.setattr(tool_directory, "read_list", recording(tool_directory.read_list))
    monkeypatch.setattr(cli_schema, "commands", recording(cli_schema.commands))
    return seen


async def schema(agent: Agent, jwt: str) -> list[dict[str, Any]]:
    answer = await agent.http.get("/v1/fake/cli/schema", headers={"Authorization": f"Bearer {jwt}"})
    assert answer.status_code == 200
    commands: list[dict[str, Any]] = answer.json()["commands"]
    return commands


async def test_a_small_list_is_read_where_it_arrives(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor, threads: list[str]
) -> None:
    assert "result" in (await agent.call(tenant.agent_key, "fake_list")).json()
    assert len(await schema(agent, jwt)) == len(TOOLS)
    assert threads == ["loop", "loop"]


async def test_a_large_list_does_not_hold_up_the_loop(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor, threads: list[str]
) -> None:
    vendor.tools = large()
    assert "result" in (await agent.call(tenant.agent_key, "fake_tool_299")).json()
    listed = (await agent.rpc(tenant.agent_key, "tools/list")).json()["result"]["tools"]
    assert len(listed) == len(vendor.tools)
    assert len(await schema(agent, jwt)) == len(vendor.tools)
    assert threads == ["thread", "thread"]
    assert vendor.seen["tools/list"] == 4, "one look, in pages of 100"


def kept(directory: ToolDirectory) -> list[ToolIndex]:
    return [index for key in directory._indexes if (index := directory._indexes.peek(key)) is not None]


async def test_the_lists_of_all_are_bounded_in_bytes(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, settings: LazySettings
) -> None:
    """The list nobody used for longest goes first, and is fetched again when it is needed."""
    await runtime.stop()
    settings.TOOL_LIST_BYTES = 650_000
    vendor.tools = large(100)
    for slug in ("globex", "initech"):
        await in_thread(lambda slug=slug: load_vendor(vendor.url, slug=slug))
        await in_thread(lambda slug=slug: connect(tenant.organization, tenant.owner, slug))
    directory = runtime.current().directory
    for tool in ("fake_list", "globex_fake_list", "fake_list", "initech_fake_list"):
        assert "result" in (await agent.call(tenant.agent_key, tool)).json()
        assert 100_000 < directory._indexes.list_bytes <= 650_000
    assert {key.vendor for key in directory._indexes} == {"fake", "initech"}
    looks = vendor.seen["tools/list"]
    assert "result" in (await agent.call(tenant.agent_key, "globex_fake_list")).json()
    assert vendor.seen["tools/list"] == looks + 2
    assert directory._indexes.list_bytes == sum(index.content.kept_bytes for index in kept(directory))


async def test_a_list_that_is_fetched_again_counts_once(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_directory, "REFETCH_AFTER_S", 0.0)
    directory = runtime.current().directory
    for _ in range(3):
        await agent.call(tenant.agent_key, "fake_nothing")
    (index,) = kept(directory)
    assert directory._indexes.list_bytes == index.content.kept_bytes > 0


# --- several vendors --------------------------------------------------------------------------------------------------


async def add(tenant: Tenant, slug: str, url: str) -> None:
    """Another vendor, to which the organization is connected."""
    await in_thread(lambda: load_vendor(url, slug=slug, timeout_s=30))
    await in_thread(lambda: connect(tenant.organization, tenant.owner, slug))


async def test_slow_vendors_are_named_and_hold_up_no_quick_one(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor, settings: LazySettings
) -> None:
    """Two of them, of which one comes before the quick one in the catalog. Spec: §4.15 · D111"""
    async with running_vendor(hang_s=60.0) as slow:
        await add(tenant, "acme", slow.url)
        await add(tenant, "zeno", slow.url)
        settings.TOOL_LIST_DEADLINE_S = 5.0
        async with asyncio.timeout(30):  # half of what it would take to wait for one of them
            listed = (await agent.rpc(tenant.agent_key, "tools/list")).json()["result"]
        assert [each["name"] for each in listed["tools"]] == ["fake_fail", "fake_list", "fake_write"]
        late = {"acme": "vendor_timeout", "zeno": "vendor_timeout"}
        assert listed["_meta"] == {"gateway/unavailable": late}
        assert slow.seen["initialize"] == 2
        own = (await agent.rpc(jwt, "tools/list", path="/v1/fake/mcp")).json()["result"]
        assert (len(own["tools"]), "_meta" in own) == (3, False)


@dataclass
class MeetingVendor(FakeVendor):
    """Answers once as many were asked as are expected to be asked at the same time."""

    meeting: asyncio.Barrier | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One HTTP request."""
        if request.method == "POST" and (await request.json())["method"] == "tools/list":
            assert self.meeting is not None
            await self.meeting.wait()
        return await super().handle(request)


async def test_all_vendors_are_asked_at_once(agent: Agent, tenant: Tenant) -> None:
    """None of them answers before the others have been asked as well."""
    async with running_vendor(MeetingVendor, meeting=asyncio.Barrier(3)) as waiting:
        for slug in ("fake", "globex", "initech"):
            await add(tenant, slug, waiting.url)
        listed = (await agent.rpc(tenant.agent_key, "tools/list")).json()["result"]
    assert (len(listed["tools"]), "_meta" in listed) == (9, False)


@pytest.mark.parametrize("place", ["vendor_index", "may_call_tool"])
async def test_a_fault_of_ours_with_one_vendor_takes_no_other_one_with_it(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    await add(tenant, "globex", vendor.url)
    original = getattr(list_tools, place)

    def broken(*args: Any, **options: Any) -> Any:
        (asked,) = (each for each in args if isinstance(each, Vendor))
        if asked.slug == "globex":
            raise KeyError("right-key in the exception")
        return original(*args, **options)

    monkeypatch.setattr(list_tools, place, broken)
    with capture_logs() as logs:
        answer = await agent.rpc(tenant.agent_key, "tools/list")
    assert answer.status_code == 200
    listed = answer.json()["result"]
    assert [each["name"] for each in listed["tools"]] == ["fake_fail", "fake_list", "fake_write"]
    assert listed["_meta"] == {"gateway/unavailable": {"globex": "internal_error"}}
    assert "right-key" not in answer.text
    (line,) = [each for each in logs if each["log_level"] == "error"]
    assert (line["event"], line["vendor"]) == ("tools not listed", "globex")
    assert line["request_id"] == answer.headers["X-Request-Id"]
    monkeypatch.undo()
    assert "_meta" not in (await agent.rpc(tenant.agent_key, "tools/list")).json()["result"]
