"""Calls of resources, prompts and completions beside those of tools. Earlier rows are of tools. docs/decisions/0104"""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("audit", "0011_sent_hours_and_certain_refusals")]

    operations = [
        # Defaults of the database: no row is written again, and processes of the release before go on writing theirs.
        migrations.AddField(
            "requestauditentry",
            "kind",
            models.CharField(
                choices=[
                    ("tool", "Tool"),
                    ("resource", "Resource"),
                    ("prompt", "Prompt"),
                    ("completion", "Completion"),
                ],
                db_default="tool",
                default="tool",
                max_length=10,
            ),
        ),
        migrations.AddField(
            "requestauditentry", "item", models.CharField(blank=True, db_default="", default="", max_length=512)
        ),
    ]
