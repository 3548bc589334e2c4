"""Changes of a subscription: the row and its audit entry commit together."""

from __future__ import annotations

from django.db import transaction

from audit.actor import Actor
from audit.admin_log import record_admin
from audit.event_types import EventType
from billing.models import Subscription
from billing.states import PlanState, SubscriptionStatus, plan_state
from gateway.lib import clock
from orgs.models import Organization


@transaction.atomic
def set_subscription(
    *, actor: Actor, organization: Organization, status: SubscriptionStatus, service_clients: bool | None = None
) -> Subscription:
    """`service_clients` True or False overrides the plan, None follows it. Spec: D39, D41, D42, D82"""
    # Two changes of one subscription wait for each other, also while it has no row yet.
    Organization.objects.select_for_update(no_key=True).get(pk=organization.pk)
    row = Subscription.objects.filter(organization=organization).first() or Subscription(organization=organization)
    now = clock.now()
    before = plan_state(SubscriptionStatus(row.status), row.past_due_since, now)
    was = (row.status, row.service_clients)
    row.status, row.service_clients, row.updated_at = status.value, service_clients, now
    # The grace period starts with the first past_due and does not start again.
    row.past_due_since = (row.past_due_since or now) if status is SubscriptionStatus.PAST_DUE else None
    row.save()
    after = plan_state(status, row.past_due_since, now)
    # Setting the same state again is no event.
    if before is after and was == (status.value, service_clients):
        return row
    # A change that keeps the plan state is billing.updated.
    event = EventType.BILLING_ACTIVATED if after is PlanState.ACTIVE else EventType.BILLING_LAPSED
    record_admin(
        event if before is not after else EventType.BILLING_UPDATED,
        org_id=organization.id,
        actor=actor,
        target=organization.as_target(),
        metadata={"status": status.value, "was": before.value, "serviceClients": service_clients},
    )
    return row


def set_status(*, actor: Actor, organization: Organization, status: SubscriptionStatus) -> Subscription:
    """Keeps the exception that was made for this customer."""
    row = Subscription.objects.filter(organization=organization).first()
    exception = row.service_clients if row else None
    return set_subscription(actor=actor, organization=organization, status=status, service_clients=exception)
