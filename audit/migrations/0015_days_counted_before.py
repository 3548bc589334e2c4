"""Days that were counted before 0014: the worker makes their figures ready. docs/decisions/0119"""

from django.db import migrations

from audit.organizations import organizations_of
from audit.usage import row_ids

BATCH_ROWS = 1_000


def enter_days(apps, schema_editor):
    """Enters the days as waiting, one transaction for each organization. Days that are entered stay as they are."""
    counts, labels, days = (apps.get_model("audit", name) for name in ("UsageCount", "UsageLabel", "UsageDay"))
    for org_id in organizations_of(labels):
        low, high = row_ids.of_all_days(org_id)
        counted = counts.objects.filter(org_id=org_id, id__gte=low, id__lte=high).order_by("day").distinct()
        days.objects.bulk_create(
            (
                days(id=row_ids.day_id(org_id, day), org_id=org_id, day=day)
                for day in counted.values_list("day", flat=True)
            ),
            ignore_conflicts=True,
            batch_size=BATCH_ROWS,
        )


class Migration(migrations.Migration):
    atomic = False  # so that a run that was stopped keeps what it entered

    dependencies = [("audit", "0014_ready_days_of_usage")]

    operations = [migrations.RunPython(enter_days, migrations.RunPython.noop)]
