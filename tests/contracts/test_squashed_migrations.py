"""Squashed migrations: they make what the old chain made, and take over a database that the old chain has made."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection
from django.db.migrations import executor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from audit.models import AdminAuditEntry
from gateway.lib import clock
from gateway.lib.ids import new_log_id
from gateway.supervisor.preparation import migrate_database
from gateway.web.models import IdempotencyRecord
from oauth_ext.models import ServiceClientVendor
from orgs.models import Membership, Organization, ServerAccess, ToolSnapshot
from tests.factories.cast import make_cast
from tests.factories.credentials import make_service_client
from tests.factories.health import connected_vendor

SQUASHED = {key for key, migration in MigrationLoader(None).disk_migrations.items() if migration.replaces}
REPLACED = {key for squashed in SQUASHED for key in MigrationLoader(None).disk_migrations[squashed].replaces}

ROWS_IN = {
    "orgs_user",
    "orgs_membership",
    "orgs_serveraccessgrant",
    "orgs_rememberedanswer",
    "orgs_toollook",
    "oauth_ext_client",
    "oauth_ext_serviceclientgrant",
    "credentials_credential",
    "audit_adminauditentry",
    "catalog_vendorrow",
}


class EarlierLoader(MigrationLoader):
    """Knows the migrations that there were before the squashed ones."""

    def load_disk(self) -> None:
        super().load_disk()
        self.disk_migrations = {key: each for key, each in self.disk_migrations.items() if key not in SQUASHED}
        for each in self.disk_migrations.values():
            assert not set(each.dependencies) & SQUASHED, "an old migration needs a squashed one"


def run(sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def leave() -> None:
    connection.close()
    if connection.vendor == "postgresql":
        connection.close_pool()


@pytest.fixture
def new_schema(transactional_db: None) -> set[tuple[Any, ...]]:
    """Of a database that today's migrations have made: the suite's own."""
    assert recorded() >= SQUASHED | REPLACED, "an earlier release finds its migrations done"
    return schema()


@pytest.fixture
def empty_database(transactional_db: None, tmp_path: Path) -> Iterator[None]:
    """The default connection leads to a database without tables."""
    used = connection.settings_dict["NAME"]
    name = f"migrations_{uuid.uuid4().hex}" if connection.vendor == "postgresql" else str(tmp_path / "db.sqlite3")
    if connection.vendor == "postgresql":
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
    leave()
    connection.settings_dict["NAME"] = name
    ContentType.objects.clear_cache()
    try:
        yield
    finally:
        leave()
        connection.settings_dict["NAME"] = used
        ContentType.objects.clear_cache()
        if connection.vendor == "postgresql":
            with connection._nodb_cursor() as cursor:
                cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


def migrate_as_before(monkeypatch: pytest.MonkeyPatch, *target: str) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(executor, "MigrationLoader", EarlierLoader)
        call_command("migrate", *target, verbosity=0)
    ContentType.objects.clear_cache()


def recorded() -> set[tuple[str, str]]:
    return set(MigrationRecorder(connection).applied_migrations())


def schema() -> set[tuple[Any, ...]]:
    """Every column, constraint and index, with its definition."""
    if connection.vendor == "postgresql":
        columns = (
            "table_name, column_name, data_type, character_maximum_length, is_nullable, column_default, is_identity"
        )
        return {
            *run(f"SELECT {columns} FROM information_schema.columns WHERE table_schema = 'public'"),
            *run(
                "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated FROM pg_constraint"
                " WHERE connamespace = 'public'::regnamespace"
            ),
            *run("SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"),
        }
    found: set[tuple[Any, ...]] = set()
    for kind, name, table, sql in run("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"):
        # Columns and constraints of a table in any order.
        parts = re.split(r", (?=\")|, (?=CONSTRAINT)", sql[sql.index("(") + 1 : -1]) if kind == "table" else [sql]
        found |= {(kind, name, table, part) for part in parts}
    return found


def rows() -> dict[str, list[tuple[Any, ...]]]:
    tables = sorted(set(connection.introspection.table_names()) - {"django_migrations"})
    return {table: sorted(run(f'SELECT * FROM "{table}"'), key=repr) for table in tables}


def make_rows() -> None:
    cast = make_cast()
    client = make_service_client(cast.org)
    connected_vendor(cast.org, "acme")
    ServiceClientVendor.objects.create(client=client, vendor="acme")
    membership = Membership.objects.filter(organization=cast.org).earliest("pk")
    ServerAccess.objects.create(organization=cast.org, membership=membership, vendor="acme")
    IdempotencyRecord.objects.create(user=membership.user, key_sha256=b"k" * 32, body_sha256=b"b" * 32, status=201)
    ToolSnapshot.objects.create(organization=cast.org, vendor="acme")
    AdminAuditEntry.objects.create(
        id=new_log_id(), timestamp=clock.now(), org_id=cast.org.pk, event_type="t", actor_id="a", actor_label="a"
    )


def test_a_database_of_the_old_chain_has_the_new_schema_keeps_its_rows_and_needs_nothing(
    new_schema: set[tuple[Any, ...]], empty_database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate_as_before(monkeypatch)
    assert recorded() >= REPLACED
    assert not recorded() & SQUASHED
    assert schema() == new_schema
    make_rows()
    before, tables = rows(), schema()
    assert {table for table, found in before.items() if found} >= ROWS_IN
    assert migrate_database().endswith("up to date")
    assert recorded() >= SQUASHED
    assert (rows(), schema()) == (before, tables)
    assert migrate_database().endswith("up to date")


def test_a_database_in_the_middle_of_the_old_chain_goes_on_with_it(
    new_schema: set[tuple[Any, ...]], empty_database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate_as_before(monkeypatch, "orgs", "0008")
    migrate_as_before(monkeypatch, "oauth_ext", "0003")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO orgs_organization (id, name, default_server_access, created_at)"
            " VALUES ('0123456789abcdef0123456789abcdef', 'Acme', 'none', '2026-01-01 00:00:00+00:00')"
        )
    migrate_database()
    assert recorded() >= SQUASHED | REPLACED
    assert Organization.objects.get().name == "Acme"
    assert schema() == new_schema


def records_and_staff() -> tuple[list[tuple[Any, ...]], set[tuple[str, str, str]]]:
    """The idempotency records; the natural keys of what the staff group may do."""
    ContentType.objects.clear_cache()
    allowed = Permission.objects.filter(group__name="staff")
    return run("SELECT * FROM orgs_rememberedanswer"), {each.natural_key() for each in allowed}


def make_record(monkeypatch: pytest.MonkeyPatch, chain: str, migration: str, model: str) -> None:
    """A database of an earlier release, with one idempotency record and a staff group that may do all with them."""
    if chain == "old":
        migrate_as_before(monkeypatch, "orgs", migration)
    else:
        call_command("migrate", "orgs", "0001_squashed_0011_rename_models", verbosity=0)
        assert recorded() >= {key for key in SQUASHED if key[0] == "orgs"}
    earlier = MigrationLoader(None, replace_migrations=False).project_state(("orgs", migration)).apps
    user = earlier.get_model("orgs", "User").objects.create(email="ann@example.com")
    earlier.get_model("orgs", model).objects.create(user=user, key_sha256=b"k" * 32, body_sha256=b"b" * 32, status=201)
    staff = Group.objects.create(name="staff")
    staff.permissions.set(Permission.objects.filter(content_type__app_label="orgs", content_type__model=model))


@pytest.mark.parametrize(
    ("chain", "migration", "model"),
    [
        ("old", "0010_rows_of_one_organization", "rememberedanswer"),
        ("old", "0011_rename_models", "idempotencyrecord"),
        ("squashed", "0011_rename_models", "idempotencyrecord"),
    ],
)
def test_idempotency_records_move_to_their_app_with_rows_and_permissions(
    new_schema: set[tuple[Any, ...]],
    empty_database: None,
    monkeypatch: pytest.MonkeyPatch,
    chain: str,
    migration: str,
    model: str,
) -> None:
    make_record(monkeypatch, chain, migration, model)
    before, allowed = records_and_staff()
    assert (len(before), len(allowed)) == (1, 4)

    migrate_database()
    renamed = {(name.replace(model, "idempotencyrecord"), "web", "idempotencyrecord") for name, _, _ in allowed}
    assert records_and_staff() == (before, renamed)
    assert bytes(IdempotencyRecord.objects.get().key_sha256) == b"k" * 32
    found = ContentType.objects.filter(model__in=[model, "idempotencyrecord"])
    assert [each.natural_key() for each in found] == [("web", "idempotencyrecord")]
    assert Permission.objects.filter(content_type__in=found).count() == 4
    # Nothing tells the three databases apart any more.
    assert recorded() == set(MigrationLoader(None).disk_migrations)
    assert schema() == new_schema


def test_idempotency_records_move_back_and_forth_again(
    new_schema: set[tuple[Any, ...]], empty_database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_record(monkeypatch, "squashed", "0011_rename_models", "idempotencyrecord")
    migrate_database()
    before, allowed = records_and_staff()
    assert (len(before), len(allowed)) == (1, 4)
    assert recorded() == set(MigrationLoader(None).disk_migrations)

    call_command("migrate", "orgs", "0011", verbosity=0)
    assert records_and_staff() == (before, {(name, "orgs", model) for name, _, model in allowed})
    migrate_database()
    assert records_and_staff() == (before, allowed)
    assert schema() == new_schema
