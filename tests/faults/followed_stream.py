"""Writers and a reader of the request log are killed again and again: `python -m tests.faults.followed_stream`.

[--seconds 600] [--writers 4] [--seed 1]. On PostgreSQL, which DATABASE_URL names, transactions of several writers
commit late and in any order; on SQLite there is one writer. The reader notes each row that the stream hands out, in the
transaction that moves the cursor. The exit code is 1 unless it noted every final row exactly once, in order.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django
from django.db import OperationalError

from audit.audit_connection import AuditConnection, open_audit_connection
from audit.call_record import CallRecord

CURSOR = "follower"
FINAL_AFTER = timedelta(seconds=2)  # outcomes come within a second, or never
NOTED = "CREATE TABLE noted (number {serial}, id {id}, position bigint)"


@dataclass
class Report:
    written: int = 0  # final rows
    noted: int = 0
    missing: int = 0
    repeated: int = 0
    out_of_order: int = 0
    kills: dict[str, int] = field(default_factory=lambda: {"writer": 0, "reader": 0})

    @property
    def is_exact(self) -> bool:
        return self.written == self.noted > 0 and not (self.missing or self.repeated or self.out_of_order)

    def line(self) -> str:
        return (
            f"{self.written:,} final rows, {self.noted:,} noted; {self.missing} missing, {self.repeated} repeated, "
            f"{self.out_of_order} out of order; killed: {self.kills['writer']} writers, {self.kills['reader']} readers"
        )


class _Patient:
    """Opens a connection and commits again when a busy machine takes longer than a timeout of the connection."""

    def __init__(self) -> None:
        self._connection: AuditConnection | None = None

    def commit(self, records: Sequence[CallRecord]) -> None:
        while True:
            try:
                if self._connection is None:
                    self._connection = open_audit_connection()
                self._connection.commit(records)
            except (TimeoutError, OperationalError, sqlite3.OperationalError) as fault:
                if not isinstance(fault, TimeoutError) and "locked" not in str(fault):
                    raise
                self._close()
            else:
                return

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def write(seed: int) -> None:
    """Adds rows of every kind until it is killed."""
    from django.db import connection, transaction
    from msgspec.structs import asdict, replace

    from audit.models import RequestAuditEntry
    from audit.stream_position import NewPosition
    from gateway.lib import clock
    from tests.api.audit.rows import ORG, OTHER_ORG, make_record

    chance = random.Random(seed)
    log = _Patient()
    begun: list[Any] = []
    table = RequestAuditEntry._meta.db_table
    for number in itertools.count():
        record = make_record(timestamp=clock.now(), org_id=(ORG, OTHER_ORG)[number % 2], request_id=f"{seed}-{number}")
        kind = chance.random() if number else 0.0
        if kind < 0.5:
            log.commit(
                [
                    replace(record, id=make_record(timestamp=record.timestamp).id)
                    for _ in range(chance.choice((1, 1, 5)))
                ]
            )
        elif kind < 0.7:
            intent = replace(record, status="unknown")
            log.commit([intent])
            if chance.random() < 0.8:  # the process of the others dies before the outcome
                begun.append(intent)
        elif kind < 0.85 and begun:
            log.commit([replace(begun.pop(0), status="success", duration_ms=3)])
        elif connection.vendor == "postgresql":
            with transaction.atomic():
                RequestAuditEntry.objects.create(**asdict(record), position=NewPosition(table))
                time.sleep(chance.random() * 0.2)
                transaction.set_rollback(chance.random() < 0.2)
        if number == 0:
            _tell_that_it_works()
        time.sleep(chance.random() * 0.01)


def _tell_that_it_works() -> None:
    """One line for the process that kills this one: it waits for the first row, however long the start takes."""
    print(flush=True)  # noqa: T201


def read(seed: int) -> None:
    """Notes what the stream hands out until it is killed."""
    from audit.stream import finish_stale_rows

    chance = random.Random(seed)
    has_told = False
    while True:
        try:
            finish_stale_rows(_later(timedelta(0)))
            _note(chance.randint(1, 200), chance.random() * 0.05)
            if not has_told:
                _tell_that_it_works()
                has_told = True
        except OperationalError as fault:
            if "locked" not in str(fault):
                raise
        time.sleep(chance.random() * 0.02)


def _later(more: timedelta) -> Any:
    from audit.stream import FINAL_AFTER_S
    from gateway.lib import clock

    return clock.now() + timedelta(seconds=FINAL_AFTER_S) - FINAL_AFTER + more


def _note(limit: int, pause_s: float) -> int:
    from django.db import connection, transaction

    from audit.stream import Log, take

    with transaction.atomic(), connection.cursor() as cursor:
        batch = take(CURSOR, Log.REQUESTS, limit)
        if batch is None:
            return 0
        values = [(row.id.hex, row.position) for row in batch.rows]
        cursor.executemany("INSERT INTO noted (id, position) VALUES (%s, %s)", values)
        time.sleep(pause_s)  # a kill comes here, too
        return len(batch.rows)


class _Crew:
    """One process in a role, begun again after each kill."""

    def __init__(self, role: str, environment: dict[str, str], seeds: itertools.count[int]) -> None:
        self.role = role
        self._environment, self._seeds = environment, seeds
        self.process = self._begin()

    def _begin(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.faults.followed_stream", "--role", self.role]
        command += ["--seed", str(next(self._seeds))]
        return subprocess.Popen(command, env=self._environment, stdout=subprocess.PIPE)

    def kill(self) -> None:
        """Ends the process at whatever it does once it is at work."""
        told = self.process.stdout
        assert told is not None
        told.readline()
        if (code := self.process.poll()) is not None:
            raise RuntimeError(f"a {self.role} has ended by itself with {code}")
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)
        told.close()

    def replace(self) -> None:
        self.kill()
        self.process = self._begin()


def follow(database: Any, *, seconds: float, writers: int, seed: int) -> Report:
    """`database` is a migrated scratch database. Writers and one reader run, and are killed, for so many seconds."""
    report, chance, seeds = Report(), random.Random(seed), itertools.count(seed * 1_000)
    environment = database.environment()
    with closing(database.connect()) as connection:
        kinds = ("serial", "uuid") if database.is_postgresql else ("INTEGER PRIMARY KEY", "char(32)")
        connection.execute(NOTED.format(serial=kinds[0], id=kinds[1]))
        crews = [_Crew("writer", environment, seeds) for _ in range(writers if database.is_postgresql else 1)]
        crews.append(_Crew("reader", environment, seeds))
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at or min(report.kills.values()) == 0:
            time.sleep(0.5 + 2 * chance.random())
            crew = crews[-1] if sum(report.kills.values()) % 2 else chance.choice(crews[:-1])
            crew.replace()
            report.kills[crew.role] += 1
        for crew in crews:
            crew.kill()
        subprocess.run(
            [sys.executable, "-m", "tests.faults.followed_stream", "--role", "last-reader"],
            env=environment,
            check=True,
            timeout=600,
        )
        return _compared(connection, report)


def read_the_rest() -> None:
    """Makes all rows final and notes all that are left."""
    from django.db.models import Max

    from audit.models import RequestAuditEntry
    from audit.stream import Log, finish_stale_rows, place_of

    while finish_stale_rows(_later(timedelta(hours=1))):
        pass
    last = RequestAuditEntry.objects.aggregate(last=Max("position"))["last"] or 0
    while _note(1_000, 0.0) or place_of(CURSOR, Log.REQUESTS).position < last:
        pass


def _compared(connection: Any, report: Report) -> Report:
    log = "audit_requestauditentry"
    report.written = _count(connection, f"SELECT count(*) FROM {log} WHERE position IS NOT NULL")
    report.noted = _count(connection, "SELECT count(*) FROM noted")
    report.repeated = report.noted - _count(connection, "SELECT count(DISTINCT id) FROM noted")
    report.missing = _count(connection, f"SELECT count(*) FROM {log} WHERE id NOT IN (SELECT id FROM noted)")
    ordered = "SELECT position, id, lag(position) OVER w AS before, lag(id) OVER w AS id_before FROM noted"
    ordered = f"SELECT count(*) FROM ({ordered} WINDOW w AS (ORDER BY number)) AS pairs"
    report.out_of_order = _count(connection, f"{ordered} WHERE (before, id_before) >= (position, id)")
    return report


def _count(connection: Any, sql: str) -> int:
    return int(connection.execute(sql).fetchone()[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--role", choices=("writer", "reader", "last-reader"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    django.setup()
    if options.role is not None:
        {"writer": lambda: write(options.seed), "reader": lambda: read(options.seed), "last-reader": read_the_rest}[
            options.role
        ]()
        return 0
    from tests.faults.scratch_database import BACKENDS, scratch_of_a_report

    with scratch_of_a_report(BACKENDS[-1]) as database:
        report = follow(database, seconds=options.seconds, writers=options.writers, seed=options.seed)
    print(report.line())  # noqa: T201
    return 0 if report.is_exact else 1


if __name__ == "__main__":
    sys.exit(main())
