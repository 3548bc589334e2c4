"""Foreign keys that hold a row and its references in one organization."""

from __future__ import annotations

from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def same_organization(app: str, model: str, field: str) -> migrations.RunPython:
    """A migration: the row that `field` refers to is in the same organization; null is allowed."""
    # The other model needs a unique constraint of (organization, id). On SQLite nothing changes.

    # The second line of defence: services look rows up by their organization, under its lock. Django has no field for a
    # foreign key of two columns, and SQLite cannot add one to a table.
    def constraint_name(table: Any) -> str:
        # A renamed model keeps its table, and so its constraint.
        return f"{table.db_table.removeprefix(f'{app}_')}_{field}_of_organization"

    def add(apps: Any, editor: BaseDatabaseSchemaEditor) -> None:
        if editor.connection.vendor != "postgresql":
            return
        table = apps.get_model(app, model)._meta
        column = table.get_field(field)
        names = (table.db_table, constraint_name(table), column.column, column.related_model._meta.db_table)
        own, constraint, reference, other = map(editor.quote_name, names)
        # Deferred to the end of the transaction, like Django's own: Django chooses the order of deletions.
        editor.execute(
            f"ALTER TABLE {own} ADD CONSTRAINT {constraint} FOREIGN KEY (organization_id, {reference})"
            f" REFERENCES {other} (organization_id, id) DEFERRABLE INITIALLY DEFERRED"
        )

    def remove(apps: Any, editor: BaseDatabaseSchemaEditor) -> None:
        if editor.connection.vendor == "postgresql":
            table = apps.get_model(app, model)._meta
            own, constraint = map(editor.quote_name, (table.db_table, constraint_name(table)))
            editor.execute(f"ALTER TABLE {own} DROP CONSTRAINT {constraint}")

    return migrations.RunPython(add, remove)
