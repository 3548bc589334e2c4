"""Indexes of the request log that answer every filter alone. docs/decisions/0046"""

from django.db import migrations, models

from audit.migrations._log_indexes import REPLACED, replace_indexes

NOT_SUCCESS = ~models.Q(status="success")
COMBINED = ["vendor", "tool", "source"]
INDEXES = (
    models.Index(fields=["org_id", "id", *COMBINED], name="request_log_of_org"),
    models.Index(fields=["org_id", "user_id", "id", *COMBINED], name="request_log_of_user"),
    models.Index(fields=["org_id", "vendor", "id", "tool", "source"], name="request_log_of_vendor"),
    models.Index(fields=["org_id", "request_id", "id"], name="request_log_of_request"),
    models.Index(
        fields=["org_id", "status", "id", "user_id", *COMBINED], name="request_log_of_status", condition=NOT_SUCCESS
    ),
)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("audit", "0007_usage_hours")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(replace_indexes)],
            state_operations=[
                *(migrations.RemoveIndex("requestauditentry", name) for name in REPLACED),
                *(migrations.AddIndex("requestauditentry", index) for index in INDEXES),
            ],
        )
    ]
