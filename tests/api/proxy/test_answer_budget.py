"""Large answers of vendors: each organization has its share of the bytes, and all of them come back."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest

from gateway.lib import body_budgets
from gateway.lib.byte_budget import FREE_BYTES
from proxy.outcomes import VendorFault
from proxy.vendors.errors import VendorProblem
from proxy.vendors.transport import Limits, VendorTransport
from tests.api.proxy.traces import until
from tests.fakes.raw_vendor import raw_vendor, says

MIB = 1024 * 1024
BODY = b"x" * MIB
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LARGE = JSON + b"Content-Length: %d\r\n\r\n" % MIB


def chunked(body: bytes) -> bytes:
    parts = [body[start : start + 50_000] for start in range(0, len(body), 50_000)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


PACKED = gzip.compress(BODY)
ANSWERS = {
    "declared": LARGE + BODY,
    "chunked": JSON + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(BODY),
    "to the end": JSON + b"Connection: close\r\n\r\n" + BODY,
    "packed": JSON + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(PACKED) + PACKED,
}


@pytest.fixture(autouse=True)
def small_share(settings: Any) -> None:
    """Room for three bodies, of which one organization may have two, and a little for chunks."""
    settings.VENDOR_BYTES, settings.VENDOR_BYTES_OF_ONE = 4 * MIB, 5 * MIB // 2
    settings.LARGE_BODY_WAIT_S = 0.2


@pytest.fixture
async def large() -> Any:
    made = VendorTransport(allow_private=True, limits=Limits(connect_s=1.0, chunk_s=2.0, body_bytes=2 * MIB))
    yield made
    await made.aclose()


async def ask(transport: VendorTransport, url: str, owner: str) -> int:
    deadline = asyncio.get_running_loop().time() + 5.0
    async with transport.request("POST", url, {}, b"{}", deadline=deadline) as answer:
        size = len(await answer.body(owner))
        assert body_budgets.vendors().held_by(owner) >= size, "until the answer was read on"
    return size


@pytest.mark.parametrize("sent", ANSWERS.values(), ids=ANSWERS.keys())
async def test_a_large_answer_is_counted_while_it_is_there(large: VendorTransport, sent: bytes) -> None:
    async with raw_vendor(says(sent, then_close=True)) as vendor:
        assert await ask(large, vendor.url, "acme") == MIB
    assert body_budgets.vendors().held == 0


async def test_small_answers_need_no_room(large: VendorTransport) -> None:
    body_budgets.vendors().take_anyway("acme", 100 * MIB)
    small = b"x" * FREE_BYTES
    async with raw_vendor(says(JSON + b"Content-Length: %d\r\n\r\n" % len(small) + small)) as vendor:
        deadline = asyncio.get_running_loop().time() + 5.0
        async with large.request("POST", vendor.url, {}, b"{}", deadline=deadline) as answer:
            assert await answer.body("acme") == small


async def test_one_organizations_answers_do_not_use_up_anothers_share(large: VendorTransport) -> None:
    """Two bodies that never end fill the share: a third fails in time, and another organization's is read."""
    async with raw_vendor(says(LARGE + BODY[: MIB // 2], pause_s=0.1)) as stuck, raw_vendor(says(LARGE + BODY)) as good:
        waiting = [asyncio.ensure_future(ask(large, stuck.url, "acme")) for _ in range(2)]
        await until(lambda: body_budgets.vendors().held_by("acme") >= 2 * MIB)
        with pytest.raises(VendorProblem) as refused:
            await ask(large, good.url, "acme")
        assert refused.value.fault is VendorFault.UNAVAILABLE
        assert "too many large answers" in refused.value.detail
        assert await ask(large, good.url, "globex") == MIB
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert body_budgets.vendors().held == 0
        assert await ask(large, good.url, "acme") == MIB


async def test_an_answer_that_waits_for_room_goes_on_when_there_is_some(large: VendorTransport, settings: Any) -> None:
    settings.LARGE_BODY_WAIT_S = 5.0
    budget = body_budgets.vendors()
    budget.take_anyway("acme", 2 * MIB)
    async with raw_vendor(says(LARGE + BODY)) as vendor:
        waits = asyncio.ensure_future(ask(large, vendor.url, "acme"))
        await until(lambda: budget._waiting)
        budget.give_back("acme", 2 * MIB)
        assert await waits == MIB
    assert budget.held == 0
