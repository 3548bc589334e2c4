"""SQL that folds rows of the request log into counters and adds these to the stored ones.

The database folds, so that no row leaves it, and adds, so that two additions never lose each other. PostgreSQL and
SQLite share the text but for a few functions. Spec: §2 Usage aggregates · D150
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from audit.usage.log_sql import BUCKET, DAY, HOUR, OUTCOME, TABLE, is_in
from audit.usage.row_ids import row_id_sql
from audit.usage_keys import COUNT_KEY, DURATION_KEY, SUMS, TIMED, WHOLE_DAY, Outcome
from audit.usage_models import UsageCount, UsageDay, UsageDuration, UsageLabel

# SQLite has no such function: `audit.usage.counters.add_functions` adds it.
ROW_ID_FUNCTION = "usage_row_id"
_TAKEN = ("id", "org_id", "user_id", "user_label", "vendor", "source", *SUMS[1:])
# Callers invent the names of tools that are refused, and sums are kept longer than rows.
_TOOL = f"CASE WHEN status = '{Outcome.DENIED}' THEN '' ELSE tool END AS tool"


class _Table(NamedTuple):
    name: str
    key: tuple[str, ...]
    sums: tuple[str, ...]
    rows: str  # a condition on the rows that it counts


COUNTS = _Table(UsageCount._meta.db_table, COUNT_KEY, SUMS, "true")
DURATIONS = _Table(UsageDuration._meta.db_table, DURATION_KEY, ("calls",), is_in(TIMED))
_LABELS, _READY_DAYS = UsageLabel._meta.db_table, UsageDay._meta.db_table


class _Addition(NamedTuple):
    """An INSERT and the tables that it reads."""

    tables: str
    insert: str


@cache
def statements(vendor: str, condition: str) -> tuple[str, ...]:
    """Statements that add the rows of the log with `condition`. Each takes the condition's values.

    On PostgreSQL there is one, because two could see different rows while old ones are removed. SQLite has one writer.
    """
    rows = (
        f"batch AS MATERIALIZED (SELECT {', '.join(_TAKEN)}, {_TOOL}, count AS calls, {DAY[vendor]} AS day,"  # noqa: S608
        f" {HOUR[vendor]} AS hour, {OUTCOME} AS outcome, {BUCKET[vendor]} AS bucket"
        f" FROM {TABLE} WHERE position IS NOT NULL AND {condition})"
    )
    additions = [
        _hours_and_days(vendor, COUNTS),
        _hours_and_days(vendor, DURATIONS),
        _LATEST_LABELS,
        _changed_days(vendor),
    ]
    if vendor == "sqlite":
        return tuple(f"WITH {rows}, {each.tables} {each.insert}" for each in additions)
    parts = [f"addition_{number} AS (WITH {each.tables} {each.insert})" for number, each in enumerate(additions)]
    return (f"WITH {', '.join([rows, *parts])} SELECT 1",)


@cache
def day_statement(vendor: str, table: _Table) -> str:
    """Adds stored hours to their days. The values: an organization, and the first and the last id of the hours."""
    hours = f"SELECT {_columns(table)} FROM {table.name} WHERE org_id = %s AND id >= %s AND id <= %s"  # noqa: S608
    return f"WITH hours AS ({hours}), added AS ({_days(table)}) {_insert(vendor, table)}"


def _hours_and_days(vendor: str, table: _Table) -> _Addition:
    hours = (
        f"SELECT {', '.join(table.key)}, {_summed(table)} FROM batch WHERE {table.rows} GROUP BY {', '.join(table.key)}"  # noqa: S608
    )
    return _Addition(
        f"hours AS MATERIALIZED ({hours}), added AS (SELECT * FROM hours UNION ALL {_days(table)})",  # noqa: S608
        _insert(vendor, table),
    )


def _days(table: _Table) -> str:
    key = [f"CAST({WHOLE_DAY} AS smallint) AS hour" if column == "hour" else column for column in table.key]
    grouped = [column for column in table.key if column != "hour"]
    return f"SELECT {', '.join(key)}, {_summed(table)} FROM hours GROUP BY {', '.join(grouped)}"  # noqa: S608


def _insert(vendor: str, table: _Table) -> str:
    # In one order everywhere: two transactions that write the same rows wait for each other and never in a circle.
    return (
        f"INSERT INTO {table.name} (id, {_columns(table)}) SELECT {_row_id(vendor, table.key)}, {_columns(table)}"  # noqa: S608
        f" FROM added WHERE true ORDER BY 1 ON CONFLICT (id) DO UPDATE SET "
        + ", ".join(f"{column} = {table.name}.{column} + EXCLUDED.{column}" for column in table.sums)
    )


_LATEST_LABELS = _Addition(
    # Ids are times.
    "ranked AS (SELECT org_id, user_id, user_label, id,"
    " row_number() OVER (PARTITION BY org_id, user_id ORDER BY id DESC) AS place FROM batch)",
    f"INSERT INTO {_LABELS} (org_id, user_id, label, row_id) SELECT org_id, user_id, user_label, id FROM ranked"  # noqa: S608
    " WHERE place = 1 ORDER BY org_id, user_id ON CONFLICT (org_id, user_id) DO UPDATE"
    f" SET label = EXCLUDED.label, row_id = EXCLUDED.row_id WHERE EXCLUDED.row_id > {_LABELS}.row_id",
)


def _changed_days(vendor: str) -> _Addition:
    """Figures of a day that were made before these rows came are made again."""
    key = ("org_id", "day", "hour", "rest")
    return _Addition(
        f"changed AS (SELECT DISTINCT org_id, day, CAST({WHOLE_DAY} AS smallint) AS hour, '' AS rest FROM batch)",  # noqa: S608
        f"INSERT INTO {_READY_DAYS} (id, org_id, day) SELECT {_row_id(vendor, key)}, org_id, day FROM changed"  # noqa: S608
        " WHERE true ORDER BY 1 ON CONFLICT (id) DO UPDATE SET version = NULL, by_day = NULL, by_vendor = NULL"
        f" WHERE {_READY_DAYS}.version IS NOT NULL",
    )


def _row_id(vendor: str, key: Sequence[str]) -> str:
    texts = [column for column in key if column not in {"org_id", "day", "hour"}]
    if vendor == "sqlite":
        return f"{ROW_ID_FUNCTION}(org_id, day, hour, {', '.join(texts)})"
    return row_id_sql(texts)


def _columns(table: _Table) -> str:
    return ", ".join((*table.key, *table.sums))


def _summed(table: _Table) -> str:
    return ", ".join(f"CAST(SUM({column}) AS bigint) AS {column}" for column in table.sums)
