"""A PostgreSQL that answers nothing for a while, and one that takes no rows: what calls, vendors and probes see."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import psycopg
import pytest

from tests.e2e import agent
from tests.e2e.agent import ServiceClient
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Deployment, Operator, Web, deployment
from tests.e2e.shared_gateway import keyless_catalog
from tests.fakes.vendor import FakeVendor, running_vendor
from tests.faults import database_silent

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")


@pytest.fixture
def made(template: Template, tmp_path: Path) -> Iterator[Deployment]:
    """A deployment on PostgreSQL of this test's own."""
    if template.database.is_sqlite:
        pytest.skip("no server stands between the embedded default and its file")
    with deployment(template, tmp_path / "var", variables=database_silent.VARIABLES) as made:
        yield made


async def test_a_silent_database_costs_seconds_and_no_row(made: Deployment) -> None:
    """The short form of `python -m tests.faults.database_silent`; how fast refusals are is for the long one."""
    report = await database_silent.measure(made, seconds=8.0, calls_per_s=40, grace_s=4.0)
    assert report.broken(refusal_bound_ms=3_000) == [], "\n".join(report.lines())
    assert report.answered > 100
    assert len(report.refusals_ms) > 100


class Reader:
    """Calls with a reading and a writing tool, and the readiness of the server."""

    def __init__(self, session: aiohttp.ClientSession, gateway: Web, service_client: ServiceClient) -> None:
        self._session, self._gateway, self._service_client = session, gateway, service_client

    async def call(self, tool: str) -> int:
        """The status of one call."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
        headers = agent.bearer(self._service_client.agent_key)
        async with self._session.post(self._gateway.mcp_url, json=body, headers=headers) as answer:
            await answer.read()
            return answer.status

    async def readiness(self) -> tuple[int, str]:
        """The status of /ready, and what it says of the database."""
        async with self._session.get(f"{self._gateway.origin}/ready") as answer:
            return answer.status, (await answer.json())["checks"]["database"]

    async def until(self, status: int) -> None:
        """Both tools and /ready answer with this status."""
        async with asyncio.timeout(30):
            while {await self.call("fake_list"), await self.call("fake_write"), (await self.readiness())[0]} != {
                status
            }:
                await asyncio.sleep(0.05)


@contextlib.contextmanager
def read_only(made: Deployment) -> Iterator[None]:
    """As a server that an operator, or a failover, has made read-only: new sessions can change nothing."""
    server = made.database.url.rpartition("/")[0] + "/postgres"
    name = made.database.name
    with psycopg.connect(server, autocommit=True) as admin:

        def switch(value: str) -> None:
            admin.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = {value}'.encode())
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])

        switch("on")
        yield
        switch("off")


def calls_of(vendor: FakeVendor) -> int:
    return vendor.seen["tools/call"]


async def test_a_database_that_takes_no_rows_is_asked_by_probes_alone(made: Deployment) -> None:
    async with running_vendor(api_key=None) as vendor, aiohttp.ClientSession() as session:
        with contextlib.ExitStack() as stack:
            operator: Operator = stack.enter_context(made.operator())
            service_client = new_service_client(operator, vendor)
            gateway = await asyncio.to_thread(stack.enter_context, made.web())
            reader = Reader(session, gateway, service_client)
            assert [await reader.call("fake_list"), await reader.call("fake_write")] == [200, 200]
            assert await reader.readiness() == (200, "ok")
            with read_only(made):
                await reader.until(503)
                asked = calls_of(vendor)
                for _ in range(10):
                    assert [await reader.call("fake_list"), await reader.call("fake_write")] == [503, 503]
                assert calls_of(vendor) == asked, "every session could read, and nothing was sent"
                assert await reader.readiness() == (503, "failed")
            await reader.until(200)
        rows = made.database.select("SELECT status FROM audit_requestauditentry")
        assert ("success",) in rows


def new_service_client(operator: Operator, vendor: FakeVendor) -> ServiceClient:
    """A service client of a new organization that uses the vendor."""
    operator.run("load_catalog", text=keyless_catalog("fake", vendor.url))
    org_id = operator.run("create_organization", name="Read only")
    operator.run("connect_vendor", org_id=org_id, vendor="fake", fields={})
    return ServiceClient(org_id=org_id, **operator.run("create_service_client", org_id=org_id, name="bot"))
