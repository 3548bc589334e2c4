"""A part of the gateway breaks and the alert that is named after it fires; before, none does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.coordination import backend
from gateway.coordination.fallback_store import FallbackStore
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib.metrics import call_tally, figures, names
from gateway.lib.metrics.process_file import ProcessFile
from gateway.task_figures import TaskFigures
from proxy import runtime
from proxy.calls import call_figures
from proxy.process_gauges import ProcessGauges
from proxy.vendors.circuit import FAILURES_UNTIL_OPEN
from tests.api.proxy.conftest import Agent
from tests.factories.alerts import firing
from tests.factories.figures import scraped, value_of
from tests.factories.tenant import Tenant, load_vendor
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

OFTEN, EACH_MINUTE = "audit.roll_up_usage", "audit.seal_logs"


@pytest.fixture(autouse=True)
def _own_figures() -> Iterator[None]:
    call_tally.forget()
    figures.reset_all()
    yield
    figures.reset_all()


class Host:
    """The processes of a host: this one's web figures, and a worker's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._web = ProcessFile(folder, "web")
        ProcessFile(folder, "worker").write()

    def scrape(self) -> str:
        serving = runtime.current()
        ProcessGauges(self._web, serving.audit, serving.pool, serving.transport).read()
        self._web.write()
        return scraped(self.folder)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


async def test_nothing_fires_while_all_is_well(agent: Agent, tenant: Tenant, host: Host) -> None:
    before = host.scrape()
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 200
    assert firing(before, host.scrape()) == set()


async def test_no_web_process_and_no_worker(agent: Agent, host: Host, tmp_path: Path) -> None:
    assert firing(host.scrape()) == set()
    assert firing(scraped(tmp_path / "nobody")) == {"GatewayProcessesAway"}
    ProcessFile(tmp_path / "only-web", "web").write()
    assert firing(scraped(tmp_path / "only-web")) == {"GatewayProcessesAway"}


async def test_the_request_log_takes_no_records(agent: Agent, tenant: Tenant, jwt: str, host: Host) -> None:
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 200
    before = host.scrape()
    runtime.current().audit.outage.is_active = True
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 503
    assert firing(before, host.scrape()) == {"GatewayDatabaseAway", "GatewayCallsUnavailable"}
    runtime.current().audit.outage.is_active = False
    # A gauge is that of now, and the calls of before stay counted for their five minutes.
    assert firing(before, host.scrape()) == {"GatewayCallsUnavailable"}


class RefusingStore:
    """A Redis that does not answer."""

    returns = None

    def ping(self) -> None:
        raise CoordinationUnavailable("no answer")


async def test_redis_is_away(agent: Agent, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime.current()  # with a store that works
    store = FallbackStore(RefusingStore(), processes=1)  # type: ignore[arg-type]
    monkeypatch.setattr(backend, "current", lambda: store)
    try:
        assert firing(host.scrape()) == set()
        with pytest.raises(CoordinationUnavailable):
            store.ping()
        assert firing(host.scrape()) == {"GatewayCoordinationAway"}
    finally:
        store.stop()


async def test_commits_are_slow(agent: Agent, host: Host) -> None:
    before = host.scrape()
    context: Any = SimpleNamespace(timing=SimpleNamespace(note_audit=lambda began_s: perf_counter() - began_s))
    for slow in (False, True):
        for _ in range(100):
            call_figures.count_commit(context, perf_counter() - (2.0 if slow else 0.001))
        assert firing(before, host.scrape()) == ({"GatewayAuditSlow"} if slow else set())


async def test_a_vendor_takes_no_connections(agent: Agent, tenant: Tenant, vendor: FakeVendor, host: Host) -> None:
    await in_thread(lambda: load_vendor("http://127.0.0.1:9/mcp"))
    for _ in range(FAILURES_UNTIL_OPEN):
        assert firing(host.scrape()) == set()
        await agent.call(tenant.agent_key, "fake_list")
    text = host.scrape()
    assert firing(text) == {"GatewayVendorCircuitOpen"}
    assert value_of(text, "gateway_circuit_open", vendor="fake") == 1


@pytest.mark.parametrize(("name", "silent_after_s"), [(OFTEN, 31), (EACH_MINUTE, 301)])
async def test_a_task_no_longer_ends_well(
    agent: Agent, host: Host, monkeypatch: pytest.MonkeyPatch, name: str, silent_after_s: float
) -> None:
    now_s = 1_000_000_000.0
    monkeypatch.setattr("gateway.task_figures.time", SimpleNamespace(time=lambda: now_s))
    tasks = TaskFigures(host.folder, "worker", {name})
    task = SimpleNamespace(name=name, request=SimpleNamespace(published_at=now_s - 3))
    tasks._on_start(task)
    tasks._on_success(task)
    tasks._on_success(SimpleNamespace(name="a.task.of.no.schedule"))
    tasks._on_end()
    text = host.scrape()
    assert names.QUEUE_WAIT_SECONDS.values == {(): 3}
    assert "a.task.of.no.schedule" not in text
    assert firing(text, at_s=now_s + silent_after_s - 1) == set()
    assert firing(text, at_s=now_s + silent_after_s) == {"GatewayScheduleSilent"}
