"""One statement over everything that usage knows of a period: roll-ups, and the rows that no roll-up has yet.

One statement sees one state of the database, so a row is counted in a roll-up or beside it, and never in both.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from audit.call_status import CallSource
from audit.models import StreamCursor
from audit.sql_values import first_id, uuid_value
from audit.stream import FINAL_AFTER_S
from audit.usage import log_sql, row_ids
from audit.usage.counters import add_functions
from audit.usage.log_sql import is_in
from audit.usage.period import Parts
from audit.usage.rollup import CONSUMER, LOG
from audit.usage_keys import COUNTED, TIMED
from audit.usage_models import UsageCount, UsageDay, UsageDuration, UsageLabel
from gateway.lib import ids
from gateway.lib.clock import EPOCH

# A row becomes final within FINAL_AFTER_S, or a little later when the process that finishes it is busy.
LATEST = timedelta(seconds=FINAL_AFTER_S + 300)
_CURSORS = StreamCursor._meta.db_table
_COUNTS, _DURATIONS, _LABELS, _READY_DAYS = (
    model._meta.db_table for model in (UsageCount, UsageDuration, UsageLabel, UsageDay)
)
_READ = "day, vendor, tool, user_id, source, outcome, calls, duration_ms, response_bytes"
_NO_ID = {"postgresql": "CAST(%s AS uuid)", "sqlite": "%s"}
_BEYOND = "(position, id) > (SELECT position, row_id FROM place)"
# Enough to sum a large organization's rows by several keys at once; for one transaction.
_MEMORY = "SET LOCAL work_mem = '32MB'"

COUNTED_ONLY, TIMED_ONLY = is_in(COUNTED), is_in(TIMED)


class Level(NamedTuple):
    """A key that the rows of the period are summed by. `mark` is in the key of no other level of the statement."""

    name: str
    mark: str
    key: tuple[str, ...]


DAYS = Level("day", "source", ("day", "source", "outcome"))
TOOLS = Level("tool", "tool", ("vendor", "tool", "outcome"))
# `caller`: NULL in rows that are no calls. `unloaded`: the day of a command-line call, for which the caller did not
# load the vendor's list.
CALLERS = Level("caller", "caller", ("vendor", "caller", "unloaded"))
PEOPLE = Level("person", "caller", ("caller",))
# Of a row, for the key of a level.
_COMPUTED = {
    "caller": f"CASE WHEN {COUNTED_ONLY} THEN user_id END AS caller",
    "unloaded": f"CASE WHEN source = '{CallSource.CLI}' THEN day END AS unloaded",
}
_KEYS = ("day", "vendor", "tool", "source", "outcome", "caller", "unloaded")
# PostgreSQL adds bigint as numeric, which takes several times as long. Whole numbers are exact up to 2 to the 53rd.
_SUMS = ", ".join(
    f"CAST(SUM(CAST({name} AS float8)) AS bigint) AS {name}" for name in ("calls", "duration_ms", "response_bytes")
)
CALLED = "level = 'caller' AND caller IS NOT NULL"
_CALLERS = (
    "caller AS MATERIALIZED (SELECT caller AS user_id, CAST(SUM(calls) AS bigint) AS calls"  # noqa: S608
    f" FROM sums WHERE {CALLED} GROUP BY caller)"
)


class Group(NamedTuple):
    """One row of an answer: `kind` names the branch of the statement, the rest is the branch's own."""

    kind: str
    first: str
    second: str
    third: str
    calls: int
    amount: int


def groups(
    org_id: uuid.UUID,
    parts: Parts,
    levels: Sequence[Level],
    branches: Iterable[str],
    *,
    only: Mapping[str, str] | None = None,
    ready: row_ids.Range | None = None,
) -> list[Group]:
    """Runs the branches, SELECTs of Group's columns, in one statement. `only`: values that columns have.

    `ready`: one more branch, of this name, has the versions of the ready days in this range of ids
    for which no row waits.

    They may read five tables. `sums`: the period, by the keys of `levels`; `level` names that of a row. `caller`: calls
    by `user_id`. `bucket`: timed calls by `vendor` and `bucket`. `loose`: rows of the log that no roll-up of the period
    has. `label`: the labels of all callers.
    """
    builder = _Builder(org_id, only or {})
    tables = [builder.place(), builder.loose(parts), *builder.sums(parts, levels), _CALLERS]
    tables += [builder.buckets(parts), builder.labels()]
    branches = [*branches, builder.versions(ready)] if ready else branches
    add_functions()
    with _reading(is_large=not only) as cursor:
        cursor.execute(f"WITH {', '.join(tables)} {' UNION ALL '.join(branches)}", builder.values)
        return [Group._make(row) for row in cursor.fetchall()]


@contextlib.contextmanager
def _reading(*, is_large: bool) -> Iterator[CursorWrapper]:
    """A transaction only where one has a setting of its own: on SQLite it would keep every writer waiting."""
    if not is_large or connection.vendor != "postgresql":
        with connection.cursor() as cursor:
            yield cursor
        return
    with transaction.atomic(savepoint=False), connection.cursor() as cursor:
        cursor.execute(_MEMORY)
        yield cursor


def _in_one_pass(levels: Sequence[Level]) -> str:
    """The rows of `part` by the keys of all levels."""
    keyed = {name for level in levels for name in level.key}
    columns = ", ".join(name if name in keyed else f"NULL AS {name}" for name in _KEYS)
    names = " ".join(f"WHEN GROUPING({level.mark}) = 0 THEN '{level.name}'" for level in levels)
    keys = ", ".join(f"({', '.join(level.key)})" for level in levels)
    return (
        f"sums AS MATERIALIZED (SELECT CASE {names} END AS level, {columns}, {_SUMS}"  # noqa: S608
        f" FROM part GROUP BY GROUPING SETS ({keys}))"
    )


def branch(
    kind: str,
    *columns: str,
    table: str = "sums",
    where: str = "",
    amount: str = "0",
    by: str = "",
    latest: str = "",
    calls: str = "CAST(SUM(calls) AS bigint)",
) -> str:
    """A SELECT of Group's columns, grouped by `columns`, up to three texts.

    `by`: a number to group by, as `amount`. `latest`: ids, of which the greatest is the third text.
    """
    # Ids are times, also as texts.
    texts = [*columns, f"MAX(CAST({latest} AS text))"] if latest else [*columns, "''", "''", "''"][:3]
    chosen = f" WHERE {where}" if where else ""
    grouped = ", ".join([*columns, by] if by else columns)
    return (
        f"SELECT '{kind}', {', '.join(texts)}, {calls}, {by or amount} FROM {table}{chosen}"  # noqa: S608
        f" GROUP BY {grouped}"
    )


class _Builder:
    """Texts of the statement's tables; `values` are its parameters, in the order in which the texts were made."""

    def __init__(self, org_id: uuid.UUID, only: Mapping[str, str]) -> None:
        self.values: list[Any] = []
        self._org, self._org_id, self._only = org_id, uuid_value(org_id), only

    def place(self) -> str:
        # Before the first batch there is no cursor.
        self.values += [CONSUMER, LOG.value, uuid_value(ids.NO_ID)]
        cursor = f"SELECT position, row_id FROM {_CURSORS} WHERE name = %s AND log = %s"  # noqa: S608
        return f"place AS ({cursor} UNION ALL SELECT -1, {_NO_ID[connection.vendor]} ORDER BY 1 DESC LIMIT 1)"

    def loose(self, parts: Parts) -> str:
        chosen = [self._log(low, high) for low, high in parts.edges]
        if parts.rolled is not None:
            begin, end = parts.rolled
            chosen.append(f"{self._log(max(begin, _tail_begin()), end)} AND {_BEYOND}")
        return f"loose AS MATERIALIZED ({' UNION ALL '.join(chosen) or self._log(EPOCH, EPOCH)})"

    def sums(self, parts: Parts, levels: Sequence[Level]) -> list[str]:
        if connection.vendor == "postgresql":
            return [self._part(parts), _in_one_pass(levels)]
        return [f"sums AS MATERIALIZED ({' UNION ALL '.join(self._level(parts, level) for level in levels)})"]

    def _part(self, parts: Parts) -> str:
        rows = f"{self._rolled(_COUNTS, _READ, parts, self._only)}SELECT {_READ} FROM loose"  # noqa: S608
        # Not materialized where it is read once, which PostgreSQL decides itself: it is the largest table.
        return f"part AS (SELECT {_READ}, {', '.join(_COMPUTED.values())} FROM ({rows}) AS read)"  # noqa: S608

    def _level(self, parts: Parts, level: Level) -> str:
        """Each store is summed by itself, and the sums together: SQLite would copy all rows of both to sum them."""
        key = ", ".join(level.key)
        columns = f"{', '.join(_COMPUTED.get(name, name) for name in level.key)}, {_SUMS}"
        rolled = self._rolled(_COUNTS, columns, parts, self._only, grouped=f" GROUP BY {key}")
        stores = f"{rolled}SELECT {columns} FROM loose GROUP BY {key}"  # noqa: S608
        shown = ", ".join(name if name in level.key else f"NULL AS {name}" for name in _KEYS)
        return f"SELECT '{level.name}' AS level, {shown}, {_SUMS} FROM ({stores}) GROUP BY {key}"  # noqa: S608

    def buckets(self, parts: Parts) -> str:
        only = {name: value for name, value in self._only.items() if name == "vendor"}
        rolled = self._rolled(_DURATIONS, "vendor, bucket, calls", parts, only)
        # The database counts these too: while no worker rolls up, they are many.
        loose = f"SELECT vendor, {log_sql.BUCKET[connection.vendor]}, calls FROM loose WHERE {TIMED_ONLY}"  # noqa: S608
        return f"bucket (vendor, bucket, calls) AS ({rolled}{loose})"

    def labels(self) -> str:
        self.values.append(self._org_id)
        chosen = f"SELECT user_id, label, row_id FROM {_LABELS} WHERE org_id = %s"  # noqa: S608
        return f"label AS ({chosen})"

    def versions(self, ready: row_ids.Range) -> str:
        self.values += [self._org_id, *map(uuid_value, ready)]
        # A caller who is counted on the day may be one of a waiting row.
        complete = "version IS NOT NULL AND day NOT IN (SELECT day FROM loose)"
        chosen = f"org_id = %s AND id >= %s AND id <= %s AND {complete}"
        return f"SELECT 'ready', CAST(version AS text), '', '', 0, 0 FROM {_READY_DAYS} WHERE {chosen}"  # noqa: S608

    def _log(self, low: datetime, high: datetime) -> str:
        self.values += [self._org_id, first_id(low), first_id(high), *self._only.values()]
        day, outcome = log_sql.DAY[connection.vendor], log_sql.OUTCOME
        columns = f"{day} AS day, vendor, tool, user_id, source, {outcome} AS outcome"
        sums = "count AS calls, duration_ms, response_bytes, id, user_label"
        final = f"org_id = %s AND id >= %s AND id < %s AND position IS NOT NULL{_equal(self._only)}"
        return f"SELECT {columns}, {sums} FROM {log_sql.TABLE} WHERE {final}"  # noqa: S608

    def _rolled(self, table: str, columns: str, parts: Parts, only: Mapping[str, str], *, grouped: str = "") -> str:
        """One SELECT for each part, each with UNION ALL behind it."""
        chosen = [row_ids.of_days(self._org, *each) for each in parts.days]
        chosen += [row_ids.of_hours(self._org, each.day, each.first, each.last) for each in parts.hours]
        for rows in chosen:
            self.values += [self._org_id, *map(uuid_value, rows), *only.values()]
        condition = f"org_id = %s AND id >= %s AND id <= %s{_equal(only)}"
        return f"SELECT {columns} FROM {table} WHERE {condition}{grouped} UNION ALL " * len(chosen)  # noqa: S608


def _equal(only: Mapping[str, str]) -> str:
    return "".join(f" AND {column} = %s" for column in only)


def _tail_begin() -> datetime:
    """No row that waits to be rolled up is older, also when the cursor has moved on since."""
    row_id = StreamCursor.objects.filter(name=CONSUMER, log=LOG.value).values_list("row_id", flat=True).first()
    return ids.time_of(row_id) - LATEST if row_id else EPOCH
