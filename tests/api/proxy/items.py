"""Requests for resources and prompts in either revision."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from audit.models import RequestAuditEntry
from tests.api.proxy.conftest import Agent
from tests.api.proxy.modern import ask
from tests.factories.threads import in_thread


async def request(era: str, agent: Agent, bearer: str, method: str, params: Any = None, **more: Any) -> httpx.Response:
    """The same request in one of the revisions."""
    if era == "modern":
        return await ask(agent, bearer, method, params, **more)
    return await agent.rpc(bearer, method, params, **more)


async def row_ends() -> list[tuple[str, ...]]:
    """Of the request log."""
    columns = ("kind", "item", "status", "error_code")
    return await in_thread(lambda: list(RequestAuditEntry.objects.order_by("timestamp").values_list(*columns)))


PROMPT = ("prompts/get", {"name": "fake_greet", "arguments": {"who": "Ann"}})
RESOURCE = ("resources/read", {"uri": "fake+test://static-text"})
of_each = pytest.mark.parametrize(("method", "params"), [PROMPT, RESOURCE], ids=["prompt", "resource"])
both_eras = pytest.mark.parametrize("era", ["earlier", "modern"])
