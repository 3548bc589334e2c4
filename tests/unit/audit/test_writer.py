from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from audit.call_record import CallRecord
from audit.statement import RecordRefused
from audit.writer import AuditUnavailable, AuditWriter
from tests.unit.audit.test_call_record import make_record


class FakeSink:
    """A sink in memory, with the rules of the real ones. `gate` holds every commit until it is set."""

    gather_s = 0.0

    def __init__(self) -> None:
        self.batches: list[list[CallRecord]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.faults: list[Exception] = []
        self.poison: set[uuid.UUID] = set()
        self.opened = self.closed = self.probed = 0
        self.probe_faults: Exception | None = None

    def open(self) -> FakeSink:
        self.opened += 1
        return self

    def commit(self, records: Sequence[CallRecord]) -> None:
        assert len({record.id for record in records}) == len(records)
        self.entered.set()
        assert self.gate.wait(10)
        if self.faults:
            raise self.faults.pop(0)
        if any(record.id in self.poison for record in records):
            raise RecordRefused("DataError")
        self.batches.append(list(records))

    def probe(self) -> None:
        self.probed += 1
        if self.probe_faults:
            raise self.probe_faults

    def close(self) -> None:
        self.closed += 1

    @property
    def kept(self) -> list[CallRecord]:
        return [record for batch in self.batches for record in batch]


@pytest.fixture
def sink() -> FakeSink:
    return FakeSink()


async def held_writer(sink: FakeSink, **options: float) -> tuple[AuditWriter, asyncio.Task[None]]:
    """A writer whose thread hangs in the commit of one first record."""
    writer = AuditWriter(open_audit_connection=sink.open, **options)  # type: ignore[arg-type]
    sink.gate.clear()
    first = asyncio.ensure_future(writer.write(make_record()))
    await wait_for(sink.entered.is_set)
    return writer, first


async def wait_for(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.002)


async def test_write_returns_after_the_commit_and_not_before(sink: FakeSink) -> None:
    writer, first = await held_writer(sink)
    await asyncio.sleep(0.05)
    assert not first.done()
    sink.gate.set()
    await first
    assert len(sink.kept) == 1
    await writer.aclose()


async def test_a_lone_record_is_committed_at_once(sink: FakeSink) -> None:
    writer = AuditWriter(open_audit_connection=sink.open)
    writer.start()
    await writer.write(make_record())
    assert [len(batch) for batch in sink.batches] == [1]
    await writer.aclose()


async def test_what_comes_during_a_commit_is_the_next_batch(sink: FakeSink) -> None:
    writer, first = await held_writer(sink)
    others = [asyncio.ensure_future(writer.write(make_record())) for _ in range(40)]
    await wait_for(lambda: writer.stats().waiting == 40)
    sink.gate.set()
    await asyncio.gather(first, *others)
    assert [len(batch) for batch in sink.batches] == [1, 40]
    stats = writer.stats()
    assert (stats.batches, stats.rows, stats.largest_batch, stats.refused, stats.waiting) == (2, 41, 40, 0, 0)
    assert stats.last_commit_ms > 0
    await writer.aclose()


async def test_where_commits_are_dear_several_records_at_a_time_wait_a_moment_for_more(sink: FakeSink) -> None:
    sink.gather_s = 0.2
    writer, first = await held_writer(sink)
    others = [asyncio.ensure_future(writer.write(make_record())) for _ in range(2)]
    await wait_for(lambda: writer.stats().waiting == 2)
    sink.gate.set()
    await asyncio.gather(first, *others)
    late = asyncio.ensure_future(writer.write(make_record()))
    await asyncio.sleep(0.05)
    await asyncio.gather(late, writer.write(make_record()))
    assert [len(batch) for batch in sink.batches] == [1, 2, 2]
    await writer.write(make_record())  # the last of a burst may wait once more
    began = asyncio.get_running_loop().time()
    await writer.write(make_record())
    assert asyncio.get_running_loop().time() - began < sink.gather_s, "a lone record is committed at once again"
    await writer.aclose()


async def test_batches_are_bounded(sink: FakeSink) -> None:
    writer, first = await held_writer(sink, max_batch=16)
    others = [asyncio.ensure_future(writer.write(make_record())) for _ in range(40)]
    await wait_for(lambda: writer.stats().waiting == 40)
    sink.gate.set()
    await asyncio.gather(first, *others)
    assert [len(batch) for batch in sink.batches] == [1, 16, 16, 8]
    await writer.aclose()


async def test_a_loop_is_woken_once_a_batch(sink: FakeSink, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, first = await held_writer(sink)
    others = [asyncio.ensure_future(writer.write(make_record())) for _ in range(10)]
    await wait_for(lambda: writer.stats().waiting == 10)
    loop, calls = asyncio.get_running_loop(), []
    wake = loop.call_soon_threadsafe
    monkeypatch.setattr(loop, "call_soon_threadsafe", lambda *args, **kw: (calls.append(args), wake(*args, **kw))[1])
    sink.gate.set()
    await asyncio.gather(first, *others)
    assert [len(futures) for _, futures in calls] == [1, 10]
    monkeypatch.undo()
    await writer.aclose()


async def test_beyond_the_bound_records_are_turned_away_at_once(sink: FakeSink) -> None:
    writer, first = await held_writer(sink, max_waiting=3)
    others = [asyncio.ensure_future(writer.write(make_record())) for _ in range(3)]
    await wait_for(lambda: writer.stats().waiting == 3)
    with pytest.raises(AuditUnavailable, match="no more"):
        await writer.write(make_record())
    sink.gate.set()
    await asyncio.gather(first, *others)
    assert (len(sink.kept), writer.stats().refused) == (4, 1)
    await writer.aclose()


async def test_a_hanging_commit_is_not_waited_for_beyond_the_deadline(sink: FakeSink) -> None:
    writer, first = await held_writer(sink, deadline_s=0.5)
    async with asyncio.timeout(10):  # the commit itself hangs for good
        with pytest.raises(AuditUnavailable, match="in time"):
            await first
    with pytest.raises(AuditUnavailable):
        await writer.write(make_record())
    sink.gate.set()
    await writer.write(record := make_record())
    assert sink.kept[-1] == record
    assert len(sink.kept) == 2, "the first was under way, the second had waited too long to be begun"
    await writer.aclose()


async def test_a_broken_connection_is_replaced_and_the_batch_repeated(sink: FakeSink) -> None:
    sink.faults = [ConnectionError("gone"), OSError("still gone")]
    writer = AuditWriter(open_audit_connection=sink.open)
    await writer.write(record := make_record())
    assert sink.kept == [record]
    assert (sink.opened, sink.closed, writer.stats().faults) == (3, 2, 2)
    await writer.aclose()


async def test_a_database_that_stays_away_refuses_and_then_recovers(sink: FakeSink) -> None:
    away = True

    def open_audit_connection() -> FakeSink:
        if away:
            raise ConnectionError("refused")
        return sink.open()

    writer = AuditWriter(open_audit_connection=open_audit_connection, deadline_s=0.2)
    with pytest.raises(AuditUnavailable):
        await writer.write(make_record())
    away = False
    await writer.write(record := make_record())
    assert sink.kept == [record]
    assert writer.stats().faults >= 2
    await writer.aclose()


async def test_a_database_that_stays_away_is_probed_until_it_is_back(sink: FakeSink) -> None:
    sink.faults = [ConnectionError("gone")] * 1_000
    sink.probe_faults = ConnectionError("still gone")
    writer = AuditWriter(open_audit_connection=sink.open, deadline_s=1.2)
    lost = asyncio.ensure_future(writer.write(make_record()))
    writer.refuse_during_outage()  # the first second is bridged
    await wait_for(lambda: writer.outage.is_away)
    assert not lost.done(), "its record is still tried"
    with pytest.raises(AuditUnavailable):
        writer.refuse_during_outage()
    with pytest.raises(AuditUnavailable):
        await lost
    await wait_for(lambda: sink.probed >= 2)
    assert writer.outage.is_away
    sink.probe_faults = None
    sink.faults = []
    await wait_for(lambda: not writer.outage.is_away)
    writer.refuse_during_outage()
    probes = sink.probed
    await writer.write(make_record())
    assert len(sink.kept) == 1
    assert sink.probed == probes, "nobody asks a database that is well"
    await writer.aclose()


async def test_closing_during_an_outage_ends_the_probes(sink: FakeSink) -> None:
    sink.faults, sink.probe_faults = [ConnectionError("gone")] * 1_000, ConnectionError("gone")
    writer = AuditWriter(open_audit_connection=sink.open, deadline_s=1.2)
    with pytest.raises(AuditUnavailable):
        await writer.write(make_record())
    assert writer.outage.is_away
    await writer.aclose()
    assert not writer._thread or not writer._thread.is_alive()


async def test_one_bad_record_does_not_fail_its_batch(sink: FakeSink) -> None:
    writer, first = await held_writer(sink)
    records = [make_record() for _ in range(5)]
    sink.poison = {records[2].id}
    waiting = [asyncio.ensure_future(writer.write(record)) for record in records]
    await wait_for(lambda: writer.stats().waiting == 5)
    sink.gate.set()
    results = await asyncio.gather(first, *waiting, return_exceptions=True)
    assert [type(result) for result in results] == [type(None)] * 3 + [AuditUnavailable] + [type(None)] * 2
    assert {record.id for record in sink.kept[1:]} == {record.id for record in records} - sink.poison
    assert writer.stats().faults == 0, "the connection is well"
    await writer.aclose()


async def test_an_intent_and_its_outcome_in_one_batch_are_one_row(sink: FakeSink) -> None:
    writer, first = await held_writer(sink)
    begun = make_record()
    ended = replace(begun, status="success", duration_ms=7)
    waiting = [asyncio.ensure_future(writer.write(record)) for record in (begun, ended, begun)]
    await wait_for(lambda: writer.stats().waiting == 3)
    sink.gate.set()
    await asyncio.gather(first, *waiting)
    assert sink.batches[1] == [ended]
    await writer.aclose()


async def test_a_cancelled_caller_does_not_withdraw_its_record(sink: FakeSink) -> None:
    writer, first = await held_writer(sink)
    left = asyncio.ensure_future(writer.write(record := make_record()))
    await wait_for(lambda: writer.stats().waiting == 1)
    left.cancel()
    sink.gate.set()
    await first
    await wait_for(lambda: len(sink.kept) == 2)
    assert left.cancelled()
    assert sink.kept[1] == record
    await writer.aclose()


async def test_several_loops_in_several_threads_share_one_writer(sink: FakeSink) -> None:
    writer = AuditWriter(open_audit_connection=sink.open)

    async def write_some() -> None:
        await asyncio.gather(*[writer.write(make_record()) for _ in range(50)])

    await asyncio.gather(*[asyncio.to_thread(asyncio.run, write_some()) for _ in range(4)], write_some())
    assert len({record.id for record in sink.kept}) == len(sink.kept) == 250
    assert sink.opened == 1
    await writer.aclose()


async def test_a_loop_that_ended_does_not_disturb_the_others(sink: FakeSink) -> None:
    writer, first = await held_writer(sink)

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(writer.write(make_record()), 0.05)

    await asyncio.to_thread(asyncio.run, give_up())
    sink.gate.set()
    await first
    await writer.write(make_record())
    assert len(sink.kept) == 3
    await writer.aclose()


async def test_closing_commits_what_waits_and_refuses_what_comes(sink: FakeSink) -> None:
    writer, first = await held_writer(sink)
    others = [asyncio.ensure_future(writer.write(make_record())) for _ in range(5)]
    await wait_for(lambda: writer.stats().waiting == 5)
    closing = asyncio.ensure_future(writer.aclose())
    await asyncio.sleep(0)
    with pytest.raises(AuditUnavailable):
        await writer.write(make_record())
    sink.gate.set()
    await asyncio.gather(first, *others, closing)
    assert (len(sink.kept), sink.closed) == (6, 1)
    await writer.aclose()


async def test_closing_a_writer_that_never_wrote_opens_nothing(sink: FakeSink) -> None:
    idle, started = AuditWriter(open_audit_connection=sink.open), AuditWriter(open_audit_connection=sink.open)
    started.start()
    await idle.aclose()
    await started.aclose()
    assert sink.opened == 0
    with pytest.raises(AuditUnavailable):
        await idle.write(make_record())


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
async def test_a_forked_child_writes_through_a_connection_of_its_own(sink: FakeSink) -> None:
    writer = AuditWriter(open_audit_connection=sink.open)
    await writer.write(make_record())
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(asyncio.wait_for(writer.write(make_record()), 5))
            stats = writer.stats()
            os.write(writing, f"{sink.opened} {sink.closed} {stats.rows}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        assert answer.read() == "2 0 1", "opened again, nothing of the parent's closed, counted from zero"
    os.waitpid(child, 0)
    await writer.write(make_record())
    assert (sink.opened, writer.stats().rows) == (1, 2)
    await writer.aclose()
