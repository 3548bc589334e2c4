from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("audit", "0010_stream_of_organization")]

    operations = [
        migrations.CreateModel(
            name="SentHour",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("org_id", models.UUIDField()),
                ("hour", models.DateTimeField()),
                ("sent_bytes", models.BigIntegerField(default=0)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("org_id", "hour"), name="sent_hour_of_an_organization")
                ]
            },
        ),
        migrations.AddField("refusedrecord", "is_certain", models.BooleanField(default=False, db_default=False)),
    ]
