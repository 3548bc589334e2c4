from django.db import migrations

from gateway.lib.tenancy import same_organization


class Migration(migrations.Migration):
    dependencies = [
        ("credentials", "0002_initial"),
        ("oauth_ext", "0004_client_of_organization"),
        ("orgs", "0010_rows_of_one_organization"),
    ]

    operations = [
        same_organization("credentials", "Credential", "team"),
        same_organization("credentials", "Credential", "service_client"),
    ]
