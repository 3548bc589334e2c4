"""The indexes of the request log: each filter is exact, and the migration that makes them can be run again."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection

from audit import distinct_values, matching, partitions
from audit.filters import REQUEST_FILTERS, Filters
from audit.log_pages import export_of, page_of, total_of
from audit.log_query import LogQuery
from audit.matching import matching_entries
from audit.models import RequestAuditEntry
from audit.partitions import SETTINGS, TABLE
from tests.api.audit.log_rows import log_id
from tests.api.audit.rows import NOON, ORG, OTHER_ORG, add_row

migration = import_module("audit.migrations._log_indexes")
on_postgresql = pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite keeps one table")
FAR = datetime(2090, 1, 15, tzinfo=UTC)
VALUES = {
    "user_id": ("", "user-1", "user-2", "nobody"),
    "vendor": ("", "acme", "globex", "none"),
    "tool": ("", "list", "send", "none"),
    "source": ("", "mcp", "cli"),
    "status": ("", "success", "error", "unknown"),
    "request_id": ("", "r-7"),
}
PERIODS = ({}, {"start": "2026-03-10T11:30:00Z", "end": "2026-03-10T11:50:00Z"})


@pytest.fixture
def log() -> list[RequestAuditEntry]:
    """Rows of one organization, newest first. The other organization has the same ones, and one vendor is empty."""
    rows = []
    for n in range(60):
        at = NOON - timedelta(minutes=n)
        facts = {
            "timestamp": at,
            "user_id": f"user-{n % 3}",
            "vendor": ("acme", "globex", "")[n % 5 % 3],
            "tool": ("list", "send")[n % 7 % 2],
            "source": ("mcp", "cli")[n % 2],
            "status": ("success", "success", "error", "denied")[n % 4],
            "request_id": f"r-{n % 11}",
        }
        rows.append(add_row(id=log_id(at), org_id=ORG, **facts))
        add_row(id=log_id(at), org_id=OTHER_ORG, **facts)
    return rows


def _matches(row: RequestAuditEntry, query: dict[str, str], filters: Filters) -> bool:
    same = all(getattr(row, name) == value for name, value in query.items() if name in VALUES)
    early = filters.start_at is not None and row.timestamp < filters.start_at
    late = filters.end_before is not None and row.timestamp >= filters.end_before
    return same and not early and not late


@pytest.mark.django_db
@pytest.mark.parametrize("pair", [*itertools.combinations(VALUES, 2)], ids=" and ".join)
def test_each_filter_and_pair_finds_what_it_names(log: list[RequestAuditEntry], pair: tuple[str, str]) -> None:
    for first, second, period in itertools.product(VALUES[pair[0]], VALUES[pair[1]], PERIODS):
        query = {**dict(zip(pair, (first, second), strict=True)), **period}
        query = {name: value for name, value in query.items() if value}
        filters = Filters.parse(REQUEST_FILTERS, query)
        expected = [row.id for row in log if _matches(row, query, filters)]
        rows = matching_entries(RequestAuditEntry, ORG, filters)
        assert [row.id for row in page_of(rows, LogQuery()).entries] == expected[:50], query
        assert [row.id for row in page_of(rows, LogQuery(offset=7, limit=5)).entries] == expected[7:12], query
        assert total_of(rows).rows == len(expected), query


@pytest.mark.django_db
def test_all_filters_together_leave_the_rows_that_meet_all(log: list[RequestAuditEntry]) -> None:
    for row in (*log[:8], log[-1]):
        query = {name: getattr(row, name) for name in VALUES if getattr(row, name)}
        filters = Filters.parse(REQUEST_FILTERS, query)
        expected = [each.id for each in log if _matches(each, query, filters)]
        assert row.id in expected
        found = export_of(matching_entries(RequestAuditEntry, ORG, filters), LogQuery(is_csv=True), ["id"])
        assert (found.total, [value for page in found.pages for (value,) in page]) == (len(expected), expected)


@pytest.mark.django_db
def test_a_tool_is_found_also_among_more_vendors_than_are_listed(
    log: list[RequestAuditEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distinct_values, "MAX_KNOWN", 1)
    monkeypatch.setattr(matching, "MAX_KNOWN", 1)
    rows = matching_entries(RequestAuditEntry, ORG, Filters(equal={"tool": "list"}))
    assert total_of(rows).rows == sum(row.tool == "list" for row in log)


def _indexes(table: str) -> dict[str, bool]:
    """Validity by definition, without names."""
    sql = (
        "SELECT regexp_replace(pg_get_indexdef(indexrelid), '^.* USING', ''), indisvalid FROM pg_index"
        " WHERE indrelid = %s::regclass"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [table])
        return dict(cursor.fetchall())


@pytest.mark.django_db
def test_the_database_has_the_indexes_of_the_model() -> None:
    with connection.cursor() as cursor:
        found = set(connection.introspection.get_constraints(cursor, RequestAuditEntry._meta.db_table))
    assert {index.name for index in RequestAuditEntry._meta.indexes} <= found
    assert not found & set(migration.REPLACED)


@on_postgresql
@pytest.mark.django_db
def test_a_new_partition_has_them_all_and_is_vacuumed_as_it_grows() -> None:
    (name,) = partitions.make_ahead(FAR, months=0)
    assert _indexes(name) == _indexes(TABLE)
    assert all(_indexes(name).values())
    sql = "SELECT DISTINCT reloptions FROM pg_class JOIN pg_inherits ON oid = inhrelid WHERE inhparent = %s::regclass"
    with connection.cursor() as cursor:
        cursor.execute(sql, [TABLE])
        assert cursor.fetchall() == [(SETTINGS.replace(" = ", "=").split(", "),)]


@pytest.fixture
def stopped_half_way() -> None:
    """One index is not begun, another has one part, which is not valid, and an old one is still there."""
    some = migration.partitions_of(connection)[0]
    part, columns = f"request_log_of_user{some.removeprefix(TABLE)}", migration.INDEXES["request_log_of_user"]
    with connection.cursor() as cursor:
        for statement in (
            "DROP INDEX request_log_of_org, request_log_of_user",
            f"CREATE INDEX request_log_of_user ON ONLY {TABLE} {columns}",
            f"CREATE INDEX {part} ON {some} {columns}",
            f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{part}'::regclass",
            f"CREATE INDEX request_log_by_vendor ON {TABLE} (org_id, vendor, id)",
        ):
            cursor.execute(statement)


@pytest.fixture
def complete() -> dict[str, dict[str, bool]]:
    """The indexes of the table and of each partition, as all migrations have made them."""
    return _all_indexes()


@on_postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("complete", "stopped_half_way")
def test_the_migration_goes_on_where_it_stopped(complete: dict[str, dict[str, bool]]) -> None:
    row = add_row(org_id=ORG)
    assert _all_indexes() != complete
    for _ in range(2):  # the second time, nothing is left to do
        migration.replace_indexes(apps, connection.schema_editor())
        assert _all_indexes() == complete
    assert all(all(indexes.values()) for indexes in complete.values())
    assert RequestAuditEntry.objects.get() == row


def _all_indexes() -> dict[str, dict[str, bool]]:
    return {table: _indexes(table) for table in (TABLE, *migration.partitions_of(connection))}
