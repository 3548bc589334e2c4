"""An answered call has its row, whatever happens to our process or to the database.

Spec: D80 · reliability: kill -9 of the gateway, PostgreSQL gone, disk full
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
import structlog
from msgspec.structs import replace
from pytest_django import DjangoDbBlocker

from audit.audit_connection import AuditConnection, open_audit_connection
from audit.call_record import CallRecord
from audit.pending_record import AuditUnavailable
from audit.writer import DEADLINE_S, AuditWriter
from tests.faults.scratch_database import BACKENDS, ROOT, NewScratch, ScratchDatabase

pytest_plugins = ("tests.faults.fixtures",)

CONNECTIONS = 32
LOAD_S = 2.0
Rows = set[tuple[uuid.UUID, str, str]]
ORGS = [uuid.UUID("11111111-1111-4111-8111-111111111111"), uuid.UUID("22222222-2222-4222-8222-222222222222")]


@pytest.fixture(scope="module", params=BACKENDS)
def database(
    request: pytest.FixtureRequest,
    new_scratch: NewScratch,
    tmp_path_factory: pytest.TempPathFactory,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[ScratchDatabase]:
    """Not the suite's database, so the guard of that one is off."""
    with django_db_blocker.unblock(), new_scratch(request.param, tmp_path_factory.mktemp("audit")) as made:
        yield made


def new_record(request_id: str = "") -> CallRecord:
    return CallRecord(
        org_id=ORGS[time.time_ns() % 2],
        user_id="user-1",
        user_label="Ana",
        vendor="acme",
        tool="acme_list",
        source="mcp",
        status="success",
        request_id=request_id or uuid.uuid4().hex,
    )


def writer_on(
    database: ScratchDatabase, *, deadline_s: float = DEADLINE_S, opened: list[AuditConnection] | None = None
) -> AuditWriter:
    """A writer that adds each connection it opens to `opened`."""

    def open_connection() -> AuditConnection:
        connection = open_audit_connection(database.config)
        if opened is not None:
            opened.append(connection)
        return connection

    return AuditWriter(open_connection=open_connection, deadline_s=deadline_s)


# --- kill -9 ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def program(database: ScratchDatabase) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The program and its address."""
    command = [sys.executable, "-m", "tests.faults.audit_app"]
    process = subprocess.Popen(
        command, cwd=ROOT, env=database.environment(), stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    try:
        yield process, f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


async def hammer(address: str, answered: dict[str, uuid.UUID]) -> None:
    """Post over one connection until it breaks; note what was answered with 200."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
        for number in range(1_000_000):
            request_id = uuid.uuid4().hex
            path = "/call" if number % 2 else "/write"
            try:
                async with session.post(f"{address}{path}", headers={"X-Request-Id": request_id}) as response:
                    body = await response.text()
            except (aiohttp.ClientError, OSError):
                return
            assert response.status == 200, body
            answered[request_id] = uuid.UUID(body)


async def begin_load(address: str, answered: dict[str, uuid.UUID]) -> list[asyncio.Task[None]]:
    """All connections at work for LOAD_S, or longer on a slow machine until they have had 10 answers each."""
    load = [asyncio.ensure_future(hammer(address, answered)) for _ in range(CONNECTIONS)]
    await asyncio.sleep(LOAD_S)
    async with asyncio.timeout(30):
        while len(answered) < 10 * CONNECTIONS:
            await asyncio.sleep(0.05)
    return load


async def kill(process: subprocess.Popen[str], load: list[asyncio.Task[None]]) -> None:
    process.send_signal(signal.SIGKILL)
    async with asyncio.timeout(60):
        await asyncio.gather(*load)
    assert process.wait(10) == -signal.SIGKILL


def assert_nothing_lost_or_doubled(database: ScratchDatabase, answered: dict[str, uuid.UUID], before: Rows) -> None:
    rows = [row for row in database.rows() if row not in before]
    finished = {request_id: row_id for row_id, request_id, status in rows if status == "success"}
    assert {key: row_id for key, row_id in answered.items() if finished.get(key) != row_id} == {}, "lost"
    assert [key for key, times in Counter(key for _, key, _ in rows).items() if times > 1] == [], "twice"
    # Each connection had one call under way: it may have a row, finished or not, or none. There is no other row.
    assert len(rows) - len(answered) <= CONNECTIONS
    assert {status for _, _, status in rows} <= {"success", "unknown"}


async def test_kill_9_loses_no_row_of_an_answered_call(
    database: ScratchDatabase, program: tuple[subprocess.Popen[str], str]
) -> None:
    process, address = program
    before, answered = database.rows(), dict[str, uuid.UUID]()
    load = await begin_load(address, answered)
    await kill(process, load)
    assert_nothing_lost_or_doubled(database, answered, set(before))


async def test_kill_9_in_the_middle_of_a_commit_loses_no_row_either(
    database: ScratchDatabase, program: tuple[subprocess.Popen[str], str]
) -> None:
    """The lock stretches the moment between record and commit, in which an answer would be one too early."""
    process, address = program
    before, answered = database.rows(), dict[str, uuid.UUID]()
    load = await begin_load(address, answered)
    with database.locked():
        await asyncio.sleep(0.5)
        await kill(process, load)
        database.end_writers_session()
    assert_nothing_lost_or_doubled(database, answered, set(before))


# --- the database is away ---------------------------------------------------------------------------------------------


async def write_until(over: asyncio.Event, writer: AuditWriter, kept: list[uuid.UUID]) -> None:
    """Intent and outcome, again and again."""
    while not over.is_set():
        ended = new_record()
        await writer.write(replace(ended, status="unknown", duration_ms=0))
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


async def test_a_moment_without_the_database_loses_and_doubles_nothing(database: ScratchDatabase) -> None:
    writer = writer_on(database)
    kept: list[uuid.UUID] = []
    before = {row_id for row_id, _, _ in database.rows()}
    over = asyncio.Event()
    load = [asyncio.ensure_future(write_until(over, writer, kept)) for _ in range(16)]
    await keep_more(kept)
    await asyncio.to_thread(interrupt, database)
    await keep_more(kept)
    if database.is_postgresql:
        await asyncio.to_thread(interrupt, database)  # finds the session that the writer has opened since
        await keep_more(kept)
    over.set()
    await asyncio.gather(*load)
    await writer.aclose()
    rows = {row_id: status for row_id, _, status in database.rows() if row_id not in before}
    assert rows == dict.fromkeys(kept, "success")


async def write_soon(writer: AuditWriter, record: CallRecord) -> None:
    """The record is kept; the thread may first have to come back from an attempt that hung."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(AuditUnavailable):
                return await writer.write(record)


async def test_a_database_that_stays_away_refuses_in_time_and_then_serves_again(database: ScratchDatabase) -> None:
    writer = writer_on(database, deadline_s=0.6)
    await write_soon(writer, new_record())
    with database.locked():
        began = time.monotonic()
        refused = await asyncio.gather(*[writer.write(new_record()) for _ in range(50)], return_exceptions=True)
        assert {type(result) for result in refused} == {AuditUnavailable}
        assert time.monotonic() - began > 0.5
    last = new_record()
    await write_soon(writer, last)
    await writer.aclose()
    assert [row_id for row_id, _, _ in database.rows() if row_id == last.id] == [last.id]


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
        writer = writer_on(database, deadline_s=3.0, opened=opened)
        answered: list[uuid.UUID] = []
        with structlog.testing.capture_logs() as logs:
            with pytest.raises(AuditUnavailable):
                await fill(writer, answered)
            with pytest.raises(AuditUnavailable):
                await writer.write(new_record())
            assert {row_id for row_id, _, _ in database.rows()} == set(answered)
            database.config["OPTIONS"]["init_command"] = roomy
            await write_soon(writer, record := new_record())
        await writer.aclose()
        assert {row_id for row_id, _, _ in database.rows()} == {*answered, record.id}
        assert len(opened) > 3, "each failed attempt closes its connection"
        heard = [line["event"] for line in logs if line["event"].startswith("audit.")]
        # On a slow machine a commit of a second is an outage too.
        assert heard == ["audit.unavailable", "audit.recovered"] * max(1, len(heard) // 2), "one line an outage"
