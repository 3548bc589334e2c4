"""Migrations: what runs on a new database, and that a database which an earlier version has made is taken over."""

import io
from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import RenameModel
from django.db.migrations.recorder import MigrationRecorder

LIBRARY = "oauth2_provider"
# The library's migrations that earlier versions ran, as their django_migrations table holds them.
RECORDED_ONCE = [
    "0001_initial",
    "0002_auto_20190406_1805",
    "0003_auto_20201211_1314",
    "0011_refreshtoken_token_family",
    "0022_refreshtoken_token_family_index",
]

OUR_APPS = {"audit", "billing", "catalog", "coordination", "credentials", "keys", "oauth_ext", "orgs", "web"}


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
