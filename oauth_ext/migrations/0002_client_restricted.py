from django.db import migrations, models


def restrict_clients_with_a_list(apps, schema_editor):
    """Clients that have a list were restricted by it until now, and all others were not."""
    listed = apps.get_model("oauth_ext", "ServiceClientGrant").objects.values("client_id")
    apps.get_model("oauth_ext", "Client")._base_manager.filter(pk__in=listed).update(restricted=True)


class Migration(migrations.Migration):

    dependencies = [
        ('oauth_ext', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='client',
            name='restricted',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.RunPython(restrict_clients_with_a_list, migrations.RunPython.noop),
    ]
