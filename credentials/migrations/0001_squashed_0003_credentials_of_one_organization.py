"""The schema of 0001_initial to 0003_credentials_of_one_organization, made at once on a new database."""

import credentials.models
import django.db.models.deletion
import gateway.lib.clock
import gateway.lib.ids
from django.conf import settings
from django.db import migrations, models

from gateway.lib.tenancy import same_organization


class Migration(migrations.Migration):
    replaces = [
        ("credentials", "0001_initial"),
        ("credentials", "0002_initial"),
        ("credentials", "0003_credentials_of_one_organization"),
    ]

    initial = True

    dependencies = [
        ("oauth_ext", "0001_squashed_0005_rename_models"),
        ("orgs", "0001_squashed_0011_rename_models"),
    ]

    operations = [
        migrations.CreateModel(
            name="Credential",
            fields=[
                (
                    "id",
                    models.UUIDField(default=gateway.lib.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("vendor", models.CharField(max_length=40)),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("organization", "Organization"),
                            ("team", "Team"),
                            ("named_key", "Named key"),
                            ("service_client", "Service client"),
                        ],
                        max_length=16,
                    ),
                ),
                ("name", models.CharField(blank=True, max_length=100)),
                ("data_key_version", models.PositiveIntegerField()),
                ("sealed", models.BinaryField()),
                ("revision", models.PositiveIntegerField(default=1)),
                ("validated_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=gateway.lib.clock.now)),
                ("updated_at", models.DateTimeField(default=gateway.lib.clock.now)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="credentials", to="orgs.organization"
                    ),
                ),
                (
                    "service_client",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="credentials",
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=credentials.models.delete_or_unbind,
                        related_name="credentials",
                        to="orgs.team",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("name", ""),
                                ("scope", "organization"),
                                ("service_client__isnull", True),
                                ("team__isnull", True),
                            ),
                            models.Q(
                                ("name", ""),
                                ("scope", "team"),
                                ("service_client__isnull", True),
                                ("team__isnull", False),
                            ),
                            models.Q(
                                ("scope", "named_key"),
                                ("service_client__isnull", True),
                                models.Q(("name", ""), _negated=True),
                            ),
                            models.Q(
                                ("name", ""),
                                ("scope", "service_client"),
                                ("service_client__isnull", False),
                                ("team__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="credential_scope_shape",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("scope", "organization")),
                        fields=("organization", "vendor"),
                        name="organization_credential_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("scope", "team")),
                        fields=("organization", "vendor", "team"),
                        name="team_credential_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("scope", "named_key")),
                        fields=("organization", "vendor", "name"),
                        name="credential_key_name_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("scope", "named_key"), ("team__isnull", False)),
                        fields=("organization", "vendor", "team"),
                        name="credential_key_once_per_team",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("scope", "service_client")),
                        fields=("organization", "vendor", "service_client"),
                        name="service_client_credential_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="OrganizationDataKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveIntegerField()),
                ("key_id", models.CharField(max_length=64)),
                ("wrapped_key", models.BinaryField()),
                ("created_at", models.DateTimeField(default=gateway.lib.clock.now)),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="data_keys", to="orgs.organization"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("organization", "version"), name="data_key_version_once")
                ],
            },
        ),
        same_organization("credentials", "Credential", "team"),
        same_organization("credentials", "Credential", "service_client"),
    ]
