"""Large answers of vendors: each organization has its share of the bytes, and all of them come back."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.lib import body_budgets
from gateway.lib.byte_budget import FREE_BYTES, STEP_BYTES
from proxy.outcomes import VendorFault
from proxy.vendors.errors import VendorProblem
from proxy.vendors.http1 import Limits
from proxy.vendors.transport import VendorTransport
from tests.api.proxy.traces import until
from tests.factories.vendor_pools import new_transport
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
def small_budget(settings: Any) -> None:
    """Room for twelve of the largest bodies, three of them in reserve."""
    settings.VENDOR_BYTES, settings.VENDOR_BYTES_RESERVED, settings.VENDOR_REPLY_BYTES = 12 * MIB, 3 * MIB, MIB
    settings.LARGE_BODY_WAIT_S = 60.0


@pytest.fixture
async def large() -> Any:
    made = new_transport(limits=Limits(connect_s=1.0, chunk_s=30.0, body_bytes=MIB))
    yield made
    await made.aclose()


async def ask(transport: VendorTransport, url: str, owner: str, *, within_s: float = 10.0) -> int:
    deadline = asyncio.get_running_loop().time() + within_s
    async with transport.request("POST", url, {}, b"{}", deadline=deadline) as answer:
        size = len(await answer.body(owner))
        assert body_budgets.vendors().held_by(owner) >= size, "until the answer was read on"
    return size


@pytest.mark.parametrize("sent", ANSWERS.values(), ids=ANSWERS.keys())
async def test_a_large_answer_is_counted_while_it_is_there(large: VendorTransport, sent: bytes) -> None:
    async with raw_vendor(says(sent, then_close=True)) as vendor:
        assert await ask(large, vendor.url, "acme") == MIB
    assert body_budgets.vendors().held == 0


async def test_small_answers_need_no_reservation(large: VendorTransport) -> None:
    body_budgets.vendors().new_reservation("acme").settle(100 * MIB)
    small = b"x" * FREE_BYTES
    async with raw_vendor(says(JSON + b"Content-Length: %d\r\n\r\n" % len(small) + small)) as vendor:
        deadline = asyncio.get_running_loop().time() + 5.0
        async with large.request("POST", vendor.url, {}, b"{}", deadline=deadline) as answer:
            assert await answer.body("acme") == small


@asynccontextmanager
async def trickling(
    transport: VendorTransport, sent: bytes, owners: Sequence[str], of_each: int
) -> AsyncIterator[list[asyncio.Task[int]]]:
    """Answers whose vendor sends so much of them and then says nothing for long."""
    async with raw_vendor(says(sent, pause_s=60.0)) as vendor:
        calls = [
            asyncio.ensure_future(ask(transport, vendor.url, owner, within_s=60.0))
            for owner in owners
            for _ in range(of_each)
        ]
        try:
            yield calls
        finally:
            for each in calls:
                each.cancel()
            await asyncio.gather(*calls, return_exceptions=True)


async def test_an_answer_that_trickles_holds_what_came_of_it(large: VendorTransport) -> None:
    budget = body_budgets.vendors()
    async with trickling(large, LARGE + BODY[:100_000], ["acme"], 1):
        await until(lambda: budget.held)
        assert 100_000 <= budget.held <= 100_000 + STEP_BYTES
    assert budget.held == 0


@pytest.mark.parametrize(("sent", "held"), [(100_000, 1_200_000), (MIB - 1, 5 * MIB)], ids=["little", "nearly all"])
async def test_four_organizations_whose_vendors_trickle_leave_a_fifth_its_bytes(
    large: VendorTransport, sent: int, held: int
) -> None:
    """Their twelve answers together are as large as all the room that there is."""
    fifth = JSON + b"Content-Length: 102400\r\n\r\n" + BODY[:80_000]
    budget = body_budgets.vendors()
    async with trickling(large, LARGE + BODY[:sent], ["a", "b", "c", "d"], 3) as calls:
        await until(lambda: budget.held >= held)
        async with raw_vendor(says(fifth, BODY[: 102_400 - 80_000], pause_s=0.05)) as good:
            assert await ask(large, good.url, "globex") == 102_400
        assert not any(each.done() for each in calls), "nothing of theirs had to end for it"
    assert budget.held == 0


async def test_answers_that_do_not_fit_together_are_read_one_after_the_other(large: VendorTransport) -> None:
    """Each holds a part of itself when there is no more room for any."""
    script = says(LARGE + BODY[: MIB // 2], BODY[MIB // 2 :], pause_s=0.05)
    async with raw_vendor(script) as vendor:
        calls = [ask(large, vendor.url, f"organization {number}") for number in range(40)]
        assert await asyncio.gather(*calls) == [MIB] * 40
    assert body_budgets.vendors().held == 0


async def test_one_organizations_answers_do_not_use_up_anothers_share(large: VendorTransport, settings: Any) -> None:
    settings.LARGE_BODY_WAIT_S = 0.1
    budget = body_budgets.vendors()
    kept = budget.new_reservation("acme")
    kept.settle(12 * MIB)
    async with raw_vendor(says(LARGE + BODY[:100_000], BODY[100_000:], pause_s=0.05)) as vendor:
        with pytest.raises(VendorProblem) as refused:
            await ask(large, vendor.url, "acme")
        assert refused.value.fault is VendorFault.UNAVAILABLE
        assert "too many large responses" in refused.value.detail
        assert budget.held == kept.bytes
        assert await ask(large, vendor.url, "globex") == MIB
        kept.release()
        assert await ask(large, vendor.url, "acme") == MIB


async def test_an_answer_that_waits_for_bytes_goes_on_when_there_are_some(large: VendorTransport) -> None:
    budget = body_budgets.vendors()
    kept = budget.new_reservation("acme")
    kept.settle(12 * MIB)
    async with raw_vendor(says(LARGE + BODY[:100_000], BODY[100_000:], pause_s=0.05)) as vendor:
        waits = asyncio.ensure_future(ask(large, vendor.url, "acme"))
        await until(lambda: budget._queues)
        kept.release()
        assert await waits == MIB
    assert budget.held == 0
