"""Renames models. The tables keep their names, because processes of an earlier release run on during an upgrade."""

from django.conf import settings
from django.db import migrations, models

RENAMED = {"serviceclientgrant": "serviceclientvendor"}


def rename_permissions(apps, schema_editor):
    """Staff keep their permissions: Django would add permissions under the new names and give them to no one."""
    _rename(apps, schema_editor, RENAMED)


def rename_permissions_back(apps, schema_editor):
    _rename(apps, schema_editor, {new: old for old, new in RENAMED.items()})


def _rename(apps, schema_editor, names):
    permissions = apps.get_model("auth", "Permission").objects.using(schema_editor.connection.alias)
    for old, new in names.items():
        for action in ("add", "change", "delete", "view"):
            rows = permissions.filter(content_type__app_label="oauth_ext", codename=f"{action}_{old}")
            rows.update(codename=f"{action}_{new}")


class Migration(migrations.Migration):
    dependencies = [
        ("oauth_ext", "0004_client_of_organization"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.AlterModelTable("ServiceClientGrant", "oauth_ext_serviceclientgrant"),
        migrations.RenameModel("ServiceClientGrant", "ServiceClientVendor"),
        migrations.AlterField(
            "ServiceClientVendor",
            "client",
            models.ForeignKey(on_delete=models.deletion.CASCADE, related_name="restricted_vendors", to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL),
        ),
        migrations.RunPython(rename_permissions, rename_permissions_back, elidable=True),
    ]
