"""Roll-ups of the request log. They outlive its rows and have plain ids, as it has. Spec: §2 Usage aggregates · D151"""

from __future__ import annotations

from django.db import models

from audit.usage_keys import Outcome

OUTCOME_CHOICES = [(outcome.value, outcome.name.capitalize().replace("_", " ")) for outcome in Outcome]


class RollUp(models.Model):
    """Sums of one hour, or of one whole day, in UTC. Both levels are fed in the same transaction."""

    # Made of the other columns of the key, and the only index: see `audit.usage.row_ids`.
    id = models.UUIDField(primary_key=True, editable=False)
    org_id = models.UUIDField()
    day = models.DateField()
    hour = models.SmallIntegerField()  # 0 to 23, or usage_keys.WHOLE_DAY
    vendor = models.CharField(max_length=40, blank=True)
    calls = models.BigIntegerField()

    class Meta:
        abstract = True


class UsageCount(RollUp):
    """Calls of one subject with one tool, route and outcome."""

    tool = models.CharField(max_length=128, blank=True)
    user_id = models.CharField(max_length=120)
    source = models.CharField(max_length=3)
    outcome = models.CharField(max_length=12, choices=OUTCOME_CHOICES)
    # Sums over the rows of the log.
    duration_ms = models.BigIntegerField()
    vendor_ms = models.BigIntegerField()
    request_bytes = models.BigIntegerField()
    response_bytes = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.day} {self.hour} {self.user_id} {self.tool} {self.outcome}: {self.calls}"


class UsageDuration(RollUp):
    """A histogram of a vendor's durations: calls with the outcome success or error, by bucket."""

    bucket = models.SmallIntegerField()  # see audit.usage.durations

    def __str__(self) -> str:
        return f"{self.day} {self.hour} {self.vendor} bucket {self.bucket}: {self.calls}"


class UsageLabel(models.Model):
    """The label that a subject had at its latest call in an organization. Spec: D86"""

    org_id = models.UUIDField()
    user_id = models.CharField(max_length=120)
    label = models.CharField(max_length=200)
    row_id = models.UUIDField()  # of that call in the log: ids are times

    class Meta:
        constraints = [models.UniqueConstraint(fields=["org_id", "user_id"], name="usage_label_of_a_subject")]

    def __str__(self) -> str:
        return self.label


class UsageDay(models.Model):
    """All figures of one organization's day, made of its roll-ups once it is over. See `audit.usage.ready_days`.

    A row without a version waits to be made: the roll-ups of its day changed since.
    """

    # Made of the organization and the day, and serves as their index: see `audit.usage.row_ids`.
    id = models.UUIDField(primary_key=True, editable=False)
    org_id = models.UUIDField()
    day = models.DateField()
    version = models.UUIDField(null=True, editable=False)  # another one each time that they are made
    by_day = models.BinaryField(null=True)
    by_vendor = models.BinaryField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["day"], name="usage_days_to_make", condition=models.Q(version=None)),
            models.Index(fields=["org_id"], name="usage_days_of_organizations"),  # its organizations are found along it
        ]

    def __str__(self) -> str:
        return f"{self.day} of {self.org_id}"
