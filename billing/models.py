from __future__ import annotations

from django.db import models

from billing.states import PlanState, SubscriptionStatus
from gateway.lib import clock

STATUS_CHOICES = [(status.value, status.value.replace("_", " ").capitalize()) for status in SubscriptionStatus]
# Of the provider's identifiers.
ID_CHARACTERS = 255


class Subscription(models.Model):
    """The last state set by the payment provider or an operator. No row: never subscribed. Spec: D39, D42"""

    organization = models.OneToOneField("orgs.Organization", models.CASCADE, related_name="subscription")
    status = models.CharField(max_length=16, choices=STATUS_CHOICES, default=SubscriptionStatus.NONE.value)
    # Start of the grace period; null unless the status is past_due.
    past_due_since = models.DateTimeField(null=True, blank=True)
    # An exception for one organization, either way; null follows the plan.
    service_clients = models.BooleanField(null=True, blank=True)
    updated_at = models.DateTimeField(default=clock.now)
    # The provider's customer. An organization has at most one.
    customer_id = models.CharField(max_length=ID_CHARACTERS, null=True, blank=True, unique=True)
    # The provider's subscription that decides; empty while there is none.
    subscription_id = models.CharField(max_length=ID_CHARACTERS, blank=True, default="", db_default="")
    # End of the time that is paid for.
    period_end = models.DateTimeField(null=True, blank=True)
    cancel_at_period_end = models.BooleanField(default=False, db_default=False)
    # The plan state that the admin log told last. A grace period runs out without an event: the clock alone says so.
    recorded_state = models.CharField(
        max_length=8, choices=[(state.value, state.value) for state in PlanState], blank=True, default="", db_default=""
    )
    reconciled_at = models.DateTimeField(null=True, blank=True)
    # The last checkout session, empty once it is completed; a digest of its terms: customer, price and discount.
    checkout_session_id = models.CharField(max_length=ID_CHARACTERS, blank=True, default="", db_default="")
    checkout_terms = models.CharField(max_length=64, blank=True, default="", db_default="")
    checkout_began_at = models.DateTimeField(null=True, blank=True)
    # Checkout sessions so far: a part of the next one's idempotency key.
    checkout_count = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(status__in=[status.value for status in SubscriptionStatus]),
                name="subscription_status",
            )
        ]

    def __str__(self) -> str:
        return f"{self.organization_id}: {self.status}"


class ProviderEvent(models.Model):
    """One event of the payment provider, reduced to facts (`billing.facts`). Spec: D91

    The events of a customer decide the state; their order of arrival does not. The primary key is the provider's id of
    the event, so that a second delivery is no second event.
    """

    class Source(models.TextChoices):
        """How the event came: signed by the provider, or read from it by a reconciliation."""

        WEBHOOK = "webhook", "Webhook"
        RECONCILIATION = "reconciliation", "Reconciliation"

    id = models.CharField(max_length=ID_CHARACTERS, primary_key=True)
    kind = models.CharField(max_length=64)
    # The provider's clock, in whole seconds.
    created = models.DateTimeField()
    customer_id = models.CharField(max_length=ID_CHARACTERS, blank=True, default="")
    subscription_id = models.CharField(max_length=ID_CHARACTERS, blank=True, default="")
    facts = models.JSONField(default=dict)
    # Null: no organization has this customer yet, or the organization is deleted.
    organization = models.ForeignKey(
        "orgs.Organization", models.SET_NULL, null=True, blank=True, related_name="provider_events"
    )
    source = models.CharField(max_length=16, choices=Source.choices, default=Source.WEBHOOK)
    received_at = models.DateTimeField(default=clock.now)

    class Meta:
        indexes = [
            models.Index(fields=["customer_id"], name="provider_event_customer"),
            models.Index(fields=["received_at"], name="provider_event_received"),
        ]

    def __str__(self) -> str:
        return f"{self.id}: {self.kind}"


class ProviderCancellation(models.Model):
    """A customer of a deleted organization, whose subscriptions the provider has to end. Spec: D37

    The row refers to no organization, because it outlives it.
    """

    customer_id = models.CharField(max_length=ID_CHARACTERS, unique=True)
    organization_id = models.UUIDField()
    requested_at = models.DateTimeField(default=clock.now)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(default=clock.now)
    # Null until the provider has no live subscription of the customer.
    done_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        indexes = [
            models.Index(fields=["next_attempt_at"], condition=models.Q(done_at=None), name="provider_cancellation_due")
        ]

    def __str__(self) -> str:
        return f"{self.customer_id}: {'done' if self.done_at else 'waiting'}"
