"""The kinds of incidents, their severities, and the stages of their updates."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy


class Kind(models.TextChoices):
    INCIDENT = "incident", gettext_lazy("Incident")
    MAINTENANCE = "maintenance", gettext_lazy("Maintenance")


class Severity(models.TextChoices):
    # From the mildest to the worst.
    MINOR = "minor", gettext_lazy("Minor")
    MAJOR = "major", gettext_lazy("Major")
    CRITICAL = "critical", gettext_lazy("Critical")


class Stage(models.TextChoices):
    INVESTIGATING = "investigating", gettext_lazy("Investigating")
    IDENTIFIED = "identified", gettext_lazy("Identified")
    MONITORING = "monitoring", gettext_lazy("Monitoring")
    RESOLVED = "resolved", gettext_lazy("Resolved")
    SCHEDULED = "scheduled", gettext_lazy("Scheduled")
    UNDER_WAY = "under_way", gettext_lazy("Under way")
    COMPLETED = "completed", gettext_lazy("Completed")


# The order of the updates of each kind. The last one ends it.
STAGES = {
    Kind.INCIDENT: (Stage.INVESTIGATING, Stage.IDENTIFIED, Stage.MONITORING, Stage.RESOLVED),
    Kind.MAINTENANCE: (Stage.SCHEDULED, Stage.UNDER_WAY, Stage.COMPLETED),
}
