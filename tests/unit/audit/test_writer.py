from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from audit.call_record import CallRecord
from audit.pending_record import AuditUnavailable
from audit.statement import RecordRefused
from audit.writer import AuditWriter
from tests.unit.audit.test_call_record import make_record


class FakeConnection:
    """An audit connection in memory, with the rules of the real ones. `gate` holds every commit until it is set."""

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

    def open(self) -> FakeConnection:
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

    def for_loop(self) -> None:
        return None

    def close(self) -> None:
        self.closed += 1

    @property
    def kept(self) -> list[CallRecord]:
        return [record for batch in self.batches for record in batch]


@pytest.fixture
def connection() -> FakeConnection:
    return FakeConnection()


async def blocked_writer(connection: FakeConnection, **options: float) -> tuple[AuditWriter, asyncio.Task[None]]:
    """A writer whose thread hangs in the commit of one first record."""
    writer = AuditWriter(open_connection=connection.open, **options)  # type: ignore[arg-type]
    connection.gate.clear()
    first = asyncio.ensure_future(writer.write(make_record()))
    await wait_for(connection.entered.is_set)
    return writer, first


async def wait_for(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.002)


async def test_write_returns_after_the_commit_and_not_before(connection: FakeConnection) -> None:
    writer, first = await blocked_writer(connection)
    await asyncio.sleep(0.05)
    assert not first.done()
    connection.gate.set()
    await first
    assert len(connection.kept) == 1
    await writer.aclose()


async def test_a_lone_record_is_committed_at_once(connection: FakeConnection) -> None:
    writer = AuditWriter(open_connection=connection.open)
    writer.start()
    await writer.write(make_record())
    assert [len(batch) for batch in connection.batches] == [1]
    await writer.aclose()


async def test_what_comes_during_a_commit_is_the_next_batch(connection: FakeConnection) -> None:
    writer, first = await blocked_writer(connection)
    others = [asyncio.ensure_future(writer.write(make_record())) for _ in range(40)]
    await wait_for(lambda: writer.pending_count == 40)
    connection.gate.set()
    await asyncio.gather(first, *others)
    assert [len(batch) for batch in connection.batches] == [1, 40]
    assert writer.pending_count == 0
    await writer.aclose()


async def test_where_commits_are_dear_several_records_at_a_time_wait_a_moment_for_more(
    connection: FakeConnection,
) -> None:
    connection.gather_s = 2.0
    writer, first = await blocked_writer(connection)
    others = [asyncio.ensure_future(writer.write(make_record())) for _ in range(2)]
    await wait_for(lambda: writer.pending_count == 2)
    connection.gate.set()
    await asyncio.gather(first, *others)
    expired = asyncio.ensure_future(writer.write(make_record()))
    await asyncio.sleep(0.05)
    await asyncio.gather(expired, writer.write(make_record()))
    assert [len(batch) for batch in connection.batches] == [1, 2, 2]
    await writer.write(make_record())  # the last of a burst may wait once more
    began = asyncio.get_running_loop().time()
    await writer.write(make_record())
    assert asyncio.get_running_loop().time() - began < connection.gather_s, "a lone record is committed at once again"
    await writer.aclose()


async def test_batches_are_bounded(connection: FakeConnection) -> None:
    writer, first = await blocked_writer(connection, max_batch=16)
    others = [asyncio.ensure_future(writer.write(make_record())) for _ in range(40)]
    await wait_for(lambda: writer.pending_count == 40)
    connection.gate.set()
    await asyncio.gather(first, *others)
    assert [len(batch) for batch in connection.batches] == [1, 16, 16, 8]
    await writer.aclose()


async def test_a_loop_is_woken_once_a_batch(connection: FakeConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, first = await blocked_writer(connection)
    others = [asyncio.ensure_future(writer.write(make_record())) for _ in range(10)]
    await wait_for(lambda: writer.pending_count == 10)
    loop, calls = asyncio.get_running_loop(), []
    wake = loop.call_soon_threadsafe
    monkeypatch.setattr(loop, "call_soon_threadsafe", lambda *args, **kw: (calls.append(args), wake(*args, **kw))[1])
    connection.gate.set()
    await asyncio.gather(first, *others)
    assert [len(futures) for _, futures in calls] == [1, 10]
    monkeypatch.undo()
    await writer.aclose()


async def test_beyond_the_bound_records_are_turned_away_at_once(connection: FakeConnection) -> None:
    writer, first = await blocked_writer(connection, max_pending=3)
    others = [asyncio.ensure_future(writer.write(make_record())) for _ in range(3)]
    await wait_for(lambda: writer.pending_count == 3)
    with pytest.raises(AuditUnavailable, match="no more"):
        await writer.write(make_record())
    connection.gate.set()
    await asyncio.gather(first, *others)
    assert len(connection.kept) == 4
    await writer.aclose()


async def test_a_hanging_commit_is_not_waited_for_beyond_the_deadline(connection: FakeConnection) -> None:
    writer, first = await blocked_writer(connection, deadline_s=0.9)
    async with asyncio.timeout(60):  # the commit itself hangs for good
        with pytest.raises(AuditUnavailable, match="in time"):
            await first
    with pytest.raises(AuditUnavailable):
        await writer.write(make_record())
    connection.gate.set()
    await writer.write(record := make_record())
    assert connection.kept[-1] == record
    assert len(connection.kept) == 2, "the first was under way, the second had waited too long to be begun"
    await writer.aclose()


async def test_a_broken_connection_is_replaced_and_the_batch_repeated(connection: FakeConnection) -> None:
    connection.faults = [ConnectionError("gone"), OSError("still gone")]
    writer = AuditWriter(open_connection=connection.open)
    await writer.write(record := make_record())
    assert connection.kept == [record]
    assert (connection.opened, connection.closed) == (3, 2)
    await writer.aclose()


async def test_a_database_that_stays_away_refuses_and_then_recovers(connection: FakeConnection) -> None:
    away = True
    attempts = 0

    def open_audit_connection() -> FakeConnection:
        nonlocal attempts
        attempts += 1
        if away:
            raise ConnectionError("refused")
        return connection.open()

    writer = AuditWriter(open_connection=open_audit_connection, deadline_s=0.9)
    with pytest.raises(AuditUnavailable):
        await writer.write(make_record())
    away = False
    writer._deadline_s = 60.0
    await writer.write(record := make_record())
    assert connection.kept == [record]
    assert attempts >= 3, "two failed at least"
    await writer.aclose()


async def test_a_database_that_stays_away_is_probed_until_it_is_back(connection: FakeConnection) -> None:
    connection.faults = [ConnectionError("gone")] * 1_000
    connection.probe_faults = ConnectionError("still gone")
    writer = AuditWriter(open_connection=connection.open, deadline_s=4.0)
    lost = asyncio.ensure_future(writer.write(make_record()))
    writer.refuse_during_outage()  # the first second is bridged
    await wait_for(lambda: writer.outage.is_active)
    assert not lost.done(), "its record is still tried"
    with pytest.raises(AuditUnavailable):
        writer.refuse_during_outage()
    with pytest.raises(AuditUnavailable):
        await lost
    await wait_for(lambda: connection.probed >= 2)
    assert writer.outage.is_active
    connection.probe_faults = None
    connection.faults = []
    await wait_for(lambda: not writer.outage.is_active)
    writer.refuse_during_outage()
    probes = connection.probed
    await writer.write(make_record())
    assert len(connection.kept) == 1
    assert connection.probed == probes, "nobody asks a database that is well"
    await writer.aclose()


async def test_closing_during_an_outage_ends_the_probes(connection: FakeConnection) -> None:
    connection.faults, connection.probe_faults = [ConnectionError("gone")] * 1_000, ConnectionError("gone")
    writer = AuditWriter(open_connection=connection.open, deadline_s=1.2)
    with pytest.raises(AuditUnavailable):
        await writer.write(make_record())
    assert writer.outage.is_active
    await writer.aclose()
    assert not writer._thread or not writer._thread.is_alive()


async def test_one_bad_record_does_not_fail_its_batch(connection: FakeConnection) -> None:
    writer, first = await blocked_writer(connection)
    records = [make_record() for _ in range(5)]
    connection.poison = {records[2].id}
    pending = [asyncio.ensure_future(writer.write(record)) for record in records]
    await wait_for(lambda: writer.pending_count == 5)
    connection.gate.set()
    results = await asyncio.gather(first, *pending, return_exceptions=True)
    assert [type(result) for result in results] == [type(None)] * 3 + [AuditUnavailable] + [type(None)] * 2
    assert {record.id for record in connection.kept[1:]} == {record.id for record in records} - connection.poison
    assert connection.closed == 0, "the connection is well"
    await writer.aclose()


async def test_an_intent_and_its_outcome_in_one_batch_are_one_row(connection: FakeConnection) -> None:
    writer, first = await blocked_writer(connection)
    begun = make_record()
    ended = replace(begun, status="success", duration_ms=7)
    pending = [asyncio.ensure_future(writer.write(record)) for record in (begun, ended, begun)]
    await wait_for(lambda: writer.pending_count == 3)
    connection.gate.set()
    await asyncio.gather(first, *pending)
    assert connection.batches[1] == [ended]
    await writer.aclose()


async def test_a_cancelled_caller_does_not_withdraw_its_record(connection: FakeConnection) -> None:
    writer, first = await blocked_writer(connection)
    left = asyncio.ensure_future(writer.write(record := make_record()))
    await wait_for(lambda: writer.pending_count == 1)
    left.cancel()
    connection.gate.set()
    await first
    await wait_for(lambda: len(connection.kept) == 2)
    assert left.cancelled()
    assert connection.kept[1] == record
    await writer.aclose()


async def test_several_loops_in_several_threads_share_one_writer(connection: FakeConnection) -> None:
    writer = AuditWriter(open_connection=connection.open)

    async def write_some() -> None:
        await asyncio.gather(*[writer.write(make_record()) for _ in range(50)])

    await asyncio.gather(*[asyncio.to_thread(asyncio.run, write_some()) for _ in range(4)], write_some())
    assert len({record.id for record in connection.kept}) == len(connection.kept) == 250
    assert connection.opened == 1
    await writer.aclose()


async def test_a_loop_that_ended_does_not_disturb_the_others(connection: FakeConnection) -> None:
    writer, first = await blocked_writer(connection)

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(writer.write(make_record()), 0.05)

    await asyncio.to_thread(asyncio.run, give_up())
    connection.gate.set()
    await first
    await writer.write(make_record())
    assert len(connection.kept) == 3
    await writer.aclose()


async def test_closing_commits_what_waits_and_refuses_what_comes(connection: FakeConnection) -> None:
    writer, first = await blocked_writer(connection)
    others = [asyncio.ensure_future(writer.write(make_record())) for _ in range(5)]
    await wait_for(lambda: writer.pending_count == 5)
    closing = asyncio.ensure_future(writer.aclose())
    await asyncio.sleep(0)
    with pytest.raises(AuditUnavailable):
        await writer.write(make_record())
    connection.gate.set()
    await asyncio.gather(first, *others, closing)
    assert (len(connection.kept), connection.closed) == (6, 1)
    await writer.aclose()


async def test_closing_a_writer_that_never_wrote_opens_nothing(connection: FakeConnection) -> None:
    idle, started = AuditWriter(open_connection=connection.open), AuditWriter(open_connection=connection.open)
    started.start()
    await idle.aclose()
    await started.aclose()
    assert connection.opened == 0
    with pytest.raises(AuditUnavailable):
        await idle.write(make_record())


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
async def test_a_forked_child_writes_through_a_connection_of_its_own(connection: FakeConnection) -> None:
    writer = AuditWriter(open_connection=connection.open)
    await writer.write(make_record())
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(asyncio.wait_for(writer.write(make_record()), 60))
            os.write(writing, f"{connection.opened} {connection.closed} {len(connection.kept)}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        assert answer.read() == "2 0 2", "opened again, nothing of the parent's closed"
    os.waitpid(child, 0)
    await writer.write(make_record())
    assert (connection.opened, len(connection.kept)) == (1, 2)
    await writer.aclose()
