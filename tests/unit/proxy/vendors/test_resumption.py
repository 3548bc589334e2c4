"""When a vendor is asked for the rest of an event stream, how often, and what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from proxy.outcomes import VendorFault
from proxy.protocol.replies import VendorResult
from proxy.protocol.sse import SSEParser
from proxy.vendors import errors, resumption
from proxy.vendors.errors import Evidence, VendorProblem
from proxy.vendors.resumption import PendingResponse, RpcResponse, pause_s, read_resumed

RESULT = VendorResult(7, b"{}", is_error=False)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The pauses asked for, in seconds; none is slept."""
    found: list[float] = []
    sleep = asyncio.sleep

    async def recorded(delay_s: float) -> None:
        found.append(delay_s)
        await sleep(0)

    with monkeypatch.context() as patch:
        patch.setattr(resumption.asyncio, "sleep", recorded)
        yield found


def pending(fed: bytes, *, within_s: float = 60.0, is_resumable: bool = True) -> PendingResponse:
    stream = SSEParser()
    stream.feed(fed)
    deadline = asyncio.get_running_loop().time() + within_s
    return PendingResponse(7, deadline, None, stream, is_resumable=is_resumable)


class Vendor:
    """Each resumption is fed the next bytes, or fails, or brings the answer; `asked` holds the event ids."""

    def __init__(self, *streams: bytes | VendorProblem | VendorResult) -> None:
        self.streams = list(streams)
        self.asked: list[str] = []

    async def __call__(self, response: PendingResponse, event_id: str) -> RpcResponse | None:
        self.asked.append(event_id)
        found = self.streams.pop(0)
        if isinstance(found, VendorProblem):
            raise found
        if isinstance(found, VendorResult):
            return found
        response.stream.feed(found)
        return None


@pytest.mark.parametrize(
    ("asked_ms", "seconds"),
    [(None, 1.0), (0, 0.1), (99, 0.1), (101, 0.101), (2500, 2.5), (5000, 5.0), (5001, 5.0), (999_999_999, 5.0)],
)
def test_how_long_a_pause_is(asked_ms: int | None, seconds: float) -> None:
    assert pause_s(asked_ms) == seconds


async def test_each_pause_is_the_newest(pauses: list[float]) -> None:
    vendor = Vendor(b"id: 2\nretry: 300\n\n", b"id: 3\n\n", b"retry: 9\nid: 4\n\n", RESULT)
    assert await read_resumed(pending(b"id: 1\n\n"), vendor) is RESULT
    assert vendor.asked == ["1", "2", "3", "4"]
    assert pauses == [1.0, 0.3, 0.3, 0.1]


@pytest.mark.parametrize("fed", [b"", b"data: x\n\n", b"id: 1", b"id: 1\n\nid:\n\n"])
async def test_without_an_id_nothing_is_asked_or_waited_for(pauses: list[float], fed: bytes) -> None:
    vendor = Vendor()
    with pytest.raises(VendorProblem, match="it ended without an answer") as caught:
        await read_resumed(pending(fed), vendor)
    assert caught.value.fault is VendorFault.BAD_RESPONSE
    assert (vendor.asked, pauses) == ([], [])


async def test_what_is_not_to_be_resumed_is_not(pauses: list[float]) -> None:
    with pytest.raises(VendorProblem, match="it ended without an answer"):
        await read_resumed(pending(b"id: 1\n\n", is_resumable=False), Vendor())
    assert pauses == []


async def test_half_an_event_is_not_joined_to_the_next_stream(pauses: list[float]) -> None:
    response = pending(b"id: 1\n\nid: 2\ndata: half")
    await read_resumed(response, Vendor(RESULT))
    assert [event.data for event in response.stream.feed(b"data: whole\n\n")] == [b"whole"]
    assert response.stream.last_event_id == "1"


async def test_two_in_a_row_without_news_are_enough(pauses: list[float]) -> None:
    vendor = Vendor(b"", b"id: 2\n\n", b"data: x\n\n", b"id: 2\n\n", RESULT)
    with pytest.raises(VendorProblem, match="it ended without an answer"):
        await read_resumed(pending(b"id: 1\n\n"), vendor)
    assert vendor.asked == ["1", "1", "2", "2"]


async def test_who_says_when_to_come_back_is_asked_until_the_deadline(pauses: list[float]) -> None:
    vendor = Vendor(b"", b"retry: 200\n\n", *[b""] * 9, RESULT)
    assert await read_resumed(pending(b"id: 1\n\n"), vendor) is RESULT
    assert vendor.asked == ["1"] * 12
    assert pauses == [1.0, 1.0] + [0.2] * 10


async def test_who_says_when_to_come_back_and_is_not_there_twice_is_not_asked_again(pauses: list[float]) -> None:
    problem = errors.unavailable(evidence=Evidence.NO_RESPONSE)
    vendor = Vendor(b"", problem.copy(), b"", problem.copy(), problem.copy(), RESULT)
    with pytest.raises(VendorProblem, match=problem.detail):
        await read_resumed(pending(b"id: 1\nretry: 100\n\n"), vendor)
    assert len(vendor.asked) == 5


@pytest.mark.parametrize("within_s", [0.0, 0.9])
async def test_a_pause_beyond_the_deadline_is_not_begun(pauses: list[float], within_s: float) -> None:
    vendor = Vendor(RESULT)
    with pytest.raises(VendorProblem) as caught:
        await read_resumed(pending(b"id: 1\n\n", within_s=within_s), vendor)
    assert caught.value.is_own_timeout, "so that the vendor is told"
    assert (vendor.asked, pauses) == ([], [])


PASSING = [
    errors.unavailable(evidence=Evidence.CONNECT_FAILED),
    errors.unavailable(evidence=Evidence.NO_RESPONSE),
    errors.timeout(Evidence.CONNECT_FAILED),
]
FINAL = [
    errors.rejected_credentials(),
    errors.rate_limited(3),
    errors.unavailable("The vendor answered HTTP 503.", Evidence.RESPONDED),
    errors.bad_response("it is too large"),
    errors.timeout(Evidence.RESPONDED),
    errors.timeout(Evidence.NONE),
]


@pytest.mark.parametrize("problem", PASSING, ids=repr)
async def test_a_way_that_fails_once_may_pass(pauses: list[float], problem: VendorProblem) -> None:
    assert await read_resumed(pending(b"id: 1\n\n"), Vendor(problem.copy(), RESULT)) is RESULT
    vendor = Vendor(problem.copy(), problem.copy(), RESULT)
    with pytest.raises(VendorProblem) as caught:
        await read_resumed(pending(b"id: 1\n\n"), vendor)
    assert caught.value.fault is problem.fault
    assert vendor.asked == ["1", "1"]


@pytest.mark.parametrize("problem", FINAL, ids=repr)
async def test_any_other_problem_is_final(pauses: list[float], problem: VendorProblem) -> None:
    vendor = Vendor(problem.copy(), RESULT)
    with pytest.raises(VendorProblem) as caught:
        await read_resumed(pending(b"id: 1\n\n"), vendor)
    known = caught.value
    assert (known.fault, known.detail, known.retry_after_s) == (problem.fault, problem.detail, problem.retry_after_s)
    assert vendor.asked == ["1"]


@pytest.mark.parametrize("problem", [*PASSING, *FINAL], ids=repr)
async def test_a_call_that_was_answered_says_so(pauses: list[float], problem: VendorProblem) -> None:
    """Only a vendor that is unreachable by now counts against the way to it."""
    with pytest.raises(VendorProblem) as caught:
        await read_resumed(pending(b"id: 1\n\n"), Vendor(problem.copy(), problem.copy()))
    assert caught.value.evidence is (
        Evidence.CONNECT_FAILED if problem.evidence is Evidence.CONNECT_FAILED else Evidence.RESPONDED
    )
