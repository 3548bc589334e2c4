"""The different values of one column of a log, for the lists of its filters."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import connection

from audit.models import LogModel
from audit.newest_first import newest_first
from audit.sql_values import uuid_value

MAX_KNOWN = 500


def distinct_values(log: LogModel, org_id: uuid.UUID, column: str) -> list[str]:
    """At most MAX_KNOWN values of `column`, which leads an index."""
    return [value for (value,) in _distinct(log, org_id, column, "value")]


def latest_labels(log: LogModel, org_id: uuid.UUID, column: str) -> dict[str, str]:
    """Labels by the ids in `column`, sorted by label; removed people, service clients and background jobs are included.

    Each is the label beside the latest of the rows with this id.
    """
    label, table = f"{column.removesuffix('_id')}_label", log._meta.db_table
    latest = f"(SELECT {label} FROM {table} WHERE org_id = %s AND {column} = value ORDER BY {newest_first()} LIMIT 1)"  # noqa: S608
    found = _distinct(log, org_id, column, f"value, {latest}")
    return dict(sorted(found, key=lambda each: (each[1].casefold(), each[0])))


def _distinct(log: LogModel, org_id: uuid.UUID, column: str, columns: str) -> list[Any]:
    """Rows of `columns`, in which `value` is a value of `column`."""
    # One index step for each value: DISTINCT would read every row of the organization.
    next_value = f"SELECT MIN({column}) FROM {log._meta.db_table} WHERE org_id = %s AND {column} >"  # noqa: S608
    sql = (
        f"WITH RECURSIVE seen(value) AS (SELECT ({next_value} '') UNION ALL "  # noqa: S608
        f"SELECT ({next_value} seen.value) FROM seen WHERE seen.value IS NOT NULL) "
        f"SELECT {columns} FROM seen WHERE value IS NOT NULL LIMIT {MAX_KNOWN}"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [uuid_value(org_id)] * sql.count("%s"))
        return list(cursor.fetchall())
