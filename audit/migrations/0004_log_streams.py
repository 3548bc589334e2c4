"""The logs by id, with positions in their streams. docs/decisions/0041, 0042

On PostgreSQL the next migration makes the columns and indexes, beside the calls.
"""

import gateway.lib.ids
from django.db import migrations, models

from audit.migrations._partitioning import OLD_INDEXES, ExceptOnPostgreSQL

NOT_FINAL = ~models.Q(position__isnull=False)
POSITION = models.BigIntegerField(default=None, editable=False, null=True)


def finish_old_rows(apps, schema_editor):
    """All rows that there are become final; the process that could have finished them is not running now."""
    if schema_editor.connection.vendor != "postgresql":
        for name in ("RequestAuditEntry", "AdminAuditEntry"):
            apps.get_model("audit", name).objects.update(position=1)


class Migration(migrations.Migration):
    dependencies = [("audit", "0003_index_of_rejected_credentials")]

    operations = [
        migrations.CreateModel(
            name="StreamCursor",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80)),
                ("log", models.CharField(max_length=8)),
                ("position", models.BigIntegerField(default=0)),
                ("row_id", models.UUIDField(default=gateway.lib.ids.NO_ID)),
                ("reached_at", models.DateTimeField(default=None, null=True)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("name", "log"), name="stream_cursor_of_a_consumer")]
            },
        ),
        migrations.CreateModel(
            name="StreamEra",
            fields=[
                ("identity", models.CharField(max_length=80, primary_key=True, serialize=False)),
                ("start", models.BigIntegerField()),
            ],
        ),
        ExceptOnPostgreSQL(
            [
                migrations.AddField("requestauditentry", "position", POSITION),
                migrations.AddField("adminauditentry", "position", POSITION),
                *(migrations.RemoveIndex("requestauditentry", name) for name in OLD_INDEXES),
                migrations.RemoveIndex("adminauditentry", "admin_audit_by_org"),
                *(
                    migrations.AddIndex("requestauditentry", index)
                    for index in (
                        models.Index(fields=["org_id", "id"], name="request_log_by_org"),
                        models.Index(fields=["org_id", "user_id", "id"], name="request_log_by_user"),
                        models.Index(fields=["org_id", "vendor", "id"], name="request_log_by_vendor"),
                        models.Index(fields=["org_id", "request_id", "id"], name="request_log_by_request"),
                        models.Index(
                            fields=["position", "id"],
                            name="request_log_stream",
                            condition=models.Q(position__isnull=False),
                        ),
                        models.Index(
                            fields=["org_id", "status", "id"],
                            name="request_log_not_success",
                            condition=~models.Q(status="success"),
                        ),
                        models.Index(
                            fields=["org_id", "id"],
                            name="request_log_rejected",
                            condition=models.Q(error_code="vendor_rejected_credentials"),
                        ),
                        models.Index(fields=["id"], name="request_log_open", condition=NOT_FINAL),
                    )
                ),
                *(
                    migrations.AddIndex("adminauditentry", index)
                    for index in (
                        models.Index(fields=["org_id", "id"], name="admin_log_by_org"),
                        models.Index(fields=["org_id", "event_type", "id"], name="admin_log_by_event"),
                        models.Index(fields=["org_id", "actor_id", "id"], name="admin_log_by_actor"),
                        models.Index(fields=["org_id", "target_id", "id"], name="admin_log_by_target"),
                        models.Index(
                            fields=["position", "id"],
                            name="admin_log_stream",
                            condition=models.Q(position__isnull=False),
                        ),
                        models.Index(fields=["id"], name="admin_log_open", condition=NOT_FINAL),
                    )
                ),
            ]
        ),
        ExceptOnPostgreSQL([migrations.RunPython(finish_old_rows, migrations.RunPython.noop)]),
        *(
            migrations.AlterField(model, name, field)
            for model in ("requestauditentry", "adminauditentry")
            for name, field in (
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("timestamp", models.DateTimeField()),
            )
        ),
    ]
