"""Event streams that end or break before the answer, byte by byte: the events after the last one are asked for.

Spec: protocol.md A.2, A.6
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from proxy.outcomes import VendorFault
from proxy.progress_relay import ProgressRelay
from proxy.protocol import replies
from proxy.protocol.progress import Wanted
from proxy.protocol.sse import SSEParser
from proxy.vendors import message_reader, resumption
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.errors import Evidence, VendorProblem
from proxy.vendors.http1 import Limits
from proxy.vendors.response import VendorResponse
from proxy.vendors.resumption import PendingResponse
from proxy.vendors.rpc_request import RpcRequest
from proxy.vendors.send import send_request
from proxy.vendors.transport import VendorTransport
from tests.api.proxy.traces import until
from tests.api.proxy.vendor_requests import slots_taken
from tests.factories.vendor_pools import new_pool, new_transport
from tests.fakes.cutting_vendor import (
    ANSWER,
    CuttingVendor,
    Exchange,
    breaks,
    cutting_vendor,
    ends,
    event,
    hangs_up,
    mark,
    progress,
    says,
    stays,
)
from tests.garbage import freed_without_collection

BODY_BYTES = 100_000
ENDED = "The vendor sent an unusable response: it ended without an answer."
PRIMING = mark("e-1", retry_ms=0)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumption, "SHORTEST_PAUSE_S", 0.0)
    monkeypatch.setattr(resumption, "PAUSE_S", 0.0)


class Caller:
    """Calls one tool of the vendor, through a pool of its own."""

    def __init__(self, vendor: CuttingVendor, transport: VendorTransport) -> None:
        self.vendor = vendor
        self.pool = new_pool(transport, idle_s=60)
        key = PoolKey.of(uuid.UUID(int=1), "vendor", uuid.UUID(int=2), vendor.raw.url, {})
        self._where = Destination(key, lambda: (vendor.raw.url, {"X-Key": "k"}))

    async def call(
        self, *, within_s: float = 20.0, relay: ProgressRelay | None = None
    ) -> replies.VendorResult | replies.RpcError:
        """The answer."""
        deadline = asyncio.get_running_loop().time() + within_s
        params = {"name": "a", "arguments": {}}
        return await send_request(self.pool, self._where, RpcRequest("tools/call", params, deadline, relay=relay))

    async def is_answered(self) -> bool:
        """Whether a call is answered with its result."""
        found = await self.call()
        return isinstance(found, replies.VendorResult) and found.id == self.vendor.call_id

    async def problem(self, *, within_s: float = 20.0) -> VendorProblem:
        """How a call fails; it was sent once."""
        with pytest.raises(VendorProblem) as caught:
            await self.call(within_s=within_s)
        assert self.vendor.calls == 1
        return caught.value


@asynccontextmanager
async def caller(*exchanges: Exchange) -> AsyncIterator[Caller]:
    """A vendor that answers a call and what follows it like this, and somebody who calls."""
    async with cutting_vendor(*exchanges) as vendor:
        limits = Limits(connect_s=2.0, chunk_s=2.0, body_bytes=BODY_BYTES)
        transport = new_transport(limits=limits)
        made = Caller(vendor, transport)
        try:
            yield made
        finally:
            await made.pool.aclose()
            await transport.aclose()


async def test_a_stream_that_ends_early_is_asked_for_the_rest() -> None:
    async with caller(ends(PRIMING), ends(ANSWER)) as one:
        assert await one.is_answered()
        (asked,) = one.vendor.gets
        assert (asked["last-event-id"], asked["accept"]) == ("e-1", "text/event-stream")
        assert (asked["mcp-session-id"], asked["mcp-protocol-version"]) == ("s-1", "2025-11-25")
        assert asked["x-key"] == "k"
        assert "content-type" not in asked
        assert "content-length" not in asked
        assert (one.vendor.calls, one.vendor.raw.connections) == (1, 1)
        assert one.vendor.other_messages == []


async def test_a_stream_that_breaks_is_asked_for_what_came_after_its_last_whole_event() -> None:
    async with caller(breaks(PRIMING, mark("e-2")), breaks(mark("e-3")), ends(ANSWER)) as one:
        assert await one.is_answered()
        assert [asked["last-event-id"] for asked in one.vendor.gets] == ["e-2", "e-3"]
        assert (one.vendor.calls, one.vendor.raw.connections) == (1, 3)


async def test_a_stream_that_brings_its_answer_is_not_asked_again() -> None:
    async with caller(ends(PRIMING, ANSWER), ends(ANSWER)) as one:
        assert await one.is_answered()
        assert one.vendor.gets == []


async def test_each_report_of_each_stream_is_relayed_once() -> None:
    streams = [
        breaks(PRIMING, progress(1, "e-2")),
        ends(progress(2, "e-3"), progress(3, "e-4")),
        ends(mark("e-5")),
        ends(progress(4), ANSWER),
    ]
    async with caller(*streams) as one:
        relay = ProgressRelay(Wanted("mine"))
        assert isinstance(await one.call(relay=relay), replies.VendorResult)
        reported = []
        while (report := relay.pop()) is not None:
            reported.append(json.loads(report)["params"])
        assert reported == [{"progressToken": "mine", "progress": step} for step in (1, 2, 3, 4)]
        assert [asked["last-event-id"] for asked in one.vendor.gets] == ["e-2", "e-4", "e-5"]


async def test_what_a_vendor_asks_on_a_resumed_stream_is_answered() -> None:
    question = event(b'{"jsonrpc":"2.0","id":"q","method":"ping"}')
    async with caller(ends(PRIMING), ends(question, ANSWER)) as one:
        assert await one.is_answered()
        await until(lambda: one.vendor.other_messages)
        assert one.vendor.other_messages == [{"jsonrpc": "2.0", "id": "q", "result": {}}]


async def test_a_byte_order_mark_begins_each_stream() -> None:
    async with caller(ends(b"\xef\xbb\xbf" + PRIMING), ends(b"\xef\xbb\xbf" + ANSWER)) as one:
        assert await one.is_answered()


@pytest.mark.parametrize(
    ("stream", "detail"),
    [
        (ends(), ENDED),
        (ends(progress(1)), ENDED),
        (ends(PRIMING, b"id:\n\n"), ENDED),
        (breaks(progress(1)), "The vendor sent an unusable response: it was cut off or is not HTTP."),
    ],
    ids=["nothing", "reports only", "taken back", "broken"],
)
async def test_without_an_event_id_there_is_nothing_to_ask_for(stream: Exchange, detail: str) -> None:
    async with caller(stream, ends(ANSWER)) as one:
        problem = await one.problem()
        assert (problem.fault, problem.detail) == (VendorFault.BAD_RESPONSE, detail)
        assert one.vendor.gets == []


@pytest.mark.parametrize(
    "event_id",
    ["x" * 1025, "a\1b", "a\x7f", "\x0b", "ünïque", " ", "\ta", "a ", "€"],
    ids=lambda each: ascii(each)[:12],
)
async def test_an_event_id_that_cannot_stand_in_a_header_is_not_sent(event_id: str) -> None:
    async with caller(ends(PRIMING, mark(event_id)), ends(ANSWER)) as one:
        assert (await one.problem()).detail == ENDED
        assert one.vendor.gets == []


@pytest.mark.parametrize("event_id", ["x" * 1024, "0", "a b\tc", "!/~:,;=\"'"], ids=lambda each: each[:10])
async def test_any_other_is_sent_as_it_came(event_id: str) -> None:
    async with caller(ends(mark(event_id, retry_ms=0)), ends(ANSWER)) as one:
        assert await one.is_answered()
        assert one.vendor.gets[0]["last-event-id"] == event_id


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"], ids=ascii)
async def test_an_event_id_brings_no_header_of_its_own(end: str) -> None:
    hostile = mark(f"e-1{end}X-Evil: 1{end}retry: 0")
    async with caller(ends(hostile), ends(ANSWER)) as one:
        assert await one.is_answered()
        assert one.vendor.gets[0]["last-event-id"] == "e-1"
        assert "x-evil" not in one.vendor.gets[0]


JSON = b"Content-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("answer", "fault", "detail"),
    [
        *((says(status), VendorFault.BAD_RESPONSE, ENDED) for status in ("405 No", "404 No", "400 Bad", "204 Nothing")),
        (says("307 Away", b"Location: /elsewhere\r\n"), VendorFault.BAD_RESPONSE, ENDED),
        (says("200 OK", JSON), VendorFault.BAD_RESPONSE, ENDED),
        (says("401 Who"), VendorFault.REJECTED_CREDENTIALS, None),
        (says("403 No"), VendorFault.REJECTED_CREDENTIALS, None),
        (
            says("429 Slow", b"Retry-After: 7\r\n"),
            VendorFault.UNAVAILABLE,
            "The vendor is limiting calls. Try again later.",
        ),
        (says("503 Later"), VendorFault.UNAVAILABLE, "The vendor answered HTTP 503."),
    ],
    ids=["405", "404", "400", "204", "307", "JSON", "401", "403", "429", "503"],
)
async def test_a_vendor_that_does_not_resume_is_asked_once(
    answer: Exchange, fault: VendorFault, detail: str | None
) -> None:
    async with caller(ends(PRIMING), answer, ends(ANSWER)) as one:
        problem = await one.problem()
        assert problem.fault is fault
        assert problem.detail == (detail or problem.detail)
        assert problem.retry_after_s == (7 if "limiting" in problem.detail else None)
        assert len(one.vendor.gets) == 1


async def test_two_resumptions_without_a_new_event_are_enough() -> None:
    first = mark("e-1")
    async with caller(ends(first), ends(first), breaks(progress(1)), ends(ANSWER)) as one:
        assert (await one.problem()).detail == ENDED
        assert len(one.vendor.gets) == 2


async def test_a_new_event_in_between_is_news() -> None:
    first, second, third = mark("e-1"), mark("e-2"), mark("e-3")
    streams = [ends(), ends(second), ends(first), ends(), ends(third), ends(), ends(ANSWER)]
    async with caller(ends(first), *streams) as one:
        assert await one.is_answered()
        asked = [asked["last-event-id"] for asked in one.vendor.gets]
        assert asked == ["e-1", "e-1", "e-2", "e-1", "e-1", "e-3", "e-3"]


async def test_a_vendor_that_says_when_to_come_back_may_have_no_news_for_long() -> None:
    async with caller(ends(PRIMING), *[ends(), breaks()] * 5, ends(ANSWER)) as one:
        assert await one.is_answered()
        assert [asked["last-event-id"] for asked in one.vendor.gets] == ["e-1"] * 11


async def test_but_not_for_longer_than_the_deadline() -> None:
    async with caller(ends(PRIMING), ends()) as one:
        assert (await one.problem(within_s=2.0)).fault is VendorFault.TIMEOUT
        await until(lambda: one.vendor.other_messages)
        assert one.vendor.other_messages[0]["method"] == "notifications/cancelled"


async def test_a_connection_that_ends_without_an_answer_counts_as_no_news() -> None:
    async with caller(ends(PRIMING), hangs_up, ends(mark("e-2")), hangs_up, ends(ANSWER)) as one:
        assert await one.is_answered()
        assert not one.pool.circuits.has_trouble
    async with caller(ends(PRIMING), hangs_up) as one:
        problem = await one.problem()
        assert (problem.fault, problem.evidence) == (VendorFault.UNAVAILABLE, Evidence.RESPONDED)
        assert len(one.vendor.gets) == 2
        assert not one.pool.circuits.has_trouble, "the call itself was answered"


async def test_the_newest_pause_holds_and_none_outlasts_the_deadline() -> None:
    async with caller(ends(PRIMING), ends(mark("e-2", retry_ms=5_000)), ends(ANSWER)) as one:
        problem = await one.problem(within_s=4.0)
        assert (problem.fault, problem.is_own_timeout) == (VendorFault.TIMEOUT, True)
        assert len(one.vendor.gets) == 1
        await until(lambda: one.vendor.other_messages)
        (reported,) = one.vendor.other_messages
        assert (reported["method"], reported["params"]) == (
            "notifications/cancelled",
            {"requestId": one.vendor.call_id},
        )


@pytest.mark.parametrize("last", [stays(mark("e-2")), stays()], ids=["after an event", "after the head"])
async def test_the_deadline_ends_a_resumed_stream_and_the_vendor_is_notified(last: Exchange) -> None:
    async with caller(ends(PRIMING), last) as one:
        assert (await one.problem(within_s=2.0)).fault is VendorFault.TIMEOUT
        await until(lambda: one.vendor.other_messages)
        (reported,) = one.vendor.other_messages
        assert (reported["method"], reported["params"]) == (
            "notifications/cancelled",
            {"requestId": one.vendor.call_id},
        )
        assert not one.pool.circuits.has_trouble


async def test_a_deadline_before_the_head_is_no_trouble_of_the_way() -> None:
    async def silence(vendor: CuttingVendor, writer: asyncio.StreamWriter) -> None:
        return

    async with caller(ends(PRIMING), silence) as one:
        problem = await one.problem(within_s=2.0)
        assert (problem.fault, problem.evidence) == (VendorFault.TIMEOUT, Evidence.RESPONDED)
        assert not one.pool.circuits.has_trouble
        await until(lambda: one.vendor.other_messages)


@pytest.mark.parametrize("retry_ms", [0, 5_000], ids=["while it is read", "while it is waited for"])
async def test_who_leaves_ends_the_call_at_the_vendor(retry_ms: int) -> None:
    async with caller(ends(PRIMING), ends(mark("e-2", retry_ms=retry_ms)), stays(mark("e-3"))) as one:
        calling = asyncio.ensure_future(one.call())
        await until(lambda: len(one.vendor.gets) == (1 if retry_ms else 2))
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await until(lambda: one.vendor.other_messages)
        assert [reported["params"] for reported in one.vendor.other_messages] == [{"requestId": one.vendor.call_id}]
        assert one.vendor.calls == 1


@pytest.mark.parametrize("filler", [b": " + b"x" * 39_998 + b"\n", event(b"x" * 39_990)[:-1]], ids=["comments", "data"])
async def test_all_streams_of_a_call_are_as_large_as_one_answer_may_be(filler: bytes) -> None:
    large = [ends(mark(f"e-{number}", retry_ms=0), filler) for number in range(9)]
    async with caller(*large, ends(ANSWER)) as one:
        problem = await one.problem()
        assert problem.detail == "The vendor sent an unusable response: the stream is larger than 100000 bytes."
        assert len(one.vendor.gets) == 2


async def test_a_stream_that_is_too_large_is_not_resumed() -> None:
    async with caller(stays(PRIMING, b": " + b"x" * 2 * BODY_BYTES), ends(ANSWER)) as one:
        assert (await one.problem()).detail == "The vendor sent an unusable response: it is too large."
        assert one.vendor.gets == []


async def test_all_streams_of_a_call_use_the_scheduler_together(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = slots_taken(monkeypatch)
    monkeypatch.setattr(message_reader, "LONG_STREAM_BYTES", 2_000)
    comment = b": " + b"x" * 900 + b"\n\n"
    async with caller(ends(PRIMING, comment), ends(comment, mark("e-2"))) as one:
        one.vendor.exchanges += [ends(ANSWER)]
        assert await one.is_answered()
        assert taken == []
    async with caller(ends(PRIMING, comment), ends(comment, mark("e-2")), ends(comment, ANSWER)) as one:
        assert await one.is_answered()
        assert taken


async def test_a_handshake_is_not_resumed() -> None:
    async with caller(ends(ANSWER)) as one:
        one.vendor.handshake = ends(PRIMING)
        with pytest.raises(VendorProblem) as caught:
            await one.call()
        assert caught.value.detail == ENDED
        assert (one.vendor.gets, one.vendor.calls) == ([], 0)


@pytest.mark.parametrize(
    "streams",
    [
        (ends(PRIMING), ends(ANSWER)),
        (breaks(PRIMING), breaks(mark("e-2")), ends(ANSWER)),
        (ends(PRIMING), hangs_up, ends(ANSWER)),
        (ends(mark("e-1")), ends()),
        (ends(PRIMING), hangs_up),
        (ends(PRIMING), says("405 No")),
    ],
    ids=["ends", "breaks", "hangs up once", "no news", "hangs up", "405"],
)
async def test_nothing_waits_for_garbage_collection(streams: tuple[Exchange, ...]) -> None:
    async with caller(*streams) as one:
        with freed_without_collection(VendorResponse, SSEParser, PendingResponse, VendorProblem):
            with contextlib.suppress(VendorProblem):
                await one.call()
            for _ in range(5):  # the rest of a stream's generator is closed in a task of its own
                await asyncio.sleep(0)
