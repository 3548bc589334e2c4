"""Migrations: what runs on a new database, and that a database which an earlier version has made is taken over."""

import io
from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddField, CreateModel, RenameModel
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import (
    NOT_PROVIDED,
    Field,
    PositiveBigIntegerField,
    PositiveIntegerField,
    PositiveSmallIntegerField,
)

LIBRARY = "oauth2_provider"
# The library's migrations that earlier versions ran, as their django_migrations table holds them.
RECORDED_ONCE = [
    "0001_initial",
    "0002_auto_20190406_1805",
    "0003_auto_20201211_1314",
    "0011_refreshtoken_token_family",
    "0022_refreshtoken_token_family_index",
]

OUR_APPS = {"audit", "billing", "catalog", "coordination", "credentials", "oauth_ext", "orgs", "web"}
# Of before there was a release to be replaced.
NEVER_BESIDE_AN_EARLIER_ONE = {
    ("credentials", "0002_initial"),
    ("orgs", "0004_user_email_verified"),
    ("orgs", "0006_known_tool_definitions"),
}
LARGE_TABLES = {"requestauditentry"}
CHECKED_FIELDS = (PositiveIntegerField, PositiveSmallIntegerField, PositiveBigIntegerField)


def added_columns() -> list[tuple[tuple[str, str], str, Field]]:
    """(migration, model, field) of each column that a table got after it was made."""
    found = []
    for key, migration in sorted(MigrationLoader(None).disk_migrations.items()):
        made = {each.name_lower for each in migration.operations if isinstance(each, CreateModel)}
        for each in migration.operations:
            if key[0] in OUR_APPS and isinstance(each, AddField) and each.model_name_lower not in made:
                found.append((key, each.model_name_lower, each.field))
    return found


def test_an_earlier_release_can_write_to_tables_that_were_added_to() -> None:
    columns = added_columns()
    assert ("orgs", "0009_word_of_the_identity_provider") in {key for key, _, _ in columns}
    for key, model, field in columns:
        has_default = field.null or field.many_to_many or field.db_default is not NOT_PROVIDED
        assert has_default or key in NEVER_BESIDE_AN_EARLIER_ONE, f"{key}: {model} needs a default of the database"


def test_no_added_column_makes_the_database_read_a_large_table() -> None:
    assert {model for _, model, _ in added_columns()} >= LARGE_TABLES
    for key, model, field in added_columns():
        assert model not in LARGE_TABLES or not isinstance(field, CHECKED_FIELDS), f"{key}: {model} gets a check"


def test_the_oauth_library_has_no_migration_and_no_table() -> None:
    assert not {app for app, _ in MigrationLoader(None).graph.nodes} & {LIBRARY}
    assert [model for model in apps.get_app_config(LIBRARY).get_models() if model._meta.managed] == []


@pytest.mark.django_db
def test_every_model_has_its_table() -> None:
    expected = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
    assert expected <= set(connection.introspection.table_names())


@pytest.mark.django_db
def test_a_database_with_the_librarys_rows_is_up_to_date() -> None:
    recorder = MigrationRecorder(connection)
    for name in RECORDED_ONCE:
        recorder.record_applied(LIBRARY, name)
    printed = io.StringIO()
    call_command("migrate", check_unapplied=True, plan=True, stdout=printed)
    assert "No planned migration operations." in printed.getvalue()
    call_command("migrate", verbosity=0)
    assert {name for app, name in recorder.applied_migrations() if app == LIBRARY} == set(RECORDED_ONCE)


def test_a_renamed_model_keeps_its_table() -> None:
    loader, found = MigrationLoader(None, replace_migrations=False), set()
    for key, migration in loader.disk_migrations.items():
        for each in migration.operations if key[0] in OUR_APPS else []:
            if isinstance(each, RenameModel):
                old, new = each.old_name_lower, each.new_name_lower
                before, after = (loader.project_state(key, at_end=at_end).models for at_end in (False, True))
                table = before[key[0], old].options.get("db_table", f"{key[0]}_{old}")
                assert after[key[0], new].options.get("db_table") == table, f"{key}: an earlier release needs {table}"
                found.add(new)
    assert found >= {"idempotencyrecord", "toolsnapshot", "serveraccess", "serviceclientvendor"}


@pytest.mark.django_db
@pytest.mark.parametrize("app", ["orgs", "oauth_ext"])
def test_staff_keep_the_permissions_of_renamed_models(app: str) -> None:
    migrations = MigrationLoader(None).disk_migrations.items()
    (module,) = [
        import_module(migration.__module__)
        for key, migration in migrations
        if key[0] == app and any(isinstance(each, RenameModel) for each in migration.operations)
    ]
    # When the models were renamed, all of them belonged to the app that renames them.
    moves = import_module("gateway.web.migrations.0001_initial")
    moves.move_permissions_back(apps, connection.schema_editor())
    rows = Permission.objects.filter(content_type__app_label=app)
    others = set(rows.values_list("pk", "codename"))
    for old, new in module.RENAMED.items():
        changed = rows.get(codename=f"view_{new}")
        changed.codename = f"view_{old}"
        changed.save()
    module.rename_permissions(apps, connection.schema_editor())
    assert set(rows.values_list("pk", "codename")) == others
