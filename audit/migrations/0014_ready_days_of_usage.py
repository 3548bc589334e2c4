"""Figures of finished days. Processes of the release before write none, and read none. docs/decisions/0119"""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("audit", "0013_index_of_kinds")]

    operations = [
        migrations.CreateModel(
            name="UsageDay",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("org_id", models.UUIDField()),
                ("day", models.DateField()),
                ("version", models.UUIDField(editable=False, null=True)),
                ("by_day", models.BinaryField(null=True)),
                ("by_vendor", models.BinaryField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("version", None)), fields=["day"], name="usage_days_to_make"),
                    models.Index(fields=["org_id"], name="usage_days_of_organizations"),
                ],
            },
        ),
    ]
