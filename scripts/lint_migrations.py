"""Migrations that came after the last release and cannot be applied while it serves.   docs/decisions/0080

Judged are operations, and the SQL that RunSQL and RunPython hold. Exit code 1 and a line for each fault.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django  # noqa: E402
from django.contrib.postgres.operations import AddConstraintNotValid, AddIndexConcurrently  # noqa: E402
from django.db.migrations import Migration, operations  # noqa: E402
from django.db.migrations.loader import MigrationLoader  # noqa: E402
from django.db.migrations.operations.base import Operation  # noqa: E402
from django.db.migrations.state import ProjectState  # noqa: E402
from django.db.models import NOT_PROVIDED, CheckConstraint, Field  # noqa: E402
from django.db.models.fields import PositiveIntegerRelDbTypeMixin  # noqa: E402

LAST_RELEASE = Path(__file__).with_name("last_release.toml")
Key = tuple[str, str]  # app, and name of a migration
Columns = Mapping[str, frozenset[str]]  # of each table

# The database reads all of these to check a constraint, and every call writes to them.
LARGE_TABLES = frozenset({"audit_requestauditentry", "audit_adminauditentry"})
NOT_NULL = "a column without a default of the database: the last release cannot write a row"
BECOMES_NOT_NULL = (
    "a column that becomes NOT NULL: the last release may write nulls, and the table is read under a lock"
)
NEEDED = "a column that leaves the models and has neither NULL nor a default: this release cannot write a row"
REMOVED = "removes or renames what the last release reads"
INDEX = "an index of an existing table that is not made by AddIndexConcurrently: writes wait until it is built"
CONSTRAINT = "a constraint of a large table without AddConstraintNotValid and a later ValidateConstraint"
TYPE = "a column gets another type: the table is written anew under a lock"
LOCK = "a lock without a timeout: all calls would wait behind it"

# Faults of migrations of before these rules. Their tables have some thousand rows, and the lock timeout of `migrate`
# bounds the wait for them.
ACCEPTED: Mapping[Key, frozenset[str]] = {
    ("credentials", "0004_checks_and_uses"): frozenset({INDEX}),
    # The constraints are of tables that the migration makes.
    ("credentials", "0005_vendor_connections"): frozenset({CONSTRAINT}),
    ("oauth_ext", "0006_agent_limits_and_overlaps"): frozenset({INDEX, CONSTRAINT}),
    ("oauth_ext", "0007_end_of_vendor_access"): frozenset({INDEX}),
    # The constraint is of a table that the migration makes.
    ("orgs", "0014_access_requests"): frozenset({INDEX, CONSTRAINT}),
}
SQL_FAULTS = (
    (re.compile(r"\bLOCK\s+TABLE\b(?!.*\bNOWAIT\b)", re.I | re.S), LOCK),
    (re.compile(r"\block_timeout\s*(?:=|TO)\s*'?0\b", re.I), LOCK),
    (re.compile(r"\bCREATE\s+(?:UNIQUE\s+)?INDEX\s+(?!CONCURRENTLY)", re.I), INDEX),
    (re.compile(r"\bADD\s+CONSTRAINT\b(?!.*\bNOT\s+VALID\b)", re.I | re.S), CONSTRAINT),
    (re.compile(r"\bSET\s+NOT\s+NULL\b", re.I), BECOMES_NOT_NULL),
    (re.compile(r"\bADD\s+COLUMN\b(?=[^,;]*\bNOT\s+NULL\b)(?![^,;]*\bDEFAULT\b)", re.I), NOT_NULL),
    (re.compile(r"\bALTER\s+(?:COLUMN\s+)?\S+\s+(?:SET\s+DATA\s+)?TYPE\b", re.I), TYPE),
    (re.compile(r"\bRENAME\s+(?:COLUMN\s+|TO\b)", re.I), REMOVED),
)
DROPPED_COLUMN = re.compile(
    r"\bALTER\s+TABLE\s+(?:IF\s+EXISTS\s+|ONLY\s+)*\"?(\w+)\"?[^;]*?\bDROP\s+COLUMN\s+(?:IF\s+EXISTS\s+)?\"?(\w+)", re.I
)
DROPPED_TABLE = re.compile(r"\bDROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?\"?(\w+)", re.I)


@dataclass(frozen=True)
class Release:
    """The last release: its migrations, and the columns that its models read."""

    migrations: frozenset[Key]
    columns: Columns


def faults(migration: Migration, before: ProjectState, released: Columns) -> list[str]:
    """The faults that keep a migration from being applied beside the last release. `before`: the models until then."""
    found: dict[str, None] = {}
    existing, state = frozenset(columns_of(before)), before.clone()
    for operation in migration.operations:
        for fault in _faults_of(operation, migration.app_label, state, existing, released):
            found[fault] = None
        operation.state_forwards(migration.app_label, state)
    return list(found)


def _faults_of(
    operation: Operation, app: str, state: ProjectState, existing: frozenset[str], released: Columns
) -> Iterator[str]:
    """`existing`: the tables of before the migration. `state` is that of before the operation."""
    if isinstance(operation, operations.SeparateDatabaseAndState):
        inner = state.clone()
        for each in operation.database_operations:
            yield from _faults_of(each, app, inner, existing, released)
            each.state_forwards(app, inner)
        for each in operation.state_operations:
            if isinstance(each, operations.RemoveField):
                yield from _left_column(state.models[app, each.model_name_lower].fields[each.name])
        return
    if isinstance(operation, operations.RunSQL):
        yield from _sql_faults(_text(operation.sql), released)
        return
    if isinstance(operation, operations.RunPython):
        yield from _sql_faults(inspect.getsource(operation.code), released)
        return
    yield from _lost(operation, app, state, released)
    model = str(getattr(operation, "model_name_lower", "") or getattr(operation, "name_lower", ""))
    table = _table(state, app, model)
    if table in existing:
        yield from _changes(operation, app, model, table, state)


def _lost(operation: Operation, app: str, state: ProjectState, released: Columns) -> Iterator[str]:
    after = state.clone()
    operation.state_forwards(app, after)
    old, new = columns_of(state), columns_of(after)
    for table, columns in old.items():
        gone = columns - new.get(table, frozenset())
        if gone & released.get(table, frozenset()):
            yield REMOVED


def _changes(operation: Operation, app: str, model: str, table: str, state: ProjectState) -> Iterator[str]:
    """Of a table that was there before the migration."""
    if isinstance(operation, operations.AddField):
        yield from _added_field(operation.field, table)
    elif isinstance(operation, operations.AlterField):
        yield from _altered_field(state.models[app, model].fields[operation.name], operation.field)
    elif isinstance(operation, operations.AddConstraint):
        if not isinstance(operation.constraint, CheckConstraint):
            yield INDEX
        elif table in LARGE_TABLES and not isinstance(operation, AddConstraintNotValid):
            yield CONSTRAINT
    elif isinstance(operation, operations.AddIndex):
        if not isinstance(operation, AddIndexConcurrently):
            yield INDEX
    elif isinstance(operation, operations.AlterUniqueTogether) and operation.option_value:
        yield INDEX


def _added_field(field: Field[Any, Any], table: str) -> Iterator[str]:
    if field.many_to_many:
        return
    if not field.null and field.db_default is NOT_PROVIDED:
        yield NOT_NULL
    if _has_index(field):
        yield INDEX
    if table in LARGE_TABLES and (field.is_relation or isinstance(field, PositiveIntegerRelDbTypeMixin)):
        yield CONSTRAINT


def _altered_field(old: Field[Any, Any], new: Field[Any, Any]) -> Iterator[str]:
    if old.null and not new.null:
        yield BECOMES_NOT_NULL
    if _has_index(new) and not _has_index(old):
        yield INDEX
    if _kind(old) != _kind(new) or _is_shorter(old.max_length, new.max_length):
        yield TYPE


def _left_column(field: Field[Any, Any]) -> Iterator[str]:
    if not field.many_to_many and not field.null and field.db_default is NOT_PROVIDED:
        yield NEEDED


def _sql_faults(text: str, released: Columns) -> Iterator[str]:
    for pattern, fault in SQL_FAULTS:
        if pattern.search(text):
            yield fault
    if any(column in released.get(table, ()) for table, column in DROPPED_COLUMN.findall(text)):
        yield REMOVED
    if any(table in released for table in DROPPED_TABLE.findall(text)):
        yield REMOVED


def _text(sql: Any) -> str:
    if isinstance(sql, str):
        return sql
    return ";\n".join(part if isinstance(part, str) else part[0] for part in sql)


def _has_index(field: Field[Any, Any]) -> bool:
    return bool(getattr(field, "db_index", False) or field.unique)


def _kind(field: Field[Any, Any]) -> str:
    return "a reference" if field.is_relation else field.get_internal_type()


def _is_shorter(old: int | None, new: int | None) -> bool:
    return new is not None and (old is None or new < old)


def _table(state: ProjectState, app: str, model: str) -> str:
    found = state.models.get((app, model))
    return found.options.get("db_table") or f"{app}_{model}" if found else ""


def columns_of(state: ProjectState) -> dict[str, frozenset[str]]:
    """The columns of each table, as the models of a state read them."""
    found: dict[str, frozenset[str]] = {}
    for (app, model), each in state.models.items():
        if each.options.get("proxy") or not each.options.get("managed", True):
            continue
        columns = set()
        for name, field in each.fields.items():
            if field.many_to_many:
                continue
            columns.add(field.db_column or (f"{name}_id" if field.is_relation else name))
        table = _table(state, app, model)
        found[table] = found.get(table, frozenset()) | columns
    return found


def read_release(path: Path, loader: MigrationLoader) -> Release:
    """The last release. Raises: NodeNotFoundError for a migration that is not there."""
    last = [*tomllib.loads(path.read_text())["migrations"].items()]
    migrations = frozenset(each for key in last for each in loader.graph.forwards_plan(key))
    return Release(migrations, columns_of(loader.project_state(last)))


def later_migrations(loader: MigrationLoader, release: Release, apps: Sequence[str]) -> Iterator[Key]:
    """The migrations of our apps that the release does not have."""
    for key in sorted(loader.graph.nodes):
        if key[0] in apps and key not in release.migrations:
            yield key


def all_faults() -> dict[Key, list[str]]:
    """The faults of each later migration, the accepted ones too."""
    # The old chains, which the squashed migrations replace, are those of the release.
    loader = MigrationLoader(None, replace_migrations=False)
    release = read_release(LAST_RELEASE, loader)
    apps = list(tomllib.loads(LAST_RELEASE.read_text())["migrations"])
    return {
        key: faults(loader.graph.nodes[key], loader.project_state(key, at_end=False), release.columns)
        for key in later_migrations(loader, release, apps)
        if not loader.graph.nodes[key].replaces
    }


def main() -> int:
    """Print each fault that is not accepted."""
    django.setup()
    lines = [
        f"{app}/{name}: {fault}"
        for (app, name), found in all_faults().items()
        for fault in found
        if fault not in ACCEPTED.get((app, name), frozenset())
    ]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
