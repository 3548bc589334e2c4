"""The different values of one column of a log, for the lists of its filters."""

from __future__ import annotations

import uuid

from django.db import connection

from audit.models import AdminAuditEntry, RequestAuditEntry
from audit.newest_first import newest_first

MAX_KNOWN = 500
LogModel = type[RequestAuditEntry] | type[AdminAuditEntry]


def distinct_values(log: LogModel, org_id: uuid.UUID, column: str, columns: str) -> list[tuple[str, ...]]:
    """At most MAX_KNOWN rows of `columns`, in which `value` is a value of `column`, which leads an index."""
    table = log._meta.db_table
    # One index step for each value: DISTINCT would read every row of the organization.
    next_value = f"SELECT MIN({column}) FROM {table} WHERE org_id = %s AND {column} >"  # noqa: S608
    sql = (
        f"WITH RECURSIVE seen(value) AS (SELECT ({next_value} '') UNION ALL "  # noqa: S608
        f"SELECT ({next_value} seen.value) FROM seen WHERE seen.value IS NOT NULL) "
        f"SELECT {columns} FROM seen WHERE value IS NOT NULL LIMIT {MAX_KNOWN}"
    )
    org = log._meta.get_field("org_id").get_db_prep_value(org_id, connection)
    with connection.cursor() as cursor:
        cursor.execute(sql, [org] * sql.count("%s"))
        return list(cursor.fetchall())


def labelled_values(log: LogModel, org_id: uuid.UUID, column: str, label: str) -> list[tuple[str, str]]:
    """(value, its latest label) pairs, sorted by label."""
    table = log._meta.db_table
    latest = f"(SELECT {label} FROM {table} WHERE org_id = %s AND {column} = value ORDER BY {newest_first()} LIMIT 1)"  # noqa: S608
    found = [(value, text) for value, text in distinct_values(log, org_id, column, f"value, {latest}")]
    return sorted(found, key=lambda each: (each[1].casefold(), each[0]))
