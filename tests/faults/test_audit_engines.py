"""One contract for every engine that makes call records durable, and for the writer before it.

The promises are those of audit.audit_connection.AuditConnection and of AuditWriter.write. Spec: D80 · reliability:
kill -9 of the gateway, PostgreSQL gone, disk full
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import structlog
from msgspec.structs import force_setattr, replace
from pytest_django import DjangoDbBlocker

from audit.audit_connection import AuditConnection
from audit.call_record import CallRecord
from audit.pending_record import AuditUnavailable
from audit.statement import RecordRefused
from audit.writer import AuditWriter
from tests.faults.audit_engine import ENGINES, ORGS, Engine, new_record
from tests.faults.scratch_database import ROOT, NewScratch, ScratchDatabase

pytest_plugins = ("tests.faults.fixtures",)

WRITERS = 16
ORG, OTHER_ORG = ORGS


@pytest.fixture(scope="module")
def database_of(
    new_scratch: NewScratch, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> Iterator[Callable[[str], ScratchDatabase]]:
    """Databases of this module's own, each made at first use. The guard of the suite's is off."""
    with django_db_blocker.unblock(), contextlib.ExitStack() as stack:
        yield cache(lambda kind: stack.enter_context(new_scratch(kind, tmp_path_factory.mktemp("audit"))))


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, database_of: Callable[[str], ScratchDatabase]) -> Engine:
    return Engine(request.param, database_of(request.param.split()[0]))


@pytest.fixture
def connection(engine: Engine) -> Iterator[AuditConnection]:
    opened = engine.open()
    yield opened
    opened.close()


async def started(engine: Engine, **options: int) -> AuditWriter:
    """A writer on its usual way: the event loop commits, where the engine lets it."""
    writer = engine.writer(**options)
    await writer.write(new_record())
    async with asyncio.timeout(60):
        while engine.uses_loop and writer._committer is None:
            await asyncio.sleep(0)
    return writer


def new_intent() -> tuple[CallRecord, CallRecord]:
    """The record of a writing call before it is sent, and after."""
    ended = new_record(duration_ms=7)
    return replace(ended, status="unknown", duration_ms=0), ended


# --- one row for each id ----------------------------------------------------------------------------------------------


def test_an_outcome_completes_its_intent(engine: Engine, connection: AuditConnection) -> None:
    begun, ended = new_intent()
    connection.commit([begun])
    assert engine.database.kept()[begun.id] == (begun.org_id, "unknown", 0, None)
    connection.commit([ended])
    org_id, status, duration_ms, position = engine.database.kept()[begun.id]
    assert (org_id, status, duration_ms) == (begun.org_id, "success", 7)
    assert position is not None


@pytest.mark.parametrize("later", [{"status": "unknown"}, {"status": "error"}, {"org_id": OTHER_ORG}, {}])
def test_a_final_row_never_changes(engine: Engine, connection: AuditConnection, later: dict[str, object]) -> None:
    """A late intent, a second outcome, another organization's record, and the same record again."""
    ended = new_record(org_id=ORG, duration_ms=7)
    connection.commit([ended])
    before = engine.database.kept()
    connection.commit([replace(ended, **later), more := new_record(org_id=OTHER_ORG)])
    after = engine.database.kept()
    assert after.pop(more.id).org_id == OTHER_ORG
    assert after == before


def test_an_intent_of_another_organization_is_never_completed(engine: Engine, connection: AuditConnection) -> None:
    begun, ended = new_intent()
    connection.commit([replace(begun, org_id=OTHER_ORG)])
    connection.commit([replace(ended, org_id=ORG)])
    assert engine.database.kept()[begun.id] == (OTHER_ORG, "unknown", 0, None)


async def test_a_writer_makes_one_row_of_records_that_meet_in_one_batch(engine: Engine) -> None:
    writer, (begun, ended) = await started(engine), new_intent()
    await asyncio.gather(*(writer.write(record) for record in (begun, ended, begun, ended)))
    await writer.write(begun)
    await writer.aclose()
    assert engine.database.kept()[begun.id][:3] == (begun.org_id, "success", 7)


# --- whole batches ----------------------------------------------------------------------------------------------------


def poisoned() -> CallRecord:
    """A record that no engine can store, and no caller can build: the class keeps its own ranges."""
    record = new_record()
    force_setattr(record, "duration_ms", -1)
    return record


def test_a_batch_with_a_record_that_cannot_be_stored_is_refused_whole(
    engine: Engine, connection: AuditConnection
) -> None:
    before = engine.database.kept()
    with pytest.raises(RecordRefused):
        connection.commit([new_record(), poisoned(), new_record()])
    assert engine.database.kept() == before
    connection.commit([new_record()])
    assert len(engine.database.kept()) == len(before) + 1, "the connection works"


async def test_a_writer_refuses_that_record_alone(engine: Engine) -> None:
    writer, well = await started(engine), [new_record() for _ in range(20)]
    results = await asyncio.gather(
        *(writer.write(record) for record in [*well[:10], poisoned(), *well[10:]]), return_exceptions=True
    )
    await writer.aclose()
    assert [type(result) for result in results] == [type(None)] * 10 + [AuditUnavailable] + [type(None)] * 10
    assert {record.id for record in well} <= engine.database.kept().keys()


def test_a_probe_stores_nothing(engine: Engine, connection: AuditConnection) -> None:
    before = engine.database.kept()
    connection.probe()
    assert engine.database.kept() == before
    connection.commit([new_record()])
    connection.probe()


# --- order ------------------------------------------------------------------------------------------------------------


def positions(engine: Engine, records: list[CallRecord]) -> list[int]:
    kept = engine.database.kept()
    found = [kept[record.id].position for record in records]
    return [position for position in found if position is not None]


async def test_a_row_is_there_when_write_returns_and_comes_before_all_later_ones(engine: Engine) -> None:
    writer, records = engine.writer(), [new_record() for _ in range(5)]
    for number, record in enumerate(records):
        await writer.write(record)
        found = positions(engine, records[: number + 1])
        assert len(found) == number + 1
        assert found == sorted(set(found))
    await writer.aclose()


async def test_records_that_wait_together_keep_their_order(engine: Engine) -> None:
    writer, records = await started(engine, max_batch=4), [new_record() for _ in range(50)]
    await asyncio.gather(*(writer.write(record) for record in records))
    await writer.aclose()
    found = positions(engine, records)
    assert len(found) == 50
    assert found == sorted(found)
    assert len(set(found)) > 1, "several batches"


# --- kill -9 ----------------------------------------------------------------------------------------------------------


class KilledWriter:
    """The program `killed_writer` and its words."""

    def __init__(self, engine: Engine, *options: int) -> None:
        command = [sys.executable, "-m", "tests.faults.killed_writer", *map(str, (WRITERS, *options))]
        self._popen = subprocess.Popen(
            command, cwd=ROOT, env=engine.environment(), stdout=subprocess.PIPE, start_new_session=True, bufsize=0
        )
        assert self._popen.stdout is not None
        self._words = self._popen.stdout
        self.begun, self.kept = set[uuid.UUID](), set[uuid.UUID]()

    def __enter__(self) -> KilledWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._popen.kill()
        self._popen.wait(10)
        self._words.close()

    def read_line(self) -> bool:
        """Returns False at the end."""
        word, _, record_id = self._words.readline().decode().strip().partition(" ")
        if word:
            (self.begun if word == "begin" else self.kept).add(uuid.UUID(record_id))
        return bool(word)

    def read_until_it_waits(self) -> None:
        """Every writer waits for a commit that does not come."""
        while len(self.begun) - len(self.kept) < WRITERS or select.select([self._words], [], [], 0.5)[0]:
            assert self.read_line()

    def read_to_the_end(self) -> None:
        while self.read_line():
            pass
        assert self._popen.wait(10) == -signal.SIGKILL

    def kill(self) -> None:
        self._popen.kill()
        self.read_to_the_end()

    def assert_nothing_is_lost(self, engine: Engine, before: set[uuid.UUID]) -> None:
        rows = {row_id: row.status for row_id, row in engine.database.kept().items() if row_id not in before}
        assert {row_id for row_id in self.kept if rows.get(row_id) != "success"} == set(), "lost"
        # A record under way may have a row, finished or not, or none.
        assert rows.keys() <= self.begun
        assert len(self.begun) - len(self.kept) <= WRITERS
        assert set(rows.values()) <= {"success", "unknown"}


@pytest.mark.parametrize("kept", [1, 500])
def test_a_kill_between_a_write_and_its_answer_loses_no_row(engine: Engine, kept: int) -> None:
    """By the 500th record the event loop commits, where the engine lets it. All other writers are under way."""
    before = set(engine.database.kept())
    with KilledWriter(engine, kept) as program:
        program.read_to_the_end()
        assert len(program.kept) == kept
        program.assert_nothing_is_lost(engine, before)


def test_a_kill_in_the_middle_of_a_commit_loses_no_row_either(engine: Engine) -> None:
    """The lock stretches the moment between record and commit, in which a return would be one too early."""
    before = set(engine.database.kept())
    with KilledWriter(engine) as program:
        while len(program.kept) < 100:
            assert program.read_line()
        with engine.database.locked():
            program.read_until_it_waits()
            program.kill()
            engine.database.end_writers_session()
        program.assert_nothing_is_lost(engine, before)


# --- the engine is away -----------------------------------------------------------------------------------------------


async def write_until(over: asyncio.Event, writer: AuditWriter, kept: list[uuid.UUID]) -> None:
    """Intent and outcome, again and again."""
    while not over.is_set():
        begun, ended = new_intent()
        await writer.write(begun)
        await writer.write(ended)
        kept.append(ended.id)


async def keep_more(kept: list[uuid.UUID]) -> None:
    """A hundred more have been kept."""
    enough = len(kept) + 100
    async with asyncio.timeout(60):
        while len(kept) < enough:
            await asyncio.sleep(0.02)


def interrupt(database: ScratchDatabase) -> None:
    """Take the database away for a moment: end the writer's session, or lock the file for a second."""
    if database.is_postgresql:
        # The session of a program that an earlier test has killed may not have ended yet.
        assert database.end_writers_session() >= 1, "the writer has a session of its own"
    else:
        with database.locked():
            time.sleep(1)


async def test_a_moment_without_the_engine_loses_and_doubles_nothing(engine: Engine) -> None:
    writer, before = engine.writer(), engine.database.kept()
    kept: list[uuid.UUID] = []
    over = asyncio.Event()
    load = [asyncio.ensure_future(write_until(over, writer, kept)) for _ in range(WRITERS)]
    await keep_more(kept)
    await asyncio.to_thread(interrupt, engine.database)
    await keep_more(kept)
    if engine.database.is_postgresql:
        await asyncio.to_thread(interrupt, engine.database)  # finds the session that the writer has opened since
        await keep_more(kept)
    over.set()
    await asyncio.gather(*load)
    await writer.aclose()
    rows = {row_id: row.status for row_id, row in engine.database.kept().items() if row_id not in before}
    assert rows == dict.fromkeys(kept, "success")


async def write_soon(writer: AuditWriter, record: CallRecord) -> None:
    """The record is kept; the thread may first have to come back from an attempt that hung."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(AuditUnavailable):
                return await writer.write(record)


async def test_an_engine_that_hangs_fails_calls_within_their_deadline_and_then_serves_again(engine: Engine) -> None:
    writer = engine.writer(deadline_s=0.6)
    await write_soon(writer, new_record())
    refused = [new_record() for _ in range(50)]
    with engine.database.locked():
        async with asyncio.timeout(30):  # the engine would hang for as long as it is locked
            results = await asyncio.gather(*map(writer.write, refused), return_exceptions=True)
        assert {type(result) for result in results} == {AuditUnavailable}
    await write_soon(writer, last := new_record())
    await writer.aclose()
    assert engine.database.kept()[last.id].status == "success"


async def fill(writer: AuditWriter, answered: list[uuid.UUID]) -> None:
    for _ in range(500):
        await writer.write(record := new_record())
        answered.append(record.id)


@pytest.mark.one_back_end
async def test_a_full_disk_refuses_and_free_space_lets_it_go_on(
    tmp_path: Path, new_scratch: NewScratch, django_db_blocker: DjangoDbBlocker
) -> None:
    with django_db_blocker.unblock(), new_scratch("sqlite", tmp_path) as database:
        roomy = database.config["OPTIONS"]["init_command"]
        with contextlib.closing(database.connect()) as connection:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
        database.config["OPTIONS"]["init_command"] = f"{roomy} PRAGMA max_page_count={pages + 4};"
        opened: list[AuditConnection] = []
        engine = Engine("sqlite", database)

        def open_connection() -> AuditConnection:
            opened.append(engine.open())
            return opened[-1]

        writer = AuditWriter(open_connection=open_connection, deadline_s=3.0)
        answered: list[uuid.UUID] = []
        with structlog.testing.capture_logs() as logs:
            with pytest.raises(AuditUnavailable):
                await fill(writer, answered)
            with pytest.raises(AuditUnavailable):
                await writer.write(new_record())
            assert database.kept().keys() == set(answered)
            database.config["OPTIONS"]["init_command"] = roomy
            await write_soon(writer, record := new_record())
        await writer.aclose()
        assert database.kept().keys() == {*answered, record.id}
        assert len(opened) > 3, "each failed attempt closes its connection"
        heard = [line["event"] for line in logs if line["event"].startswith("audit.")]
        # On a slow machine a commit of a second is an outage too.
        assert heard == ["audit.unavailable", "audit.recovered"] * max(1, len(heard) // 2), "one line an outage"
