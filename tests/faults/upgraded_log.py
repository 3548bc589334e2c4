"""The request log of the release before is partitioned under load: `python -m tests.faults.upgraded_log`.

[--rows 5000000]. A writer of that release goes on meanwhile. Printed is how long the migration took and how long
a commit waited at most; the exit code is 1 when a commit failed, or a row is missing afterwards. Needs DATABASE_URL of
a PostgreSQL that may be used: a database of its own is made there and dropped.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

LAST_OF_BEFORE = "0001_squashed_0003_index_of_rejected_credentials"
COLUMNS = (
    "id, timestamp, org_id, user_id, user_label, vendor, tool, source, status, error_code, duration_ms, vendor_ms,"
    " credential_scope, credential_name, cached, client_id, client_name, ip_address, request_id, request_bytes,"
    " response_bytes"
)
# The statement of the release before.
KEEP = (
    f"INSERT INTO audit_requestauditentry ({COLUMNS}) VALUES (%s, now(), %s, 'u', 'Ana', 'acme', 't', 'mcp', %s, '', 1,"
    " 1, '', '', false, '', '', '', 'r', 1, 1) ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status"
    " WHERE audit_requestauditentry.status = 'unknown'"
)
SEED = (
    f"INSERT INTO audit_requestauditentry ({COLUMNS}) SELECT"
    " (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7000a000' || lpad(to_hex(n), 12, '0'))::uuid,"
    " at, ('00000000-0000-4000-8000-' || lpad(to_hex(n %% 1000), 12, '0'))::uuid, 'user-' || n %% 50, 'Ana',"
    " 'v-' || n %% 19, 't-' || n %% 71, 'mcp', CASE n %% 20 WHEN 0 THEN 'error' ELSE 'success' END, '', 5, 4, 'org',"
    " '', false, 'client', 'Client', '127.0.0.1', gen_random_uuid()::text, 100, 100"
    " FROM (SELECT n, now() - interval '300 days' * (1 - n / %(rows)s::float) AS at"
    "  FROM generate_series(%(first)s::bigint, %(last)s) AS n) AS numbers"
)
SEEDED_AT_ONCE = 500_000


@dataclass
class Writer:
    """Commits an intent and its outcome, again and again."""

    commit: Callable[[uuid.UUID, str], None]
    written: list[uuid.UUID] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    longest_s: float = 0.0
    is_over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        from gateway.lib.ids import new_log_id

        while not self.is_over.is_set():
            row_id = new_log_id()
            for status in ("unknown", "success"):
                began_s = time.monotonic()
                try:
                    self.commit(row_id, status)
                except Exception as fault:
                    self.faults.append(f"{type(fault).__name__}: {fault}")
                self.longest_s = max(self.longest_s, time.monotonic() - began_s)
            self.written.append(row_id)
            time.sleep(0.002)


@dataclass
class Report:
    rows: int = 0
    seconds: float = 0.0
    written: int = 0
    missing: int = 0
    unfinished: int = 0
    longest_s: float = 0.0
    faults: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        return self.written > 0 and not (self.missing or self.unfinished or self.faults)

    def line(self) -> str:
        return (
            f"{self.rows:,} rows: {self.seconds:.1f} s; {self.written:,} calls meanwhile, longest commit "
            f"{self.longest_s * 1000:.0f} ms, {len(self.faults)} faults, {self.missing} missing, "
            f"{self.unfinished} unfinished {self.faults[:1] or ''}"
        )


def upgrade(database: Any, rows: int, *, interrupted: bool = False) -> Report:
    """`database` is a scratch database on PostgreSQL, with the whole schema of this release.

    `interrupted`: a first attempt ends in the middle, as when its process is killed.
    """
    with closing(database.connect()) as connection:
        _remake_as_before(database, connection, rows)
        before = Writer(lambda row_id, status: connection.execute(KEEP, [row_id, uuid.UUID(int=1), status]))
        thread = threading.Thread(target=before.run)
        thread.start()
        began_s = time.monotonic()
        try:
            if interrupted:
                _migrate_and_fail(database, connection)
            _migrate(database)
        finally:
            took_s = time.monotonic() - began_s
            time.sleep(0.5)  # the writer of the release before goes on for a while
            before.is_over.set()
            thread.join()
        report = Report(rows, took_s, len(before.written), longest_s=before.longest_s, faults=before.faults)
        log = "audit_requestauditentry"
        kept = f"SELECT count(*), count(*) FILTER (WHERE status <> 'success') FROM {log} WHERE id = ANY(%s)"
        found, report.unfinished = connection.execute(kept, [before.written]).fetchone()
        total = connection.execute(f"SELECT count(*) FROM {log}").fetchone()[0]
        report.missing = len(before.written) - found + rows - (total - found)
        return report


def _remake_as_before(database: Any, connection: Any, rows: int) -> None:
    named = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename LIKE 'audit\\_%%'"
    for (table,) in connection.execute(named).fetchall():
        connection.execute(f'DROP TABLE IF EXISTS "{table}" CASCADE')
    connection.execute("DELETE FROM django_migrations WHERE app = 'audit'")
    _migrate(database, LAST_OF_BEFORE)
    for first in range(0, rows, SEEDED_AT_ONCE):
        last = min(first + SEEDED_AT_ONCE, rows) - 1
        connection.execute(SEED, {"rows": rows, "first": first, "last": last})


def _migrate_and_fail(database: Any, connection: Any) -> None:
    """The name of the first partition is taken, so the last step fails; the rest has been made."""
    connection.execute("CREATE TABLE audit_requestauditentry_before (id uuid)")
    try:
        _migrate(database)
    except subprocess.CalledProcessError:
        connection.execute("DROP TABLE audit_requestauditentry_before")
    else:
        raise RuntimeError("the first attempt was to fail")


def _migrate(database: Any, *to: str) -> None:
    command = [sys.executable, "manage.py", "migrate", "audit", *to, "--skip-checks", "--verbosity=0"]
    subprocess.run(command, env=database.environment(), check=True, timeout=3_600)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    options = parser.parse_args()
    django.setup()
    from tests.faults.scratch_database import scratch_of_a_report

    with scratch_of_a_report("postgresql") as database:
        report = upgrade(database, options.rows)
    print(report.line())  # noqa: T201
    return 0 if report.is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
