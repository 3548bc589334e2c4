"""One request to a vendor at the level of connections, with limits that are met quickly."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from contextlib import AbstractAsyncContextManager

import pytest

from proxy.vendors.connections import Connections
from proxy.vendors.fair_scheduler import FairScheduler
from proxy.vendors.http1 import Limits
from proxy.vendors.transport import VendorTransport

LIMITS = Limits(connect_s=1.0, chunk_s=0.5, body_bytes=100_000)


async def ask(transport: VendorTransport, url: str, *, within_s: float = 3.0) -> bytes:
    """The body of one POST."""
    deadline = asyncio.get_running_loop().time() + within_s
    async with transport.request("POST", url, {}, b"{}", deadline=deadline) as answer:
        return await answer.body()


def slots_taken(monkeypatch: pytest.MonkeyPatch) -> list[Hashable]:
    """Whose turn it was, for each turn that is asked for from now on."""
    owners: list[Hashable] = []
    slot = FairScheduler.slot

    def recording(
        scheduler: FairScheduler, owner: Hashable, deadline: float | None = None
    ) -> AbstractAsyncContextManager[None]:
        owners.append(owner)
        return slot(scheduler, owner, deadline)

    monkeypatch.setattr(FairScheduler, "slot", recording)
    return owners


def only(transport: VendorTransport) -> Connections:
    """The connections to the one origin that was asked."""
    [found] = transport._by_origin.values()
    return found
