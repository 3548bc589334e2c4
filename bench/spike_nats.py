"""Another engine behind the audit writer: NATS JetStream beside PostgreSQL, in one run.

    NATS_SERVER=var/nats/bin/nats-server BENCH_DATABASE_URL=postgres://user@127.0.0.1:5432/postgres \\
        python -m bench.spike_nats [--seconds 3] [--rounds 3] [--json FILE]

Every line uses the gateway's own writer, so only the engine behind it differs. A row counts when its write has
returned. At the end each broker is killed under load: every row that was acknowledged must be in its stream.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import msgspec
import psutil
import psycopg
import uvloop

from audit.audit_connection import AuditConnection, open_audit_connection
from audit.call_record import COLUMNS, CallRecord
from audit.pending_record import AuditUnavailable
from audit.writer import MAX_BATCH, AuditWriter
from bench.accounting import CpuMeter
from bench.databases import own_database
from bench.figures import median, percentile
from bench.jetstream import JetStreamConnection
from bench.jetstream_broker import SYNC, Broker
from bench.machine import facts, file_system
from bench.placement import place
from bench.processes import BenchFailed, Processes
from bench.report import number, table

ROOT = Path(__file__).resolve().parent.parent
WRITERS = (1, 16, 64)
WARM_UP_S = 0.5
ORGS = [uuid.UUID(int=number + 1) for number in range(8)]


class Figure(msgspec.Struct):
    """One engine with so many writers in one round. CPU is in microseconds of a row; NaN where it cannot be seen."""

    engine: str
    writers: int
    rows_per_s: float
    p50_ms: float
    p99_ms: float
    writer_cpu_us: float
    engine_cpu_us: float


@dataclass(frozen=True)
class Engine:
    """`pids` are the processes that serve its connections now."""

    name: str
    open: Callable[[], AuditConnection]
    pids: Callable[[], list[int]]


class CopyConnection:
    """COPY of each batch into a table without an index: the least work that PostgreSQL can have with a durable row.

    It takes an id twice, so it is no engine for calls.
    """

    gather_s = 0.0

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url)

    def commit(self, records: Sequence[CallRecord]) -> None:
        with self._connection.cursor() as cursor:
            with cursor.copy(f"COPY copied ({', '.join(COLUMNS)}) FROM STDIN") as copy:
                for record in records:
                    copy.write_row(msgspec.structs.astuple(record))
            self._connection.commit()

    def probe(self) -> None:
        self._connection.execute("SELECT 1")

    def for_loop(self) -> None:
        return None

    def close(self) -> None:
        self._connection.close()


def new_record(index: int) -> CallRecord:
    return CallRecord(
        org_id=ORGS[index % len(ORGS)],
        user_id=str(ORGS[index % len(ORGS)]),
        user_label="Bench client",
        vendor="bench",
        tool="lookup_site",
        source="mcp",
        status="success",
        duration_ms=7,
        vendor_ms=5,
        credential_scope="organization",
        client_id=str(ORGS[index % len(ORGS)]),
        client_name="Bench client",
        ip_address="203.0.113.7",
        request_id=uuid.uuid4().hex,
        request_bytes=140,
        response_bytes=1000,
    )


def jetstream(broker: Broker, rows_per_message: int) -> Engine:
    unit = "row" if rows_per_message == 1 else "batch"
    return Engine(
        f"{broker.name}, a message a {unit}",
        lambda: JetStreamConnection(broker.port, rows_per_message=rows_per_message),
        lambda: [broker.pid],
    )


async def measure(engine: Engine, writers: int, seconds: float) -> Figure:
    writer = AuditWriter(open_connection=engine.open)
    times_s: list[float] = []
    ends_s = perf_counter() + WARM_UP_S

    async def write_until_end(index: int) -> None:
        while (began_s := perf_counter()) < ends_s:
            await writer.write(new_record(index))
            times_s.append(perf_counter() - began_s)

    await asyncio.gather(*map(write_until_end, range(writers)))
    times_s.clear()
    meter = CpuMeter({str(pid): pid for pid in engine.pids() if psutil.pid_exists(pid)})
    own_before_s = _own_cpu_s()
    meter.start()
    began_s = perf_counter()
    ends_s = began_s + seconds
    await asyncio.gather(*map(write_until_end, range(writers)))
    took_s, engine_s, own_s = perf_counter() - began_s, meter.stop().cpu_s, _own_cpu_s() - own_before_s
    await writer.aclose()
    rows, ordered = len(times_s), sorted(times_s)
    return Figure(
        engine.name,
        writers,
        rows / took_s,
        percentile(ordered, 50) * 1000,
        percentile(ordered, 99) * 1000,
        own_s / rows * 1e6,
        sum(engine_s.values()) / rows * 1e6 if engine_s else math.nan,
    )


def _own_cpu_s() -> float:
    times = psutil.Process().cpu_times()
    return float(times.user + times.system)


async def kill_under_load(broker: Broker) -> str:
    """One sentence about the acknowledged rows. Raises: BenchFailed when one is lost."""
    writer = AuditWriter(open_connection=jetstream(broker, 1).open)
    acknowledged: list[uuid.UUID] = []
    unavailable, over = 0, asyncio.Event()

    async def write_until_over(index: int) -> None:
        nonlocal unavailable
        while not over.is_set():
            record = new_record(index)
            try:
                await writer.write(record)
            except AuditUnavailable:
                unavailable += 1
            else:
                acknowledged.append(record.id)

    load = [asyncio.ensure_future(write_until_over(index)) for index in range(max(WRITERS))]
    for _ in range(3):
        enough = len(acknowledged) + 1000
        while len(acknowledged) < enough:
            await asyncio.wait(load, timeout=0.02)
        await asyncio.to_thread(broker.kill_and_start)
    over.set()
    await asyncio.gather(*load)
    await writer.aclose()
    found = await asyncio.to_thread(broker.row_ids)
    lost, doubled = set(acknowledged) - set(found), len(found) - len(set(found))
    said = f"{len(acknowledged):,} rows acknowledged, {len(lost)} lost, {doubled} stored twice, {unavailable} refused"
    if lost:
        raise BenchFailed(said)
    return said


@contextlib.contextmanager
def postgresql(server: str) -> Iterator[list[Engine]]:
    with own_database(server) as url:
        os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", "audit", verbosity=0)
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE copied (LIKE audit_requestauditentry INCLUDING DEFAULTS)")

        def pids() -> list[int]:
            with psycopg.connect(url) as connection:
                found = connection.execute(
                    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
                return [pid for (pid,) in found]

        yield [
            Engine("PostgreSQL, the gateway's statement", open_audit_connection, pids),
            Engine("PostgreSQL, COPY without an index", lambda: CopyConnection(url), pids),
        ]


def measured(engines: Sequence[Engine], rounds: int, seconds: float) -> list[Figure]:
    """Engines follow each other closely, and each round begins with another one."""
    found = []
    for round_number in range(rounds):
        start = round_number % len(engines)
        for writers in WRITERS:
            for engine in [*engines[start:], *engines[:start]]:
                found.append(uvloop.run(measure(engine, writers, seconds)))
                sys.stderr.write(f"{engine.name}, {writers}: {found[-1].rows_per_s:,.0f} rows/s\n")
    return found


def rendered(figures: Sequence[Figure]) -> str:
    """Pure: medians of the rounds."""
    rows = [["writers", "engine", "rows/s", "p50 ms", "p99 ms", "writer us/row", "engine us/row"]]
    names = list(dict.fromkeys(figure.engine for figure in figures))
    for writers in WRITERS:
        for name in names:
            rounds = [figure for figure in figures if (figure.engine, figure.writers) == (name, writers)]
            values = [median([getattr(one, field) for one in rounds]) for field in Figure.__struct_fields__[2:]]
            rows.append([str(writers), name, *map(number, values)])
    return table(rows, text_columns=2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    server, program = os.environ.get("BENCH_DATABASE_URL", ""), shutil.which(os.environ.get("NATS_SERVER", ""))
    if not server.startswith("postgres") or program is None:
        parser.error("BENCH_DATABASE_URL must name a PostgreSQL server, and NATS_SERVER the program nats-server.")
    placement = place(os.sched_getaffinity(0))
    conditions = [*facts(), _version(program)]
    with tempfile.TemporaryDirectory(prefix="gateway-spike-") as name:
        folder = Path(name)
        conditions.append(
            f"Brokers' files on {file_system(folder)}; the writers have a core for themselves where there are two"
        )
        # The server's writers share the other cores with it, as a gateway and its database on one computer do.
        with postgresql(server) as engines, Processes(ROOT, folder) as processes:
            brokers = [Broker(processes, placement, program, folder / sync, sync) for sync in SYNC]
            if placement.target:
                os.sched_setaffinity(0, placement.target)
            engines += [jetstream(broker, rows) for broker in brokers for rows in (1, MAX_BATCH)]
            figures = measured(engines, options.rounds, options.seconds)
            said = [f"Killed three times, {broker.name}: {uvloop.run(kill_under_load(broker))}" for broker in brokers]
    sys.stdout.write("\n".join([*conditions, "", rendered(figures), "", *said]) + "\n")
    if options.json is not None:
        options.json.write_bytes(
            msgspec.json.format(msgspec.json.encode({"head": conditions, "figures": figures, "kills": said}))
        )
    return 0


def _version(program: str) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
