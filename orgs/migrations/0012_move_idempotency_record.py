"""Leaves the idempotency records to the app `web`. The table keeps its name and its rows."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("orgs", "0011_rename_models"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel("IdempotencyRecord")]),
    ]
