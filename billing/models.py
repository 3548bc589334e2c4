from __future__ import annotations

from django.db import models

from billing.states import SubscriptionStatus
from gateway.lib import clock

STATUS_CHOICES = [(status.value, status.value.replace("_", " ").capitalize()) for status in SubscriptionStatus]


class Subscription(models.Model):
    """The last state set by the payment provider or an operator. No row: never subscribed. Spec: D39, D42"""

    organization = models.OneToOneField("orgs.Organization", models.CASCADE, related_name="subscription")
    status = models.CharField(max_length=16, choices=STATUS_CHOICES, default=SubscriptionStatus.NONE.value)
    # Start of the grace period; null unless the status is past_due.
    past_due_since = models.DateTimeField(null=True, blank=True)
    # An exception for one customer, either way; null follows the plan.
    service_clients = models.BooleanField(null=True, blank=True)
    updated_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(status__in=[status.value for status in SubscriptionStatus]),
                name="subscription_status",
            )
        ]

    def __str__(self) -> str:
        return f"{self.organization_id}: {self.status}"
