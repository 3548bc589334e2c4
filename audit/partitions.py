"""Partitions of the request log on PostgreSQL: one for each month of opening, by range of the id.

An id begins with its time (UUID version 7), so the primary key stays the id alone, and an outcome finds its intent.
A partition for everything before the first month holds the log of earlier releases. The default partition takes rows
that no other one takes, so that a call never fails for want of a partition. docs/decisions/0041
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from django.db import OperationalError, connection, transaction

from audit.stream_position import REQUEST_TABLE as TABLE
from gateway.lib import clock
from gateway.lib.ids import first_log_id_at, time_of

MONTHS_AHEAD = 3
# A count is fast where vacuum has seen that all rows of a page are visible. Without these settings vacuum comes to a
# table that only grows when a fifth of it is new.
SETTINGS = "autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 2000"
DEFAULT = f"{TABLE}_default"
# A statement that waits for the table's lock holds up the calls behind it, so it gives up soon and tries again.
LOCK_TIMEOUT_MS = 150
LOCK_ATTEMPTS = 40
LOCK_PAUSE_S = 0.25
_LOCK_NOT_AVAILABLE = "55P03"
_BOUNDS = re.compile(r"FROM \((?P<low>MINVALUE|'[0-9a-f-]{36}')\) TO \('(?P<high>[0-9a-f-]{36})'\)")
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Partition:
    """Holds the rows from `start` (None: from the first) to before `end`, in UTC."""

    name: str
    start: datetime | None
    end: datetime


@dataclass(frozen=True, slots=True)
class Size:
    """Of one partition with its indexes; `rows` is the planner's estimate."""

    name: str
    rows: int
    mebibytes: float


def is_partitioned() -> bool:
    return connection.vendor == "postgresql"


def month_of(moment: datetime, later: int = 0) -> datetime:
    """Returns the first instant of the month, `later` months on, in UTC."""
    months = moment.year * 12 + moment.month - 1 + later
    return datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC)


def partitions() -> list[Partition]:
    """Returns the partitions in the order of time, without the default one."""
    sql = (
        "SELECT child.relname, pg_get_expr(child.relpartbound, child.oid) FROM pg_inherits"
        " JOIN pg_class child ON child.oid = inhrelid WHERE inhparent = %s::regclass"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [TABLE])
        found = [(name, _BOUNDS.search(bounds)) for name, bounds in cursor.fetchall()]
    return sorted(
        (Partition(name, _moment(match["low"]), _moment(match["high"])) for name, match in found if match),  # type: ignore[arg-type]
        key=lambda each: each.end,
    )


def sizes() -> list[Size]:
    """Returns the sizes of all partitions, by name."""
    sql = (
        "SELECT relname, greatest(reltuples, 0)::bigint, pg_total_relation_size(oid) / 1048576.0 FROM pg_inherits"
        " JOIN pg_class ON oid = inhrelid WHERE inhparent = %s::regclass ORDER BY relname"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [TABLE])
        return [Size(name, rows, float(mebibytes)) for name, rows, mebibytes in cursor.fetchall()]


def make_ahead(now: datetime, months: int = MONTHS_AHEAD) -> list[str]:
    """Makes the partitions of this month and the next `months`, where missing. Returns their names."""
    made, known = [], partitions()
    for later in range(months + 1):
        start, end = month_of(now, later), month_of(now, later + 1)
        if _has_month(known, start):
            continue
        name = f"{TABLE}_{start:%Y_%m}"
        with_lock(lambda start=start, end=end, name=name: _attach(Partition(name, start, end)))  # type: ignore[misc]
        made.append(name)
    return made


def months_ahead(now: datetime) -> int:
    """Counts the months after this one that have partitions, up to the first that has none."""
    known, later = partitions(), 1
    while _has_month(known, month_of(now, later)):
        later += 1
    return later - 1


def drop_before(moment: datetime) -> list[str]:
    """Drops the partitions whose rows are all older than `moment`. Returns their names.

    One whose lock is not free stays until the next run.
    """
    dropped = []
    for partition in partitions():
        if partition.end > moment:
            break
        try:
            with_lock(lambda name=partition.name: _drop(name))  # type: ignore[misc]
        except OperationalError as fault:
            if not _is_lock_fault(fault):
                raise
            logger.warning("audit.partition_not_dropped", name=partition.name)
        else:
            dropped.append(partition.name)
    return dropped


def _has_month(known: Iterable[Partition], start: datetime) -> bool:
    return any((each.start is None or each.start <= start) and each.end > start for each in known)


def default_rows(limit: int = 1_000) -> int:
    """Counts the rows that found no partition of their own, up to `limit`."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM (SELECT 1 FROM {DEFAULT} LIMIT %s) AS few", [limit])  # noqa: S608
        return int(cursor.fetchone()[0])


def with_lock(change: Callable[[], None], sleep: Callable[[float], None] = time.sleep) -> None:
    """Runs `change` in a transaction that waits for a lock only briefly, and again. Raises: OperationalError."""
    for attempt in range(1, LOCK_ATTEMPTS + 1):
        try:
            with transaction.atomic(), _brief_lock_timeout():
                change()
            return
        except OperationalError as fault:
            if not _is_lock_fault(fault) or attempt == LOCK_ATTEMPTS:
                raise
            logger.info("audit.partition_lock_busy", attempt=attempt)
            sleep(LOCK_PAUSE_S)


@contextmanager
def _brief_lock_timeout() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
    yield


def _attach(partition: Partition) -> None:
    low, high = first_log_id_at(partition.start or clock.EPOCH), first_log_id_at(partition.end)
    with connection.cursor() as cursor:
        # A row that reached the default partition after its rows have moved would make the last statement fail.
        cursor.execute(f"LOCK TABLE {DEFAULT} IN ACCESS EXCLUSIVE MODE")
        cursor.execute(
            f'CREATE TABLE "{partition.name}" (LIKE {TABLE} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) WITH ({SETTINGS})'
        )
        # Rows that came before their partition was made.
        cursor.execute(
            f"WITH moved AS (DELETE FROM {DEFAULT} WHERE id >= %s AND id < %s RETURNING *)"  # noqa: S608
            f' INSERT INTO "{partition.name}" SELECT * FROM moved',
            [low, high],
        )
        cursor.execute(
            f"ALTER TABLE {TABLE} ATTACH PARTITION \"{partition.name}\" FOR VALUES FROM ('{low}') TO ('{high}')"
        )


def _drop(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f'DROP TABLE "{name}"')


def _is_lock_fault(fault: OperationalError) -> bool:
    return getattr(fault.__cause__, "sqlstate", "") == _LOCK_NOT_AVAILABLE


def _moment(bound: str) -> datetime | None:
    return None if bound == "MINVALUE" else time_of(uuid.UUID(bound.strip("'")))
