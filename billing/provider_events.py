"""Events of the payment provider: stored once each, with their effect, in one transaction. Spec: D40, D91"""

from __future__ import annotations

from datetime import UTC, datetime

import structlog
from django.db import transaction

from audit.actor import Actor, system
from billing import cancellations
from billing.customers import lock_customer, organization_of
from billing.facts import Event, Kind, from_json, to_json
from billing.fold import State, fold
from billing.models import ProviderEvent, Subscription
from billing.services import save_change, standing, subscription_for_change
from gateway.lib.errors import NotFound
from gateway.lib.sentences import sentence
from orgs.models import Organization

log = structlog.get_logger(__name__)
PROVIDER = system(sentence("payment provider"))


@transaction.atomic
def store_event(
    event: Event, *, actor: Actor = PROVIDER, source: ProviderEvent.Source = ProviderEvent.Source.WEBHOOK
) -> bool:
    """False for an event that is known already, which changes nothing."""
    lock_customer(event.customer_id)
    if ProviderEvent.objects.filter(pk=event.id).exists():
        return False
    organization = organization_of(event)
    row = _locked_row(organization) if organization else None
    ProviderEvent.objects.create(
        id=event.id,
        kind=event.kind.value,
        created=datetime.fromtimestamp(event.created, UTC),
        customer_id=event.customer_id,
        subscription_id=event.subscription_id,
        facts=to_json(event),
        organization=row.organization if row else None,
        source=source,
    )
    if row is None:
        # An organization that is deleted meanwhile must not be charged.
        cancellations.reopen(event)
        log.info("billing.event_of_unknown_customer", provider_event=event.id, kind=event.kind.value)
        return True
    _bind(row, event)
    refold(row, actor=actor, because=event.id)
    return True


def refold(row: Subscription, *, actor: Actor, because: str = "") -> None:
    """The state that the organization's events say, under the lock of `subscription_for_change`."""
    was = standing(row)
    state = fold(events_of(row.organization))
    # Without a subscription at the provider, a state that was set by hand stays.
    if state.subscription_id:
        _write(row, state)
    save_change(row, was=was, actor=actor, because=because)


def events_of(organization: Organization) -> list[Event]:
    return [_event(row) for row in ProviderEvent.objects.filter(organization=organization)]


def prune(before: datetime) -> int:
    """Removes events of customers that no organization has. Returns their number."""
    removed, _ = ProviderEvent.objects.filter(organization=None, received_at__lt=before).delete()
    return removed


def _locked_row(organization: Organization) -> Subscription | None:
    try:
        return subscription_for_change(organization)
    except NotFound:
        return None


def _bind(row: Subscription, event: Event) -> None:
    if event.kind is not Kind.CHECKOUT_COMPLETED:
        return
    if row.customer_id is None:
        # Events of the customer that came before count from now on.
        row.customer_id = event.customer_id
        ProviderEvent.objects.filter(customer_id=event.customer_id, organization=None).update(
            organization=row.organization
        )
    if event.checkout_session_id == row.checkout_session_id:
        row.checkout_session_id = row.checkout_terms = ""


def _write(row: Subscription, state: State) -> None:
    row.status = state.status.value
    row.past_due_since = state.past_due_since
    row.period_end = state.period_end
    row.cancel_at_period_end = state.is_ending
    row.subscription_id = state.subscription_id


def _event(row: ProviderEvent) -> Event:
    return from_json(
        row.facts,
        id=row.id,
        kind=Kind(row.kind),
        created=int(row.created.timestamp()),
        customer_id=row.customer_id,
        subscription_id=row.subscription_id,
    )
