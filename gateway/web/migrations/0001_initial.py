"""Takes the idempotency records over from `orgs`, whose migrations have made the table."""

import django.db.models.deletion
import gateway.lib.clock
from django.conf import settings
from django.db import migrations, models

MOVED = ["idempotencyrecord"]


def move_permissions(apps, schema_editor):
    """Staff keep their permissions: Django would add permissions of the new app and give them to no one."""
    _move(apps, schema_editor, "orgs", "web")


def move_permissions_back(apps, schema_editor):
    _move(apps, schema_editor, "web", "orgs")


def _move(apps, schema_editor, old, new):
    # Permissions belong to the content type, and go with it.
    content_types = apps.get_model("contenttypes", "ContentType").objects
    rows = content_types.using(schema_editor.connection.alias)
    rows.filter(app_label=old, model__in=MOVED).update(app_label=new)
    content_types.clear_cache()


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("contenttypes", "0002_remove_content_type_name"),
        ("orgs", "0012_move_idempotency_record"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="IdempotencyRecord",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("key_sha256", models.BinaryField(max_length=32)),
                        ("body_sha256", models.BinaryField(max_length=32)),
                        ("status", models.PositiveSmallIntegerField(null=True)),
                        ("sealed", models.BinaryField(default=b"")),
                        ("sealing_key_id", models.CharField(blank=True, max_length=64)),
                        ("created_at", models.DateTimeField(db_index=True, default=gateway.lib.clock.now)),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("user", "key_sha256"), name="answer_once_per_key")
                        ],
                        "db_table": "orgs_rememberedanswer",
                    },
                ),
            ],
        ),
        migrations.RunPython(move_permissions, move_permissions_back, elidable=True),
    ]
