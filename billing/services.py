"""Changes of a subscription: the row and its audit entry commit together."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from audit.actor import Actor
from audit.admin_log import record_admin
from audit.event_types import EventType
from billing.errors import ProviderDecides
from billing.mode import has_provider
from billing.models import Subscription
from billing.states import PlanState, SubscriptionStatus, plan_state
from gateway.lib import clock
from orgs.locking import lock_organization
from orgs.models import Organization

# An organization's exception in the words of commands; None follows the plan.
EXCEPTIONS = {"plan": None, "yes": True, "no": False}


@dataclass(frozen=True, slots=True)
class Standing:
    """Of one subscription: what the admin log tells. Equal ones are no event."""

    state: PlanState
    status: str
    service_clients: bool | None
    is_ending: bool


@transaction.atomic
def set_subscription(
    *, actor: Actor, organization: Organization, status: SubscriptionStatus, service_clients: str = ""
) -> Subscription:
    """`service_clients`: a key of EXCEPTIONS, or "" to keep what is set. Raises: ProviderDecides. Spec: D39-D42"""
    if has_provider():
        raise ProviderDecides
    row = subscription_for_change(organization)
    was = standing(row)
    row.status = status.value
    if service_clients:
        row.service_clients = EXCEPTIONS[service_clients]
    # The grace period starts with the first past_due and does not start again.
    is_past_due = status is SubscriptionStatus.PAST_DUE
    row.past_due_since = (row.past_due_since or clock.now()) if is_past_due else None
    save_change(row, was=was, actor=actor)
    return row


@transaction.atomic
def set_service_clients(*, actor: Actor, organization: Organization, service_clients: bool | None) -> Subscription:
    """The exception of one organization, in every mode; None ends it. Spec: D42"""
    row = subscription_for_change(organization)
    was = standing(row)
    row.service_clients = service_clients
    save_change(row, was=was, actor=actor)
    return row


def subscription_for_change(organization: Organization) -> Subscription:
    """The row, new if there is none, under the organization's lock. Raises: NotFound if it was deleted meanwhile."""
    # Two changes of one subscription wait for each other, also while it has no row yet.
    locked = lock_organization(organization)
    return Subscription.objects.filter(organization=locked).first() or Subscription(organization=locked)


def standing(row: Subscription) -> Standing:
    """Before a change: with the state that the admin log told last. The clock may have ended it since."""
    told = PlanState(row.recorded_state) if row.recorded_state else _state(row)
    return Standing(told, row.status, row.service_clients, row.cancel_at_period_end)


def save_change(row: Subscription, *, was: Standing, actor: Actor, because: str = "") -> None:
    """Saves the row, and tells the admin log what changed. `because`: the event of the provider."""
    state = _state(row)
    row.recorded_state, row.updated_at = state.value, clock.now()
    row.save()
    # Setting the same state again is no event.
    if standing(row) == was:
        return
    organization = row.organization
    record_admin(
        _event(was.state, state),
        org_id=organization.id,
        actor=actor,
        target=organization.as_target(),
        metadata={
            "status": row.status,
            "was": was.state.value,
            "serviceClients": row.service_clients,
            **({"providerEvent": because} if because else {}),
        },
    )


def _event(was: PlanState, state: PlanState) -> EventType:
    if was is state:
        # A change that keeps the plan state.
        return EventType.BILLING_UPDATED
    return EventType.BILLING_ACTIVATED if state is PlanState.ACTIVE else EventType.BILLING_LAPSED


def _state(row: Subscription) -> PlanState:
    return plan_state(SubscriptionStatus(row.status), row.past_due_since, clock.now())
