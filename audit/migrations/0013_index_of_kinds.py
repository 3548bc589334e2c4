"""The index of calls that are not of tools, made while calls go on. docs/decisions/0046, 0104"""

from typing import Any

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from audit.migrations._log_indexes import add_to_partitions, add_to_table

NAME = "request_log_of_kind"
NOT_TOOL = ~models.Q(kind="tool")
CONDITION = "WHERE NOT (kind = 'tool')"


def add_index(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            columns = f"(org_id, kind, id DESC NULLS LAST) INCLUDE (user_id, vendor) {CONDITION}"
            add_to_partitions(connection, cursor, {NAME: columns})
        else:
            add_to_table(cursor, {NAME: f"(org_id, kind, id, user_id, vendor) {CONDITION}"})


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("audit", "0012_kinds_of_calls")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(add_index)],
            state_operations=[
                migrations.AddIndex(
                    "requestauditentry",
                    models.Index(
                        fields=["org_id", "kind", "id", "user_id", "vendor"], name=NAME, condition=NOT_TOOL
                    ),
                )
            ],
        )
    ]
