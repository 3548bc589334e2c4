import uuid

from django.db import migrations, models

import gateway.lib.clock


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="KeyHolder",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=120)),
                ("key_names", models.JSONField()),
                ("seen_at", models.DateTimeField(default=gateway.lib.clock.now)),
            ],
        ),
        migrations.CreateModel(
            name="KeyRecord",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[("master", "Master"), ("secret", "Secret"), ("signing", "Signing")], max_length=10
                    ),
                ),
                ("name", models.CharField(max_length=64)),
                ("first_seen_at", models.DateTimeField(default=gateway.lib.clock.now)),
                ("used_from", models.DateTimeField(blank=True, null=True)),
                ("is_current", models.BooleanField(default=False)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "name"), name="key_record_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("is_current", True)), fields=("kind",), name="one_current_key_of_a_kind"
                    ),
                ],
            },
        ),
    ]
