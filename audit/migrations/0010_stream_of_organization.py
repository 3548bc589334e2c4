"""Indexes along which one organization's stream is read. docs/decisions/0047"""

from django.db import migrations, models

from audit.migrations._shipping_indexes import OF_ADMIN, OF_REQUESTS, add_indexes

COLUMNS = ["org_id", "position", "id"]
FINAL = models.Q(position__isnull=False)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("audit", "0009_log_shipping")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(add_indexes)],
            state_operations=[
                migrations.AddIndex("requestauditentry", models.Index(fields=COLUMNS, name=OF_REQUESTS, condition=FINAL)),
                migrations.AddIndex("adminauditentry", models.Index(fields=COLUMNS, name=OF_ADMIN, condition=FINAL)),
            ],
        )
    ]
