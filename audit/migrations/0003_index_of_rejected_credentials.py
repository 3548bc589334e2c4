"""A partial index on the request log, built without keeping calls from being recorded."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState


class AddIndexBesideCalls(AddIndexConcurrently):
    """CREATE INDEX CONCURRENTLY on PostgreSQL, where an ordinary one holds up every insert; SQLite has no such."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        if schema_editor.connection.vendor == "postgresql":
            # A build that was broken off leaves an unusable index behind.
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {schema_editor.quote_name(self.index.name)}")
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        else:
            migrations.AddIndex.database_forwards(self, app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        if schema_editor.connection.vendor == "postgresql":
            super().database_backwards(app_label, schema_editor, from_state, to_state)
        else:
            migrations.AddIndex.database_backwards(self, app_label, schema_editor, from_state, to_state)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("audit", "0002_count_of_rate_limited_calls")]

    operations = [
        AddIndexBesideCalls(
            model_name="requestauditentry",
            index=models.Index(
                fields=["org_id", "-timestamp"],
                condition=models.Q(error_code="vendor_rejected_credentials"),
                name="request_audit_rejected",
            ),
        ),
    ]
