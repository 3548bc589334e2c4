"""The schema of 0001_initial to 0005_rename_models, made at once on a new database."""

import django.db.models.deletion
import gateway.lib.clock
import gateway.lib.ids
import oauth2_provider.generators
import oauth2_provider.models
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("oauth_ext", "0001_initial"),
        ("oauth_ext", "0002_client_restricted"),
        ("oauth_ext", "0003_consent_by_redirect_address"),
        ("oauth_ext", "0004_client_of_organization"),
        ("oauth_ext", "0005_rename_models"),
    ]

    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("orgs", "0001_squashed_0011_rename_models"),
    ]

    operations = [
        migrations.CreateModel(
            name="SigningKey",
            fields=[
                ("kid", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("key_id", models.CharField(max_length=64)),
                ("sealed_private_key", models.BinaryField()),
                ("public_jwk", models.JSONField()),
                ("created_at", models.DateTimeField(default=gateway.lib.clock.now)),
                ("signs_from", models.DateTimeField()),
                ("retires_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Client",
            fields=[
                (
                    "client_id",
                    models.CharField(
                        db_index=True,
                        default=oauth2_provider.generators.generate_client_id,
                        max_length=255,
                        unique=True,
                        verbose_name="client ID",
                    ),
                ),
                (
                    "redirect_uris",
                    models.TextField(
                        blank=True, help_text="Allowed URIs list, space separated", verbose_name="redirect URIs"
                    ),
                ),
                (
                    "post_logout_redirect_uris",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="Allowed Post Logout URIs list, space separated",
                        verbose_name="post logout redirect URIs",
                    ),
                ),
                (
                    "client_type",
                    models.CharField(
                        choices=[("confidential", "Confidential"), ("public", "Public")],
                        max_length=32,
                        verbose_name="client type",
                    ),
                ),
                (
                    "authorization_grant_type",
                    models.CharField(
                        choices=[
                            ("authorization-code", "Authorization code"),
                            ("urn:ietf:params:oauth:grant-type:device_code", "Device Code"),
                            ("implicit", "Implicit"),
                            ("password", "Resource owner password-based"),
                            ("client-credentials", "Client credentials"),
                            ("openid-hybrid", "OpenID connect hybrid"),
                        ],
                        max_length=44,
                        verbose_name="authorization grant type",
                    ),
                ),
                (
                    "client_secret",
                    oauth2_provider.models.ClientSecretField(
                        blank=True,
                        db_index=True,
                        default=oauth2_provider.generators.generate_client_secret,
                        help_text="Client secret for authentication",
                        max_length=255,
                        verbose_name="client secret",
                    ),
                ),
                ("hash_client_secret", models.BooleanField(default=True, verbose_name="hash client secret")),
                ("name", models.CharField(blank=True, max_length=255, verbose_name="name")),
                ("skip_authorization", models.BooleanField(default=False, verbose_name="skip authorization")),
                ("created", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("updated", models.DateTimeField(auto_now=True, verbose_name="updated")),
                (
                    "algorithm",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "No OIDC support"),
                            ("RS256", "RSA with SHA-2 256"),
                            ("HS256", "HMAC with SHA-2 256"),
                        ],
                        default="",
                        max_length=5,
                        verbose_name="algorithm",
                    ),
                ),
                (
                    "allowed_origins",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="Allowed origins list to enable CORS, space separated",
                        verbose_name="allowed origins",
                    ),
                ),
                (
                    "registration_source",
                    models.CharField(
                        choices=[
                            ("manual", "Manual"),
                            ("dcr", "Dynamic Client Registration"),
                            ("cimd", "Client ID Metadata Document"),
                        ],
                        default="manual",
                        help_text="How this application was registered (manual, DCR per RFC 7591, or CIMD)",
                        max_length=32,
                        verbose_name="registration source",
                    ),
                ),
                (
                    "cimd_expires_at",
                    models.DateTimeField(
                        blank=True,
                        default=None,
                        help_text="When the cached Client ID Metadata Document should be re-fetched",
                        null=True,
                        verbose_name="CIMD expires at",
                    ),
                ),
                (
                    "id",
                    models.UUIDField(default=gateway.lib.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="service_clients",
                        to="orgs.organization",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="%(app_label)s_%(class)s",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
                ("restricted", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "verbose_name": "client",
                "abstract": False,
                "indexes": [models.Index(fields=["registration_source", "created"], name="client_by_source")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("organization__isnull", True),
                            models.Q(("client_type", "confidential"), ("expires_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="service_client_is_confidential_and_expires",
                    ),
                    models.UniqueConstraint(fields=("organization", "id"), name="client_of_organization"),
                ],
            },
        ),
        migrations.CreateModel(
            name="AuthorizationRequest",
            fields=[
                (
                    "id",
                    models.UUIDField(default=gateway.lib.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("session_sha256", models.BinaryField(max_length=32)),
                ("redirect_uri", models.TextField()),
                ("scope", models.TextField()),
                ("resource", oauth2_provider.models.ResourceJSONField(default=list)),
                ("state", models.TextField(blank=True)),
                ("code_challenge", models.CharField(max_length=43)),
                ("created_at", models.DateTimeField(default=gateway.lib.clock.now)),
                ("expires_at", models.DateTimeField(db_index=True)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "client",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AgentKey",
            fields=[
                (
                    "id",
                    models.UUIDField(default=gateway.lib.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("prefix", models.CharField(max_length=32, unique=True)),
                ("secret_sha256", models.BinaryField(max_length=32)),
                ("created_at", models.DateTimeField(default=gateway.lib.clock.now)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
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
                    "client",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="agent_key",
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="DeviceGrant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("device_code_sha256", models.BinaryField(max_length=32, unique=True)),
                ("user_code_hash", models.BinaryField(max_length=32, unique=True)),
                ("scope", models.TextField()),
                ("resource", oauth2_provider.models.ResourceJSONField(default=list)),
                ("requester_ip", models.CharField(blank=True, max_length=45)),
                ("created_at", models.DateTimeField(default=gateway.lib.clock.now)),
                ("expires_at", models.DateTimeField(db_index=True)),
                ("interval_s", models.PositiveIntegerField()),
                ("last_polled_at", models.DateTimeField(blank=True, null=True)),
                (
                    "decision",
                    models.CharField(
                        blank=True, choices=[("approved", "Approved"), ("denied", "Denied")], max_length=8
                    ),
                ),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                ("consumed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "client",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Grant",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("code", models.CharField(max_length=255, unique=True, verbose_name="code")),
                ("expires", models.DateTimeField(verbose_name="expires")),
                ("redirect_uri", models.TextField(verbose_name="redirect URI")),
                ("scope", models.TextField(blank=True, verbose_name="scope")),
                ("created", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("updated", models.DateTimeField(auto_now=True, verbose_name="updated")),
                (
                    "code_challenge",
                    models.CharField(blank=True, default="", max_length=128, verbose_name="code challenge"),
                ),
                (
                    "code_challenge_method",
                    models.CharField(
                        blank=True,
                        choices=[("plain", "plain"), ("S256", "S256")],
                        default="",
                        max_length=10,
                        verbose_name="code challenge method",
                    ),
                ),
                ("nonce", models.CharField(blank=True, default="", max_length=255, verbose_name="nonce")),
                ("claims", models.TextField(blank=True, verbose_name="claims")),
                (
                    "resource",
                    oauth2_provider.models.ResourceJSONField(blank=True, default=list, verbose_name="resource"),
                ),
                ("redeemed_at", models.DateTimeField(blank=True, null=True)),
                ("family_key", models.UUIDField(blank=True, editable=False, null=True)),
                (
                    "application",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                        verbose_name="application",
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="orgs.organization"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="%(app_label)s_%(class)s",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "indexes": [models.Index(fields=["expires"], name="grant_by_expiry")],
            },
        ),
        migrations.CreateModel(
            name="IDToken",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("jti", models.UUIDField(default=uuid.uuid4, editable=False, unique=True, verbose_name="JWT Token ID")),
                ("expires", models.DateTimeField(verbose_name="expires")),
                ("scope", models.TextField(blank=True, verbose_name="scope")),
                ("created", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("updated", models.DateTimeField(auto_now=True, verbose_name="updated")),
                (
                    "application",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                        verbose_name="application",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="%(app_label)s_%(class)s",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="RememberedConsent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("scope", models.TextField()),
                ("redirect_host", models.CharField(max_length=255)),
                ("granted_at", models.DateTimeField(default=gateway.lib.clock.now)),
                ("expires_at", models.DateTimeField(db_index=True)),
                (
                    "client",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="orgs.organization"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("redirect_sha256", models.BinaryField(max_length=32, null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "client", "scope", "redirect_sha256"),
                        name="consent_once_per_client_scope_and_address",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="TokenFamily",
            fields=[
                (
                    "id",
                    models.UUIDField(default=gateway.lib.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("scope", models.TextField()),
                ("resource", oauth2_provider.models.ResourceJSONField(default=list)),
                ("redirect_host", models.CharField(blank=True, max_length=255)),
                ("created_at", models.DateTimeField(default=gateway.lib.clock.now)),
                ("last_used_at", models.DateTimeField(default=gateway.lib.clock.now)),
                ("expires_at", models.DateTimeField()),
                (
                    "approved_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "client",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="token_families",
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="orgs.organization"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "token families",
                "indexes": [
                    models.Index(fields=["organization", "-last_used_at"], name="token_family_by_org"),
                    models.Index(fields=["expires_at"], name="token_family_by_expiry"),
                    models.Index(fields=["last_used_at"], name="token_family_by_use"),
                ],
            },
        ),
        migrations.CreateModel(
            name="RefreshToken",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("token", models.TextField(verbose_name="token")),
                (
                    "token_checksum",
                    oauth2_provider.models.TokenChecksumField(max_length=64, verbose_name="token checksum"),
                ),
                ("created", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("updated", models.DateTimeField(auto_now=True, verbose_name="updated")),
                ("revoked", models.DateTimeField(null=True, verbose_name="revoked")),
                ("generation", models.PositiveIntegerField(default=0)),
                ("in_grace", models.BooleanField(default=False)),
                (
                    "application",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                        verbose_name="application",
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="orgs.organization"
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.OAUTH2_PROVIDER_REFRESH_TOKEN_MODEL,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="%(app_label)s_%(class)s",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "token_family",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="oauth_ext.tokenfamily"
                    ),
                ),
            ],
            options={
                "verbose_name": "refresh token",
                "constraints": [models.UniqueConstraint(fields=("token_checksum",), name="refresh_token_once")],
            },
        ),
        migrations.CreateModel(
            name="AccessToken",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("token", models.TextField(verbose_name="token")),
                (
                    "token_checksum",
                    oauth2_provider.models.TokenChecksumField(
                        db_index=True, max_length=64, unique=True, verbose_name="token checksum"
                    ),
                ),
                ("expires", models.DateTimeField(verbose_name="expires")),
                ("scope", models.TextField(blank=True, verbose_name="scope")),
                (
                    "resource",
                    oauth2_provider.models.ResourceJSONField(blank=True, default=list, verbose_name="resource"),
                ),
                ("created", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("updated", models.DateTimeField(auto_now=True, verbose_name="updated")),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="orgs.organization"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="%(app_label)s_%(class)s",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
                (
                    "application",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                        verbose_name="application",
                    ),
                ),
                (
                    "token_family",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="oauth_ext.tokenfamily",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="UserCodeMiss",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("counted_for", models.CharField(max_length=80)),
                ("missed_at", models.DateTimeField(default=gateway.lib.clock.now)),
            ],
            options={
                "verbose_name_plural": "user code misses",
                "indexes": [models.Index(fields=["counted_for", "missed_at"], name="user_code_miss_by_key")],
            },
        ),
        migrations.CreateModel(
            name="ServiceClientVendor",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("vendor", models.CharField(max_length=40)),
                ("granted_at", models.DateTimeField(default=gateway.lib.clock.now)),
                (
                    "client",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="restricted_vendors",
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                    ),
                ),
                (
                    "granted_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("client", "vendor"), name="service_client_grant_once")],
                "db_table": "oauth_ext_serviceclientgrant",
            },
        ),
    ]
