"""The linter of migrations: each rule refuses a planted migration, and leaves its harmless twin alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.postgres.operations import AddConstraintNotValid, AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ModelState, ProjectState

from scripts import lint_migrations as linter

AT_LEAST_ONE = models.CheckConstraint(condition=models.Q(size__gt=0), name="at_least_one")
ONCE = models.UniqueConstraint(fields=["name"], name="once")
BY_NAME = models.Index(fields=["name"], name="by_name")


def fields(**others: models.Field[Any, Any]) -> list[tuple[str, models.Field[Any, Any]]]:
    return [("id", models.BigAutoField(primary_key=True)), *others.items()]


def before() -> ProjectState:
    """A small table, and the request log."""
    state = ProjectState()
    state.add_model(
        ModelState(
            "orgs",
            "Thing",
            fields(
                name=models.CharField(max_length=50),
                size=models.IntegerField(default=0),
                word=models.CharField(max_length=9, null=True),
                note=models.CharField(max_length=9, default="", db_default=""),
            ),
        )
    )
    state.add_model(
        ModelState(
            "audit",
            "RequestAuditEntry",
            fields(size=models.IntegerField(), name=models.CharField(max_length=9), status=models.CharField()),
            options={"db_table": "audit_requestauditentry"},
        )
    )
    return state


def found(*operations: Operation, app: str = "orgs") -> list[str]:
    migration = Migration("0099_planted", app)
    migration.operations = list(operations)
    released = linter.columns_of(before())
    return linter.faults(migration, before(), released)


def take_lock(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute("LOCK TABLE orgs_thing IN ACCESS EXCLUSIVE MODE")


def fill(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute("UPDATE orgs_thing SET size = 1 WHERE size = 0")


text = models.CharField(max_length=50)
LOG = "requestauditentry"
PLANTED = [
    (linter.NOT_NULL, "orgs", migrations.AddField("thing", "kind", models.CharField(max_length=9, default="a"))),
    (linter.NOT_NULL, "orgs", migrations.RunSQL("ALTER TABLE orgs_thing ADD COLUMN kind text NOT NULL")),
    (linter.BECOMES_NOT_NULL, "orgs", migrations.AlterField("thing", "word", models.CharField(max_length=9))),
    (linter.BECOMES_NOT_NULL, "orgs", migrations.RunSQL("ALTER TABLE orgs_thing ALTER COLUMN word SET NOT NULL")),
    (linter.INDEX, "orgs", migrations.AddIndex("thing", BY_NAME)),
    (linter.INDEX, "orgs", migrations.AddConstraint("thing", ONCE)),
    (linter.INDEX, "orgs", migrations.AlterField("thing", "name", models.CharField(max_length=50, db_index=True))),
    (linter.INDEX, "orgs", migrations.AddField("thing", "key", models.UUIDField(null=True, unique=True))),
    (linter.INDEX, "orgs", migrations.RunSQL("CREATE INDEX by_name ON orgs_thing (name)")),
    (linter.CONSTRAINT, "audit", migrations.AddConstraint(LOG, AT_LEAST_ONE)),
    (linter.CONSTRAINT, "audit", migrations.AddField(LOG, "count", models.PositiveIntegerField(null=True))),
    (linter.CONSTRAINT, "orgs", migrations.RunSQL([("ALTER TABLE a ADD CONSTRAINT b CHECK (c > 0)", None)])),
    (linter.TYPE, "orgs", migrations.AlterField("thing", "size", models.TextField())),
    (linter.TYPE, "orgs", migrations.AlterField("thing", "name", models.CharField(max_length=20))),
    (linter.LOCK, "orgs", migrations.RunPython(take_lock)),
    (linter.LOCK, "orgs", migrations.RunSQL("SET LOCAL lock_timeout = 0")),
    (linter.REMOVED, "orgs", migrations.RemoveField("thing", "note")),
    (linter.REMOVED, "orgs", migrations.RenameField("thing", "note", "remark")),
    (linter.REMOVED, "orgs", migrations.RenameModel("Thing", "Item")),
    (linter.REMOVED, "orgs", migrations.AlterModelTable("thing", "items")),
    (linter.REMOVED, "orgs", migrations.DeleteModel("Thing")),
    (linter.REMOVED, "orgs", migrations.RunSQL("ALTER TABLE orgs_thing DROP COLUMN note")),
    (linter.REMOVED, "orgs", migrations.RunSQL("DROP TABLE IF EXISTS orgs_thing")),
    (
        linter.REMOVED,
        "orgs",
        migrations.SeparateDatabaseAndState(database_operations=[migrations.RemoveField("thing", "note")]),
    ),
    (
        linter.NEEDED,
        "orgs",
        migrations.SeparateDatabaseAndState(state_operations=[migrations.RemoveField("thing", "size")]),
    ),
]


@pytest.mark.parametrize(("fault", "app", "operation"), PLANTED)
def test_a_planted_migration_is_refused(fault: str, app: str, operation: Operation) -> None:
    assert found(operation, app=app) == [fault]


def test_every_rule_has_a_planted_migration() -> None:
    rules = {value for name, value in vars(linter).items() if name.isupper() and isinstance(value, str)}
    assert {fault for fault, _, _ in PLANTED} == rules


@pytest.mark.parametrize(
    ("app", "operation"),
    [
        ("orgs", migrations.AddField("thing", "kind", models.CharField(max_length=9, default="a", db_default="a"))),
        ("orgs", migrations.AddField("thing", "kind", models.CharField(max_length=9, null=True))),
        ("orgs", migrations.AlterField("thing", "name", models.CharField(max_length=60))),
        ("orgs", AddIndexConcurrently("thing", BY_NAME)),
        ("orgs", migrations.AddConstraint("thing", AT_LEAST_ONE)),
        ("audit", AddConstraintNotValid(LOG, AT_LEAST_ONE)),
        ("audit", migrations.AddField(LOG, "count", models.IntegerField(null=True))),
        ("orgs", migrations.RunPython(fill)),
        ("orgs", migrations.RunSQL("CREATE INDEX CONCURRENTLY by_name ON orgs_thing (name)")),
        ("orgs", migrations.RunSQL("ALTER TABLE a ADD CONSTRAINT b CHECK (c > 0) NOT VALID")),
        ("orgs", migrations.RunSQL("ALTER TABLE orgs_thing ADD COLUMN kind text NOT NULL DEFAULT ''")),
        ("orgs", migrations.RunSQL("ALTER TABLE orgs_thing DROP COLUMN left_before")),
        ("orgs", migrations.RunSQL("LOCK TABLE orgs_thing NOWAIT")),
        ("orgs", migrations.SeparateDatabaseAndState(state_operations=[migrations.RemoveField("thing", "word")])),
    ],
)
def test_its_harmless_twin_is_not(app: str, operation: Operation) -> None:
    assert found(operation, app=app) == []


def test_a_new_table_may_have_anything() -> None:
    made = migrations.CreateModel("Other", fields(name=text, size=models.IntegerField()))
    later = [migrations.AddIndex("other", BY_NAME), migrations.AddConstraint("other", ONCE)]
    assert found(made, *later, migrations.AddField("other", "kind", models.CharField(max_length=9, default="a"))) == []


def test_a_constraint_is_validated_by_a_later_migration() -> None:
    state = before()
    AddConstraintNotValid(LOG, AT_LEAST_ONE).state_forwards("audit", state)
    migration = Migration("0100_validated", "audit")
    migration.operations = [ValidateConstraint(LOG, "at_least_one")]
    assert linter.faults(migration, state, linter.columns_of(state)) == []


def test_a_renamed_model_that_keeps_its_table_is_read_as_before() -> None:
    keeps = migrations.AlterModelTable("thing", "orgs_thing")
    assert found(keeps, migrations.RenameModel("Thing", "Item")) == []


def test_no_migration_of_ours_has_a_fault_and_no_acceptance_is_stale() -> None:
    every = linter.all_faults()
    assert ("orgs", "0015_browser_sessions") in every
    assert {key: frozenset(found) for key, found in every.items() if found} == dict(linter.ACCEPTED)


def test_the_migrations_of_the_last_release_are_known() -> None:
    loader = MigrationLoader(None, replace_migrations=False)
    release = linter.read_release(linter.LAST_RELEASE, loader)
    assert ("orgs", "0001_initial") in release.migrations
    assert ("orgs", "0014_access_requests") not in release.migrations
    assert "expires_at" not in release.columns["orgs_serveraccessgrant"]
    assert release.columns["audit_requestauditentry"] > {"id", "org_id", "status"}


def test_a_release_that_names_an_unknown_migration_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "last_release.toml"
    path.write_text('[migrations]\norgs = "0001_of_another_product"\n')
    with pytest.raises(Exception, match="0001_of_another_product"):
        linter.read_release(path, MigrationLoader(None, replace_migrations=False))
