"""The schema of 0001_initial to 0011_rename_models, made at once on a new database."""

import django.db.models.deletion
import django.db.models.functions.text
import gateway.lib.clock
import gateway.lib.ids
from django.conf import settings
from django.db import migrations, models

from gateway.lib.tenancy import same_organization


class Migration(migrations.Migration):
    replaces = [
        ("orgs", "0001_initial"),
        ("orgs", "0002_invitation"),
        ("orgs", "0003_known_tool"),
        ("orgs", "0004_user_email_verified"),
        ("orgs", "0005_remembered_answer"),
        ("orgs", "0006_known_tool_definitions"),
        ("orgs", "0007_people_who_come_back"),
        ("orgs", "0008_tool_lists_by_credential"),
        ("orgs", "0009_word_of_the_identity_provider"),
        ("orgs", "0010_rows_of_one_organization"),
        ("orgs", "0011_rename_models"),
    ]

    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.CreateModel(
            name="Organization",
            fields=[
                (
                    "id",
                    models.UUIDField(default=gateway.lib.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=100)),
                (
                    "default_server_access",
                    models.CharField(
                        choices=[
                            ("none", "None: members need a grant for each vendor"),
                            ("all", "All: members may use every connected vendor"),
                        ],
                        default="none",
                        max_length=8,
                    ),
                ),
                ("created_at", models.DateTimeField(default=gateway.lib.clock.now)),
            ],
        ),
        migrations.CreateModel(
            name="User",
            fields=[
                ("password", models.CharField(max_length=128, verbose_name="password")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                (
                    "id",
                    models.UUIDField(default=gateway.lib.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("email", models.EmailField(db_index=True, max_length=254)),
                ("first_name", models.CharField(blank=True, max_length=100)),
                ("last_name", models.CharField(blank=True, max_length=100)),
                ("display_name", models.CharField(blank=True, max_length=100)),
                ("is_staff", models.BooleanField(default=False)),
                ("is_active", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(default=gateway.lib.clock.now)),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
                ("email_verified", models.BooleanField(default=False)),
            ],
            options={
                "abstract": False,
                "indexes": [models.Index(django.db.models.functions.text.Upper("email"), name="user_by_email_upper")],
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "role",
                    models.CharField(
                        choices=[("member", "Member"), ("admin", "Admin"), ("owner", "Owner")],
                        default="member",
                        max_length=8,
                    ),
                ),
                ("joined_at", models.DateTimeField(default=gateway.lib.clock.now)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="memberships", to="orgs.organization"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("organization", "user"), name="member_once_per_organization"),
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["member", "admin", "owner"])), name="membership_role"
                    ),
                    models.UniqueConstraint(fields=("organization", "id"), name="membership_of_organization"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Team",
            fields=[
                (
                    "id",
                    models.UUIDField(default=gateway.lib.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=100)),
                ("created_at", models.DateTimeField(default=gateway.lib.clock.now)),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="teams", to="orgs.organization"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("organization", "name"), name="team_name_once_per_organization"),
                    models.UniqueConstraint(fields=("organization", "id"), name="team_of_organization"),
                ],
            },
        ),
        migrations.CreateModel(
            name="TeamMembership",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("joined_at", models.DateTimeField(default=gateway.lib.clock.now)),
                (
                    "membership",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="team_memberships",
                        to="orgs.membership",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="team_memberships", to="orgs.team"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("team", "membership"), name="team_member_once")],
            },
        ),
        migrations.CreateModel(
            name="ToolAllowlist",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("vendor", models.CharField(max_length=40)),
                (
                    "role",
                    models.CharField(
                        choices=[("member", "Member"), ("admin", "Admin"), ("owner", "Owner")], max_length=8
                    ),
                ),
                ("tools", models.JSONField(default=list)),
                ("updated_at", models.DateTimeField(default=gateway.lib.clock.now)),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tool_allowlists",
                        to="orgs.organization",
                    ),
                ),
                (
                    "updated_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("organization", "vendor", "role"), name="allowlist_once_per_vendor_and_role"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Identity",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("issuer", models.CharField(max_length=255)),
                ("sub", models.CharField(max_length=255)),
                ("created_at", models.DateTimeField(default=gateway.lib.clock.now)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="identities",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("asked_at", models.DateTimeField(blank=True, null=True)),
                ("confirmed_at", models.DateTimeField(blank=True, null=True)),
                ("refresh_key_id", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("refresh_sealed", models.BinaryField(db_default=b"", default=b"")),
                ("refused_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name_plural": "identities",
                "constraints": [models.UniqueConstraint(fields=("issuer", "sub"), name="identity_once_per_issuer")],
            },
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                (
                    "id",
                    models.UUIDField(default=gateway.lib.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                ("token_sha256", models.BinaryField(max_length=32, unique=True)),
                ("token_sealed", models.BinaryField()),
                ("token_key_id", models.CharField(max_length=64)),
                ("email", models.EmailField(blank=True, max_length=254)),
                ("max_uses", models.PositiveSmallIntegerField(default=1)),
                ("use_count", models.PositiveSmallIntegerField(default=0)),
                ("created_at", models.DateTimeField(default=gateway.lib.clock.now)),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
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
                        on_delete=django.db.models.deletion.CASCADE, related_name="invitations", to="orgs.organization"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["organization", "-created_at"], name="invitation_by_organization")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("use_count__lte", models.F("max_uses"))), name="invitation_uses_within_max"
                    ),
                    models.CheckConstraint(condition=models.Q(("max_uses__gte", 1)), name="invitation_has_a_use"),
                ],
            },
        ),
        migrations.CreateModel(
            name="KnownTool",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("vendor", models.CharField(max_length=40)),
                ("tool", models.CharField(max_length=255)),
                ("seen_sha256", models.BinaryField(max_length=33)),
                ("approved_sha256", models.BinaryField(max_length=33)),
                ("seen_at", models.DateTimeField(default=gateway.lib.clock.now)),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="known_tools", to="orgs.organization"
                    ),
                ),
                ("approved_definition", models.TextField(blank=True, default="")),
                ("seen_definition", models.TextField(blank=True, default="")),
                ("credential_scope", models.CharField(blank=True, db_default="", default="", max_length=60)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("organization", "vendor", "credential_scope", "tool"), name="known_tool_once_per_list"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Removal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("removed_at", models.DateTimeField(default=gateway.lib.clock.now)),
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
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("organization", "user"), name="removal_once_per_person")
                ],
            },
        ),
        migrations.CreateModel(
            name="UsedLogoutToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("token_sha256", models.BinaryField(max_length=32, unique=True)),
                ("used_at", models.DateTimeField(db_index=True, default=gateway.lib.clock.now)),
            ],
        ),
        migrations.CreateModel(
            name="IdempotencyRecord",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key_sha256", models.BinaryField(max_length=32)),
                ("body_sha256", models.BinaryField(max_length=32)),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("sealed", models.BinaryField(default=b"")),
                ("sealing_key_id", models.CharField(blank=True, max_length=64)),
                ("created_at", models.DateTimeField(db_index=True, default=gateway.lib.clock.now)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("user", "key_sha256"), name="answer_once_per_key")],
                "db_table": "orgs_rememberedanswer",
            },
        ),
        migrations.CreateModel(
            name="ToolSnapshot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("vendor", models.CharField(max_length=40)),
                ("looked_at", models.DateTimeField(default=gateway.lib.clock.now)),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tool_snapshots",
                        to="orgs.organization",
                    ),
                ),
                ("credential_scope", models.CharField(blank=True, db_default="", default="", max_length=60)),
                ("folded", models.PositiveIntegerField(db_default=0, default=0)),
                ("recorded", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("recorded_since", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("organization", "vendor", "credential_scope"), name="tool_look_once_per_list"
                    )
                ],
                "db_table": "orgs_toollook",
            },
        ),
        migrations.CreateModel(
            name="ServerAccess",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("vendor", models.CharField(max_length=40)),
                ("granted_at", models.DateTimeField(default=gateway.lib.clock.now)),
                (
                    "granted_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "membership",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="server_access",
                        to="orgs.membership",
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="server_access",
                        to="orgs.organization",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="server_access",
                        to="orgs.team",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("membership__isnull", False), ("team__isnull", True)),
                            models.Q(("membership__isnull", True), ("team__isnull", False)),
                            _connector="OR",
                        ),
                        name="grant_has_one_principal",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("membership__isnull", False)),
                        fields=("organization", "membership", "vendor"),
                        name="member_grant_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("team__isnull", False)),
                        fields=("organization", "team", "vendor"),
                        name="team_grant_once",
                    ),
                ],
                "db_table": "orgs_serveraccessgrant",
                "verbose_name_plural": "server access",
            },
        ),
        same_organization("orgs", "ServerAccess", "membership"),
        same_organization("orgs", "ServerAccess", "team"),
    ]
