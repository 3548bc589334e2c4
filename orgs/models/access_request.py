"""Requests of members for access to a vendor."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from audit.actor import Target
from gateway.lib import clock, ids

REASON_MAX_CHARACTERS = 500


class AccessRequest(models.Model):
    """One member's request for one vendor. Another request takes the place of a decided one. Spec: D169"""

    class State(models.TextChoices):
        WAITING = "waiting"
        APPROVED = "approved"
        DECLINED = "declined"

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="access_requests")
    # The membership and not the person: a request ends when its member leaves.
    membership = models.ForeignKey("orgs.Membership", models.CASCADE, related_name="access_requests")
    vendor = models.CharField(max_length=40)
    reason = models.CharField(max_length=REASON_MAX_CHARACTERS, blank=True)
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING.value)
    created_at = models.DateTimeField(default=clock.now)
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    # The admin's answer to a declined request.
    answer = models.CharField(max_length=REASON_MAX_CHARACTERS, blank=True)
    # The end of the access that the approval gave.
    access_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["membership", "vendor"], name="access_request_once"),
            models.CheckConstraint(
                condition=models.Q(state__in=["waiting", "approved", "declined"]), name="access_request_state"
            ),
        ]
        indexes = [models.Index(fields=["organization", "state", "created_at"], name="access_request_by_state")]

    def as_target(self) -> Target:
        """The person who asks."""
        return self.membership.as_target()

    def __str__(self) -> str:
        return f"{self.vendor} for {self.membership_id}: {self.state}"
