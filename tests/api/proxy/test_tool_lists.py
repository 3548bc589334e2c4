"""Lists of tools as large as vendors like: read beside the event loop, and kept within a bound of bytes."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from proxy import runtime
from proxy.protocol import cli_schema
from proxy.vendors import tool_index
from tests.api.proxy.conftest import Agent
from tests.factories.tenant import Tenant, connect, load_vendor
from tests.factories.threads import in_thread
from tests.fakes.vendor import TOOLS, FakeVendor


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

    def noting(original: Any) -> Any:
        def noted(*args: Any, **kwargs: Any) -> Any:
            is_loop = threading.current_thread() is threading.main_thread()
            seen.append("loop" if is_loop else "thread")
            return original(*args, **kwargs)

        return noted

    monkeypatch.setattr(tool_index, "build_index", noting(tool_index.build_index))
    monkeypatch.setattr(cli_schema, "commands", noting(cli_schema.commands))
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


async def test_the_lists_of_all_are_bounded_in_bytes(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list nobody used for longest goes first, and is fetched again when it is needed."""
    monkeypatch.setattr(tool_index, "MAX_INDEX_BYTES", 250_000)
    vendor.tools = large(100)
    for slug in ("globex", "initech"):
        await in_thread(lambda slug=slug: load_vendor(vendor.url, slug=slug))
        await in_thread(lambda slug=slug: connect(tenant.organization, tenant.owner, slug))
    directory = runtime.current().directory
    for tool in ("fake_list", "globex_fake_list", "fake_list", "initech_fake_list"):
        assert "result" in (await agent.call(tenant.agent_key, tool)).json()
        assert 100_000 < directory.size_bytes <= 250_000
    assert {key.vendor for key in directory._indexes} == {"fake", "initech"}
    looks = vendor.seen["tools/list"]
    assert "result" in (await agent.call(tenant.agent_key, "globex_fake_list")).json()
    assert vendor.seen["tools/list"] == looks + 2
    assert directory.size_bytes == sum(index.size_bytes for index in directory._indexes.values())


async def test_a_list_that_is_fetched_again_counts_once(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_index, "REFETCH_AFTER_S", 0.0)
    directory = runtime.current().directory
    for _ in range(3):
        await agent.call(tenant.agent_key, "fake_nothing")
    (index,) = directory._indexes.values()
    assert directory.size_bytes == index.size_bytes > 0
