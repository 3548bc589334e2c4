"""On PostgreSQL: the request log's partitions, indexes and positions, made beside the calls. docs/decisions/0041

Each step finds out whether an earlier attempt has made it, so the migration can be run again wherever it stopped.
"""

from django.db import migrations

from audit import stream_position
from audit.migrations._partitioning import partition


def begin_era(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        stream_position.begin_era(schema_editor.connection)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("audit", "0004_log_streams")]

    operations = [migrations.RunPython(partition), migrations.RunPython(begin_era)]
