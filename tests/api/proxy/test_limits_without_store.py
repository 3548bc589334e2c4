"""One answer of the shared store that comes too late opens no new window to who has used up the old one.

Spec: D20, D23 · reliability.md 4
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from django.conf import LazySettings
from httpx import Response

from gateway.coordination.fallback_store import FallbackStore
from gateway.coordination.retry_thread import RetryThread
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission, CoordinationStore, CoordinationUnavailable
from proxy import runtime
from tests.api.proxy.conftest import Agent
from tests.factories.tenant import Tenant, connect
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

RULE = Rule("tools", limit=8, window_s=3600)
PROCESSES = 2
PAUSE_S = 5.0


class LateStore:
    """The run's own store, which is late for tool calls while it `is_late`."""

    def __init__(self, store: CoordinationStore) -> None:
        self.is_late = False
        self.store = store

    async def admit(self, rule: Rule, key: str, epochs: Sequence[str]) -> Admission:
        if self.is_late:
            raise CoordinationUnavailable("late")
        return await self.store.admit(rule, key, epochs)

    async def charge(self, rule: Rule, key: str, units: int) -> Admission:
        if self.is_late:
            raise CoordinationUnavailable("late")
        return await self.store.charge(rule, key, units)

    def hit(self, rule: Rule, key: str) -> Admission:
        return self.store.hit(rule, key)

    def peek(self, rule: Rule, key: str) -> Admission:
        return self.store.peek(rule, key)

    async def read_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        return await self.store.read_epochs(names)

    async def begin_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        return await self.store.begin_epochs(names)

    async def renew_epoch(self, name: str) -> None:
        await self.store.renew_epoch(name)

    def bump_epochs(self, names: Sequence[str]) -> None:
        self.store.bump_epochs(names)

    def put_health(self, vendor: str, state: bytes, ttl_s: int) -> None:
        self.store.put_health(vendor, state, ttl_s)

    def health(self, vendors: Sequence[str]) -> Mapping[str, bytes]:
        return self.store.health(vendors)

    def ping(self) -> None:
        self.store.ping()

    async def aclose(self) -> None:
        await self.store.aclose()


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Process:
    """This process, one of two, and the calls that agents get through."""

    def __init__(self, agent: Agent) -> None:
        self.agent, self.clock = agent, Clock()
        current = runtime.current()
        self.late = LateStore(current.store)
        self.store = current.store = FallbackStore(self.late, processes=PROCESSES, monotonic=self.clock)

    async def calls(self, tenant: Tenant, count: int) -> list[int]:
        """How each call was answered."""
        answers = [await self.agent.call(tenant.agent_key, "fake_list") for _ in range(count)]
        assert all(int(one.headers["Retry-After"]) > 0 for one in answers if one.status_code == 429)
        return [answer.status_code for answer in answers]

    def goes(self, *, late: bool) -> None:
        """From now on the store is late, or is not any more."""
        self.late.is_late = late
        self.clock.now += PAUSE_S
        if not late:
            self.store.recover()


@pytest.fixture
async def process(agent: Agent, settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Process:
    monkeypatch.setattr(RetryThread, "start", lambda self: None)  # the tests say when the store is tested
    settings.TOOL_CALLS = RULE
    return Process(agent)


@pytest.mark.parametrize(("used", "more"), [(8, 0), (7, 1), (5, 3), (4, 4), (1, 4)])
async def test_a_late_answer_leaves_what_was_left(
    process: Process, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor, used: int, more: int
) -> None:
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    assert await process.calls(tenant, used) == [200] * used
    process.goes(late=True)
    assert await process.calls(tenant, 6) == [200] * more + [429] * (6 - more)
    assert vendor.seen["tools/call"] == used + more
    assert await process.calls(other_tenant, 5) == [200] * 4 + [429], "half of the limit, for who has used nothing"


async def test_going_away_again_and_again_opens_no_window(process: Process, tenant: Tenant, vendor: FakeVendor) -> None:
    assert await process.calls(tenant, 4) == [200] * 4
    for _ in range(3):
        process.goes(late=True)
        await process.calls(tenant, 5)
        process.goes(late=False)
        await process.calls(tenant, 1)
    assert await process.calls(tenant, 3) == [200, 429, 429], "of the calls meanwhile the store knows nothing"
    process.goes(late=True)
    assert await process.calls(tenant, 2) == [429, 429]
    assert vendor.seen["tools/call"] == RULE.limit + RULE.limit // PROCESSES


async def test_large_bodies_have_the_processs_share(
    process: Process, tenant: Tenant, other_tenant: Tenant, settings: LazySettings
) -> None:
    settings.LARGE_BODIES = Rule("large-bodies", limit=8, window_s=60)
    process.goes(late=True)
    arguments = {"text": "x" * 3 * 64 * 1024}

    async def ping(one: Tenant) -> Response:
        return await process.agent.rpc(one.agent_key, "ping", arguments)

    assert (await ping(tenant)).status_code == 200
    refused = await ping(tenant)
    assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (429, True)
    assert "RateLimit" not in refused.headers, "the share is not the limit"
    assert (await ping(other_tenant)).status_code == 200


async def test_who_had_nothing_left_learns_when_the_store_is_asked_again(process: Process, tenant: Tenant) -> None:
    await process.calls(tenant, 8)
    process.goes(late=True)
    refused = await process.agent.call(tenant.agent_key, "fake_list")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1"), "the store is tested all the time"
    process.goes(late=False)
    refused = await process.agent.call(tenant.agent_key, "fake_list")
    assert refused.status_code == 429
    said_s = int(refused.headers["Retry-After"])
    assert said_s > PAUSE_S
    process.goes(late=True)
    again = await process.agent.call(tenant.agent_key, "fake_list")
    assert (again.status_code, int(again.headers["Retry-After"])) == (429, said_s - PAUSE_S)
