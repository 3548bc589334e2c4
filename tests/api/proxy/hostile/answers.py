"""The same call over both routes, and what both have to say, and leave behind, when the vendor fails it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx

from audit.models import RequestAuditEntry
from proxy import runtime
from proxy.control_plane.health.states import HealthStatus
from tests.api.proxy.conftest import Agent
from tests.factories.tenant import Tenant
from tests.factories.threads import in_thread

UNAVAILABLE, TIMEOUT, BAD, REJECTED = (
    "vendor_unavailable",
    "vendor_timeout",
    "bad_vendor_response",
    "vendor_rejected_credentials",
)
PATIENCE_S = 60.0  # each fault would last for ever


@dataclass(frozen=True)
class Row:
    """`circuit`: the one that is touched: none, the credential's, the vendor's. `probe`: the monitor's verdict."""

    reason: str
    circuit: str = ""
    probe: HealthStatus = HealthStatus.DEGRADED
    retry_after_s: int | None = None


async def rows() -> list[RequestAuditEntry]:
    return await in_thread(lambda: list(RequestAuditEntry.objects.order_by("source")))


async def both(
    agent: Agent, tenant: Tenant, jwt: str, tool: str = "fake_write"
) -> tuple[httpx.Response, httpx.Response]:
    """The same call over both routes at once."""
    async with asyncio.timeout(PATIENCE_S):
        mcp, cli = await asyncio.gather(agent.call(tenant.agent_key, tool), agent.cli(jwt, tool))
    return mcp, cli


async def warm(agent: Agent, tenant: Tenant, jwt: str) -> None:
    """The session is open and the tools are known; the log is empty again."""
    for answer in await both(agent, tenant, jwt):
        assert answer.status_code == 200
    await in_thread(lambda: RequestAuditEntry.objects.all().delete())


def troubled_circuits() -> set[str]:
    """The kinds of circuits that have recorded something."""
    found = runtime.current().pool.circuits._circuits
    return {"credential" if ":" in name else "vendor" for name in found}


async def nothing_is_held() -> None:
    """Every connection is free or closed, and every place given back."""
    live = runtime.current()
    async with asyncio.timeout(PATIENCE_S):
        while any(connections._busy for connections in live.transport._by_origin.values()):
            await asyncio.sleep(0.01)
    assert all(each.is_unused for each in live.pool.bulkhead._compartments.values())


def assert_refused(mcp: httpx.Response, cli: httpx.Response, row: Row) -> None:
    assert mcp.status_code == 200
    error = mcp.json()["error"]
    expected: dict[str, Any] = {"vendor": "fake", "reason": row.reason}
    if row.retry_after_s is not None:
        expected["retryAfter"] = row.retry_after_s
    assert (error["code"], error["data"]) == (-32603, expected)
    assert cli.status_code == 502
    assert list(cli.json()) == ["error"]
    assert cli.json()["error"] == ("vendor rejected credentials" if row.reason == REJECTED else error["message"])
    assert cli.headers.get("Retry-After") == (None if row.retry_after_s is None else str(row.retry_after_s))
    for answer in (mcp, cli):
        assert len(answer.content) < 400
        assert not any(word in answer.text for word in ("secret", "script", "127.0.0.1", "Traceback", "maintenance"))
        assert "WWW-Authenticate" not in answer.headers
        assert "Location" not in answer.headers
