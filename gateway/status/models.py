"""States of each part as the schedule found them, day by day, and incidents. No row belongs to an organization."""

from __future__ import annotations

from uuid import uuid4

from django.db import models

from gateway.lib import clock
from gateway.status.parts import PART_MAX_CHARACTERS, Status
from gateway.status.stages import Kind, Severity, Stage

TITLE_MAX_CHARACTERS, TEXT_MAX_CHARACTERS, LABEL_MAX_CHARACTERS = 120, 4_000, 200


class PartStatus(models.Model):
    """The last sample of one part. `since`: the first of the samples in a row with this status."""

    part = models.CharField(primary_key=True, max_length=PART_MAX_CHARACTERS)
    status = models.CharField(max_length=12, choices=Status)
    since = models.DateTimeField()
    checked_at = models.DateTimeField()

    class Meta:
        ordering = ("part",)
        verbose_name_plural = "part statuses"

    def __str__(self) -> str:
        return f"{self.part}: {self.status}"


class PartDay(models.Model):
    """How long a part was in each state on one day in UTC, in seconds. The rest of the day is not known."""

    part = models.CharField(max_length=PART_MAX_CHARACTERS)
    day = models.DateField(db_index=True)
    operational_s = models.PositiveIntegerField(default=0, db_default=0)
    degraded_s = models.PositiveIntegerField(default=0, db_default=0)
    down_s = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        ordering = ("part", "day")
        constraints = (models.UniqueConstraint(fields=["part", "day"], name="one_row_of_a_part_and_day"),)

    def __str__(self) -> str:
        return f"{self.part}, {self.day}"


class Incident(models.Model):
    """An incident or maintenance, as staff posted it. Nothing is edited: an update follows."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    kind = models.CharField(max_length=12, choices=Kind, default=Kind.INCIDENT)
    title = models.CharField(max_length=TITLE_MAX_CHARACTERS)
    severity = models.CharField(max_length=10, choices=Severity)
    # Names of gateway.status.parts.
    parts = models.JSONField()
    # Of an incident, when it began; of maintenance, its time range.
    starts_at = models.DateTimeField(db_index=True)
    ends_at = models.DateTimeField(null=True, blank=True)
    posted_at = models.DateTimeField(default=clock.now)
    # Null while it is open.
    ended_at = models.DateTimeField(null=True, blank=True, db_index=True)

    class Meta:
        ordering = ("-starts_at", "-posted_at")

    def __str__(self) -> str:
        return self.title


class IncidentUpdate(models.Model):
    """One text about an incident, plain. The newest one has its stage."""

    incident = models.ForeignKey(Incident, on_delete=models.PROTECT, related_name="updates")
    stage = models.CharField(max_length=15, choices=Stage)
    text = models.TextField(max_length=TEXT_MAX_CHARACTERS)
    posted_at = models.DateTimeField(default=clock.now)
    # The person's id and label. Pages show neither.
    posted_by_id = models.CharField(max_length=40)
    posted_by = models.CharField(max_length=LABEL_MAX_CHARACTERS)

    class Meta:
        ordering = ("-posted_at", "-id")

    def __str__(self) -> str:
        return f"{self.get_stage_display()}: {self.incident_id}"
