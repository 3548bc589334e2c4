"""Requests for resources and prompts in either revision."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.api.proxy.conftest import Agent
from tests.api.proxy.modern import ask


async def request(era: str, agent: Agent, bearer: str, method: str, params: Any = None, **more: Any) -> httpx.Response:
    """The same request in one of the revisions."""
    if era == "modern":
        return await ask(agent, bearer, method, params, **more)
    return await agent.rpc(bearer, method, params, **more)


both_eras = pytest.mark.parametrize("era", ["earlier", "modern"])
