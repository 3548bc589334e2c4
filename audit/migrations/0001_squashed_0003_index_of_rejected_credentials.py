"""The schema of 0001_initial to 0003_index_of_rejected_credentials, made at once on a new database."""

import gateway.lib.clock
import gateway.lib.ids
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("audit", "0001_initial"),
        ("audit", "0002_count_of_rate_limited_calls"),
        ("audit", "0003_index_of_rejected_credentials"),
    ]

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="AdminAuditEntry",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.lib.ids.new_log_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("timestamp", models.DateTimeField(default=gateway.lib.clock.now)),
                ("org_id", models.UUIDField()),
                ("event_type", models.CharField(max_length=60)),
                ("actor_id", models.CharField(max_length=120)),
                ("actor_label", models.CharField(max_length=200)),
                ("target_id", models.CharField(blank=True, max_length=120)),
                ("target_label", models.CharField(blank=True, max_length=200)),
                ("metadata", models.JSONField(blank=True, default=dict)),
                ("ip_address", models.CharField(blank=True, max_length=45)),
                ("request_id", models.CharField(blank=True, max_length=64)),
            ],
            options={
                "verbose_name_plural": "admin audit entries",
                "indexes": [models.Index(fields=["org_id", "-timestamp", "-id"], name="admin_audit_by_org")],
            },
        ),
        migrations.CreateModel(
            name="RequestAuditEntry",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.lib.ids.new_log_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("timestamp", models.DateTimeField(default=gateway.lib.clock.now)),
                ("org_id", models.UUIDField()),
                ("user_id", models.CharField(max_length=120)),
                ("user_label", models.CharField(max_length=200)),
                ("vendor", models.CharField(blank=True, max_length=40)),
                ("tool", models.CharField(blank=True, max_length=128)),
                ("source", models.CharField(choices=[("mcp", "MCP"), ("cli", "CLI")], max_length=3)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("success", "Success"),
                            ("error", "Error"),
                            ("denied", "Denied"),
                            ("unknown", "Unknown"),
                        ],
                        max_length=8,
                    ),
                ),
                ("error_code", models.CharField(blank=True, max_length=40)),
                ("duration_ms", models.PositiveIntegerField(default=0)),
                ("vendor_ms", models.PositiveIntegerField(default=0)),
                ("credential_scope", models.CharField(blank=True, max_length=16)),
                ("credential_name", models.CharField(blank=True, max_length=100)),
                ("cached", models.BooleanField(default=False)),
                ("client_id", models.CharField(blank=True, max_length=255)),
                ("client_name", models.CharField(blank=True, max_length=100)),
                ("ip_address", models.CharField(blank=True, max_length=45)),
                ("request_id", models.CharField(max_length=64)),
                ("request_bytes", models.PositiveIntegerField(default=0)),
                ("response_bytes", models.PositiveIntegerField(default=0)),
                ("count", models.IntegerField(db_default=1, default=1)),
                ("count_parts", models.JSONField(default=None, editable=False, null=True)),
            ],
            options={
                "verbose_name_plural": "request audit entries",
                "indexes": [
                    models.Index(fields=["org_id", "-timestamp", "-id"], name="request_audit_by_org"),
                    models.Index(fields=["org_id", "user_id", "-timestamp", "-id"], name="request_audit_by_user"),
                    models.Index(fields=["org_id", "vendor", "-timestamp", "-id"], name="request_audit_by_vendor"),
                    models.Index(fields=["org_id", "tool", "-timestamp", "-id"], name="request_audit_by_tool"),
                    models.Index(fields=["org_id", "status", "-timestamp", "-id"], name="request_audit_by_status"),
                    models.Index(fields=["org_id", "request_id", "-timestamp", "-id"], name="request_audit_by_request"),
                    models.Index(
                        condition=models.Q(("error_code", "vendor_rejected_credentials")),
                        fields=["org_id", "-timestamp"],
                        name="request_audit_rejected",
                    ),
                ],
            },
        ),
    ]
