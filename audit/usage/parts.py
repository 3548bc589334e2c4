"""One statement over everything that usage knows of a period: roll-ups, and the rows that no roll-up has yet.

One statement sees one state of the database, so a row is counted in a roll-up or beside it, and never in both.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection

from audit.models import StreamCursor
from audit.sql_values import first_id, uuid_value
from audit.stream import FINAL_AFTER_S
from audit.usage import log_sql, row_ids
from audit.usage.log_sql import is_in
from audit.usage.period import Parts
from audit.usage.rollup import CONSUMER, LOG
from audit.usage_keys import COUNTED, TIMED
from audit.usage_models import UsageCount, UsageDuration, UsageLabel
from gateway.lib import ids
from gateway.lib.clock import EPOCH

# A row becomes final within FINAL_AFTER_S, or a little later when the process that finishes it is busy.
LATEST = timedelta(seconds=FINAL_AFTER_S + 300)
_CURSORS = StreamCursor._meta.db_table
_COUNTS, _DURATIONS, _LABELS = (model._meta.db_table for model in (UsageCount, UsageDuration, UsageLabel))
_SUMMED = "day, vendor, tool, user_id, source, outcome, calls, duration_ms, request_bytes, response_bytes"
_NO_ID = {"postgresql": "CAST(%s AS uuid)", "sqlite": "%s"}
_BEYOND = "(position, id) > (SELECT position, row_id FROM place)"

COUNTED_ONLY, TIMED_ONLY = is_in(COUNTED), is_in(TIMED)
_CALLERS = (
    f"caller AS MATERIALIZED (SELECT user_id, SUM(calls) AS calls FROM part WHERE {COUNTED_ONLY} GROUP BY user_id)"  # noqa: S608
)


class Group(NamedTuple):
    """One row of an answer: `kind` names the branch of the statement, the rest is the branch's own."""

    kind: str
    first: str
    second: str
    third: str
    calls: int
    amount: int


def groups(org_id: uuid.UUID, parts: Parts, branches: Sequence[str], values: Sequence[Any] = ()) -> list[Group]:
    """Runs the branches, SELECTs of Group's columns, in one statement. `values`: the parameters of the branches.

    They may read five tables. `part`: the period, with the columns of _SUMMED. `caller`: calls by `user_id`. `bucket`:
    calls by `vendor` and `bucket`. `loose`: rows of the log that no roll-up of the period has. `label`: the labels of
    the callers.
    """
    builder = _Builder(org_id)
    tables = [builder.place(), builder.loose(parts), builder.part(parts), _CALLERS]
    tables += [builder.buckets(parts), builder.labels()]
    with connection.cursor() as cursor:
        cursor.execute(f"WITH {', '.join(tables)} {' UNION ALL '.join(branches)}", [*builder.values, *values])
        return [Group._make(row) for row in cursor.fetchall()]


def branch(
    kind: str,
    *columns: str,
    table: str = "part",
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

    def __init__(self, org_id: uuid.UUID) -> None:
        self.values: list[Any] = []
        self._org, self._org_id = org_id, uuid_value(org_id)

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

    def part(self, parts: Parts) -> str:
        rolled = self._rolled(_COUNTS, f"CAST(day AS text) AS {_SUMMED}", parts)
        return f"part AS MATERIALIZED ({rolled}SELECT {_SUMMED} FROM loose)"  # noqa: S608

    def buckets(self, parts: Parts) -> str:
        rolled = self._rolled(_DURATIONS, "vendor, bucket, calls", parts)
        return f"bucket (vendor, bucket, calls) AS ({rolled}SELECT '', 0, 0)"

    def labels(self) -> str:
        self.values.append(self._org_id)
        callers = "SELECT user_id FROM caller"
        chosen = f"SELECT user_id, label, row_id FROM {_LABELS} WHERE org_id = %s AND user_id IN ({callers})"  # noqa: S608
        return f"label AS ({chosen})"

    def _log(self, low: datetime, high: datetime) -> str:
        self.values += [self._org_id, first_id(low), first_id(high)]
        day = f"CAST({log_sql.DAY[connection.vendor]} AS text)"
        columns = f"{day} AS day, vendor, tool, user_id, source, {log_sql.OUTCOME} AS outcome"
        sums = "count AS calls, duration_ms, request_bytes, response_bytes, id, user_label"
        final = "org_id = %s AND id >= %s AND id < %s AND position IS NOT NULL"
        return f"SELECT {columns}, {sums} FROM {log_sql.TABLE} WHERE {final}"  # noqa: S608

    def _rolled(self, table: str, columns: str, parts: Parts) -> str:
        """One SELECT for each part, each with UNION ALL behind it."""
        chosen = [row_ids.of_days(self._org, *parts.days)] if parts.days is not None else []
        chosen += [row_ids.of_hours(self._org, each.day, each.first, each.last) for each in parts.hours]
        for rows in chosen:
            self.values += [self._org_id, *map(uuid_value, rows)]
        part = f"SELECT {columns} FROM {table} WHERE org_id = %s AND id >= %s AND id <= %s UNION ALL "  # noqa: S608
        return part * len(chosen)


def _tail_begin() -> datetime:
    """No row that waits to be rolled up is older, also when the cursor has moved on since."""
    row_id = StreamCursor.objects.filter(name=CONSUMER, log=LOG.value).values_list("row_id", flat=True).first()
    return ids.time_of(row_id) - LATEST if row_id else EPOCH
