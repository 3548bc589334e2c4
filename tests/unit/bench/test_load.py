"""The load generator's connection: what it takes for an answer, what it counts, and where it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import repeat

import pytest

from bench import connection, load
from bench.connection import LoadConnection, Tally
from bench.load import Job, JobRefused, check_job

MARK = b"BENCH-OK site-07;"
BODY = b'{"text":"BENCH-OK site-07; and more"}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)


class Transport:
    """Remembers what was written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.is_closed = True


class Line:
    """A connection that has just been made and has sent its first request, its tally and the wire."""

    def __init__(self) -> None:
        seconds: Iterator[float] = iter(range(1000))
        self.tally, self.transport = Tally(), Transport()
        self.tally.is_measuring = True
        self.connection = LoadConnection(self.tally, repeat((b"request", MARK)), clock=lambda: float(next(seconds)))
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]
        self.connection.send()


@pytest.fixture
def line() -> Line:
    return Line()


def test_an_answer_is_counted_and_the_next_request_sent(line: Line) -> None:
    line.connection.data_received(ANSWER)
    assert (line.tally.good, line.tally.bad, line.tally.answered) == (1, 0, 1)
    assert list(line.tally.latencies_s) == [1.0]
    assert line.transport.written == [b"request", b"request"]


def test_an_answer_may_come_in_any_pieces(line: Line) -> None:
    for position in range(len(ANSWER)):
        line.connection.data_received(ANSWER[position : position + 1])
    assert (line.tally.good, line.tally.bad) == (1, 0)
    assert len(line.transport.written) == 2


def test_a_chunked_event_stream_is_an_answer(line: Line) -> None:
    event = b"event: message\ndata: " + BODY + b"\n\n"
    halves = event[:30], event[30:]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(half), half) for half in halves) + b"0\r\n\r\n"
    line.connection.data_received(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
    assert (line.tally.good, line.tally.bad) == (1, 0)


@pytest.mark.parametrize(
    "answer",
    [
        ANSWER.replace(b"200 OK", b"502 Bad Gateway"),
        ANSWER.replace(b"site-07", b"site-08"),
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_another_status_or_another_calls_answer_is_bad(line: Line, answer: bytes) -> None:
    line.connection.data_received(answer)
    assert (line.tally.good, line.tally.bad, line.tally.answered) == (0, 1, 1)
    assert line.tally.sample
    assert len(line.transport.written) == 2


def test_what_is_no_http_ends_the_connection(line: Line) -> None:
    line.connection.data_received(b"SSH-2.0-OpenSSH\r\n")
    assert (line.tally.bad, line.tally.answered, line.tally.waiting) == (1, 0, 0)
    assert line.transport.is_closed


def test_an_answer_that_nobody_asked_for_is_bad(line: Line) -> None:
    line.tally.is_sending = False
    line.connection.data_received(ANSWER)
    line.connection.data_received(ANSWER)
    assert (line.tally.answered, line.tally.bad) == (1, 1)
    assert line.transport.is_closed


def test_a_connection_lost_under_load_is_bad(line: Line) -> None:
    line.connection.connection_lost(None)
    assert (line.tally.bad, line.tally.waiting) == (1, 0)
    line.connection.send()
    assert line.transport.written == [b"request"]


def test_a_connection_that_we_close_is_not_bad(line: Line) -> None:
    line.connection.data_received(ANSWER)
    line.connection.close()
    line.connection.connection_lost(None)
    assert line.tally.bad == 0
    assert line.transport.is_closed


def test_warm_up_counts_as_answered_only(line: Line) -> None:
    line.tally.is_measuring = False
    line.connection.data_received(ANSWER)
    assert (line.tally.good, line.tally.answered, len(line.tally.latencies_s)) == (0, 1, 0)


async def test_the_load_ends_with_the_last_turn() -> None:
    tally, transports = Tally(), [Transport(), Transport()]
    tally.is_measuring = True
    turns = iter([(b"first", MARK), (b"second", MARK), (b"third", MARK)])
    connections = [LoadConnection(tally, turns) for _ in transports]
    for one, transport in zip(connections, transports, strict=True):
        one.connection_made(transport)  # type: ignore[arg-type]
        one.send()
    connections[1].data_received(ANSWER)
    assert [each.written for each in transports] == [[b"first"], [b"second", b"third"]]
    connections[1].data_received(ANSWER)
    assert (tally.is_sending, tally.idle.is_set()) == (False, False)
    connections[0].data_received(ANSWER)
    await tally.wait_idle(60)
    assert (tally.sent, tally.good, tally.bad, tally.waiting) == (3, 3, 0, 0)


async def test_nothing_is_sent_once_the_load_ends(line: Line) -> None:
    draining = asyncio.ensure_future(line.tally.drain())
    await asyncio.sleep(0)
    assert not draining.done()
    line.connection.data_received(ANSWER)
    await draining
    assert line.transport.written == [b"request"]
    assert line.tally.waiting == 0


async def test_waiting_for_the_last_answers_is_bounded(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "DRAIN_TIMEOUT_S", 0.01)
    async with asyncio.timeout(60):
        await line.tally.drain()
    assert line.tally.waiting == 1


def job(**changes: object) -> Job:
    values: dict[str, object] = {
        "host": "127.0.0.1",
        "port": 1,
        "requests": [b"a"],
        "marks": [b"b"],
        "connections": 1,
        "warm_up_s": 0.1,
        "measure_s": 1.0,
    }
    return Job(**{**values, **changes})  # type: ignore[arg-type]


def test_a_job_within_bounds_is_taken() -> None:
    check_job(job())
    check_job(job(connections=load.MAX_CONNECTIONS, warm_up_s=0))
    check_job(job(requests=[], marks=[], book="turns", first=7, count=load.MAX_TURNS))
    check_job(job(requests=[], marks=[], book="turns", per_s=100.0))


@pytest.mark.parametrize(
    "changes",
    [
        {"host": "10.0.0.1"},
        {"host": "localhost"},
        {"connections": 0},
        {"connections": load.MAX_CONNECTIONS + 1},
        {"measure_s": load.MAX_PHASE_S + 1},
        {"measure_s": 0},
        {"warm_up_s": -1},
        {"requests": [], "marks": []},
        {"requests": [b"a", b"b"]},
        {"count": 1},
        {"book": "turns", "count": load.MAX_TURNS + 1},
        {"book": "turns", "first": -1},
        {"per_s": load.MAX_PER_S + 1},
        {"book": "turns", "count": 5, "per_s": 5},
    ],
)
def test_a_job_out_of_bounds_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(JobRefused):
        check_job(job(**changes))
