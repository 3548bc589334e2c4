"""Copies of single objects, as the provider has them at the moment."""

from __future__ import annotations

from itertools import islice

import stripe
from djstripe import models

from billing.mirror.http_client import KEY_NAME
from billing.models import ProviderEvent

SUBSCRIPTIONS_OF_A_PAGE = 20
# An organization has one. More come from mistakes at the provider.
MOST_SUBSCRIPTIONS = 100


def copy_customer(customer_id: str) -> None:
    """The customer with its subscriptions. A customer that the provider has deleted keeps its id alone.

    Raises: stripe.StripeError; other errors when the object has a shape that the library does not know.
    """
    customer = stripe.Customer.retrieve(customer_id, api_key=KEY_NAME)
    models.Customer.sync_from_stripe_data(customer, api_key=KEY_NAME)
    if customer.get("deleted"):
        return
    found = stripe.Subscription.list(
        customer=customer_id, status="all", limit=SUBSCRIPTIONS_OF_A_PAGE, api_key=KEY_NAME
    )
    for subscription in islice(found.auto_paging_iter(), MOST_SUBSCRIPTIONS):
        models.Subscription.sync_from_stripe_data(subscription, api_key=KEY_NAME)


def copy_event(event_id: str) -> None:
    """Raises: as `copy_customer`."""
    event = stripe.Event.retrieve(event_id, api_key=KEY_NAME)
    models.Event.sync_from_stripe_data(event, api_key=KEY_NAME)


def leave_empty(event: ProviderEvent) -> None:
    """A row without content for an event that cannot be copied, so that it is not asked for again."""
    models.Event.objects.get_or_create(
        id=event.pk, defaults={"type": event.kind, "created": event.created, "data": {}, "stripe_data": {}}
    )
