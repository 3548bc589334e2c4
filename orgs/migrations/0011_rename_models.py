"""Renames models. The tables keep their names, because processes of an earlier release run on during an upgrade."""

from django.db import migrations, models

RENAMED = {"rememberedanswer": "idempotencyrecord", "toollook": "toolsnapshot", "serveraccessgrant": "serveraccess"}


def rename_permissions(apps, schema_editor):
    """Staff keep their permissions: Django would add permissions under the new names and give them to no one."""
    _rename(apps, schema_editor, RENAMED)


def rename_permissions_back(apps, schema_editor):
    _rename(apps, schema_editor, {new: old for old, new in RENAMED.items()})


def _rename(apps, schema_editor, names):
    permissions = apps.get_model("auth", "Permission").objects.using(schema_editor.connection.alias)
    for old, new in names.items():
        for action in ("add", "change", "delete", "view"):
            rows = permissions.filter(content_type__app_label="orgs", codename=f"{action}_{old}")
            rows.update(codename=f"{action}_{new}")


class Migration(migrations.Migration):
    dependencies = [
        ("orgs", "0010_rows_of_one_organization"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.AlterModelTable("RememberedAnswer", "orgs_rememberedanswer"),
        migrations.RenameModel("RememberedAnswer", "IdempotencyRecord"),
        migrations.AlterModelTable("ToolLook", "orgs_toollook"),
        migrations.RenameModel("ToolLook", "ToolSnapshot"),
        migrations.AlterModelTable("ServerAccessGrant", "orgs_serveraccessgrant"),
        migrations.RenameModel("ServerAccessGrant", "ServerAccess"),
        migrations.AlterModelOptions("ServerAccess", {"verbose_name_plural": "server access"}),
        migrations.AlterField(
            "ServerAccess",
            "organization",
            models.ForeignKey(on_delete=models.deletion.CASCADE, related_name="server_access", to="orgs.organization"),
        ),
        migrations.AlterField(
            "ServerAccess",
            "membership",
            models.ForeignKey(blank=True, null=True, on_delete=models.deletion.CASCADE, related_name="server_access", to="orgs.membership"),
        ),
        migrations.AlterField(
            "ServerAccess",
            "team",
            models.ForeignKey(blank=True, null=True, on_delete=models.deletion.CASCADE, related_name="server_access", to="orgs.team"),
        ),
        migrations.AlterField(
            "ToolSnapshot",
            "organization",
            models.ForeignKey(on_delete=models.deletion.CASCADE, related_name="tool_snapshots", to="orgs.organization"),
        ),
        migrations.RunPython(rename_permissions, rename_permissions_back, elidable=True),
    ]
