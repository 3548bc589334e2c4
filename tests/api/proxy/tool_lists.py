"""A vendor whose list of tools can fail or wait while its tools work, and lists that are older than they are."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from proxy import runtime
from tests.api.proxy.conftest import Agent
from tests.api.proxy.traces import until
from tests.factories.tenant import Tenant
from tests.fakes.vendor import FakeVendor

NEW_TOOL = {"name": "fake_new", "description": "Is new.", "inputSchema": {"type": "object"}}
CHANGED = b'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'


@dataclass
class ListingVendor(FakeVendor):
    """With `news`, each call is answered by an event stream that says so many times that the tools changed."""

    list_status: int = 200
    list_body: str | None = None
    list_gate: asyncio.Event = field(default_factory=asyncio.Event)
    news: int = 0

    def __post_init__(self) -> None:
        """Lists do not wait until the test says so."""
        self.list_gate.set()

    async def _answer(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if body["method"] == "tools/list":
            found = await super()._answer(request, body)  # the tools of the moment at which it was asked
            await self.list_gate.wait()
            if self.list_status != 200 or self.list_body is not None:
                return web.Response(status=self.list_status, text=self.list_body, content_type="application/json")
            return found
        self.reply = "sse" if self.news else "json"
        return await super()._answer(request, body)

    async def _report(self, response: web.StreamResponse, params: dict[str, Any]) -> None:
        await response.write(CHANGED * self.news)
        await super()._report(response, params)


def later(seconds: float, tenant: Tenant | None = None) -> None:
    """As if so much time had passed for the lists that are kept, or for those of one organization."""
    indexes = runtime.current().directory._indexes
    for key in indexes:
        index = indexes.peek(key)
        if index is not None and (tenant is None or key.org_id == tenant.organization.id):
            moved = replace(index, fetched_s=index.fetched_s - seconds, retry_s=index.retry_s - seconds)
            indexes.replace(key, moved)
    for shared in indexes._lists.by_digest.values():
        shared.confirmed_s -= seconds


async def settled() -> None:
    """Waits until all fetches behind the callers have ended or failed."""
    directory = runtime.current().directory
    await until(lambda: not directory._under_way and not directory._refreshing)


async def listed(agent: Agent, bearer: str, path: str = "/v1/mcp") -> tuple[list[str], dict[str, str]]:
    """The names of the tools, and why vendors are unavailable."""
    result = (await agent.rpc(bearer, "tools/list", path=path)).json()["result"]
    return [tool["name"] for tool in result["tools"]], result.get("_meta", {}).get("gateway/unavailable", {})
