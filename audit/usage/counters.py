"""Adds counters to the stored roll-ups. The database adds, so two additions never lose each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection
from django.db.models import Model

from audit.usage.fold import Counters, row_id
from audit.usage_keys import CountKey, DurationKey, Sums
from audit.usage_models import UsageCount, UsageDuration, UsageLabel

ROWS_IN_A_STATEMENT = 500
_COUNT_COLUMNS = ("id", *CountKey._fields, *Sums._fields)
_DURATION_COLUMNS = ("id", *DurationKey._fields, "calls")
_LABEL_COLUMNS = ("org_id", "user_id", "row_id", "label")


def add_counters(counters: Counters) -> None:
    """Call it in the transaction that says that the rows are counted. Raises: django.db.Error."""
    # In one order everywhere: two transactions that add to the same rows wait for each other and never in a circle.
    counts = sorted((row_id(key), *key, *sums) for key, sums in counters.counts.items())
    durations = sorted((row_id(key), *key, calls) for key, calls in counters.durations.items())
    labels = sorted((*subject, *latest) for subject, latest in counters.labels.items())
    _upsert(UsageCount, _COUNT_COLUMNS, counts, f"(id) DO UPDATE SET {_sums(UsageCount, Sums._fields)}")
    _upsert(UsageDuration, _DURATION_COLUMNS, durations, f"(id) DO UPDATE SET {_sums(UsageDuration, ('calls',))}")
    _upsert(
        UsageLabel,
        _LABEL_COLUMNS,
        labels,
        "(org_id, user_id) DO UPDATE SET label = EXCLUDED.label, row_id = EXCLUDED.row_id"
        f" WHERE EXCLUDED.row_id > {UsageLabel._meta.db_table}.row_id",
    )


def _sums(model: type[Model], columns: Sequence[str]) -> str:
    table = model._meta.db_table
    return ", ".join(f"{column} = {table}.{column} + EXCLUDED.{column}" for column in columns)


def _upsert(model: type[Model], columns: Sequence[str], rows: Sequence[Sequence[Any]], conflict: str) -> None:
    fields = [model._meta.get_field(column) for column in columns]
    row = f"({', '.join(['%s'] * len(columns))})"
    begin = f"INSERT INTO {model._meta.db_table} ({', '.join(columns)}) VALUES"
    with connection.cursor() as cursor:
        for start in range(0, len(rows), ROWS_IN_A_STATEMENT):
            part = rows[start : start + ROWS_IN_A_STATEMENT]
            values = list(_values(fields, part))
            cursor.execute(f"{begin} {', '.join([row] * len(part))} ON CONFLICT {conflict}", values)


def _values(fields: Sequence[Any], rows: Sequence[Sequence[Any]]) -> Iterator[Any]:
    for row in rows:
        for column, value in zip(fields, row, strict=True):
            yield column.get_db_prep_value(value, connection)
