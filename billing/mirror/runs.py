"""Runs of the mirror: what changed since the last one, all customers once a day, and the end of copies."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import stripe
import structlog
from django.db import InterfaceError, OperationalError
from django.db.models import Exists, OuterRef, Q, QuerySet
from djstripe import models

from billing.mirror import copies
from billing.models import ProviderCancellation, ProviderEvent, Subscription
from gateway.lib import clock

EVENTS_OF_A_RUN = 100
CUSTOMERS_OF_A_RUN = 50
# A run ends before the next one begins. gateway.settings.workers
LONGEST_RUN_S = 25.0
# A provider that was away for longer is caught up with by the run of all customers.
ASKED_FOR = timedelta(days=3)
logger = structlog.get_logger(__name__)


class ProviderAway(Exception):
    """The provider does not answer, or refuses the key. The next run asks again."""


def copy_new_events() -> int:
    """Copies events that came by webhook, after the customers they are about. Returns the number of events."""
    stop_at = time.monotonic() + LONGEST_RUN_S
    fresh: set[str] = set()  # customers that this run has copied
    done = 0
    for event in list(_uncopied_events()[:EVENTS_OF_A_RUN]):
        try:
            if event.customer_id not in fresh:
                _try(copies.copy_customer, event.customer_id)
                fresh.add(event.customer_id)
            if not _try(copies.copy_event, event.pk):
                copies.leave_empty(event)
        except ProviderAway as fault:
            logger.warning("billing.mirror_behind", error=str(fault))
            break
        done += 1
        if time.monotonic() > stop_at:
            break
    return done


def copy_customers(after: str) -> str:
    """Copies the next customers behind the id `after`. Returns the last id, or "" when the run is over."""
    stop_at = time.monotonic() + LONGEST_RUN_S
    customer_ids = _customer_ids().filter(customer_id__gt=after).order_by("customer_id")
    last = ""
    for customer_id in filter(None, customer_ids[:CUSTOMERS_OF_A_RUN]):
        try:
            _try(copies.copy_customer, customer_id)
        except ProviderAway as fault:
            logger.warning("billing.mirror_behind", error=str(fault))
            return ""
        last = customer_id
        if time.monotonic() > stop_at:
            break
    return last


def remove_strangers() -> int:
    """Removes customers of no organization with all their copies. Returns the number of customers.

    A deleted organization's customer stays while the provider still has to end its subscriptions.
    """
    # An organization's customer of before is known by its events.
    earlier = ProviderEvent.objects.filter(organization__isnull=False).values("customer_id")
    waiting = ProviderCancellation.objects.filter(done_at=None).values("customer_id")
    strangers = models.Customer.objects.exclude(id__in=_customer_ids()).exclude(id__in=earlier).exclude(id__in=waiting)
    gone = list(strangers.values_list("id", flat=True))
    models.Event.objects.filter(Q(data__object__customer__in=gone) | Q(data__object__id__in=gone)).delete()
    models.Customer.objects.filter(id__in=gone).delete()
    return len(gone)


def _uncopied_events() -> QuerySet[ProviderEvent]:
    copied = models.Event.objects.filter(id=OuterRef("pk"))
    # The provider's account may have customers who are none of ours.
    recent = ProviderEvent.objects.filter(
        source=ProviderEvent.Source.WEBHOOK, organization__isnull=False, received_at__gte=clock.now() - ASKED_FOR
    )
    return recent.filter(~Exists(copied)).order_by("received_at", "id")


def _customer_ids() -> QuerySet[Subscription, str | None]:
    return Subscription.objects.exclude(customer_id=None).values_list("customer_id", flat=True)


def _try(copy: Callable[[str], None], object_id: str) -> bool:
    """Whether the object was copied. Raises: ProviderAway, OperationalError, InterfaceError."""
    try:
        copy(object_id)
    except stripe.InvalidRequestError as fault:
        logger.info("billing.mirror_object_unknown", object=object_id, error=fault.code)
    except stripe.StripeError as fault:
        raise ProviderAway(type(fault).__name__) from None
    except (OperationalError, InterfaceError):
        raise
    except Exception as fault:
        # The texts of these errors repeat what the provider knows of a person.
        logger.warning("billing.mirror_object_not_copied", object=object_id, error=type(fault).__name__)
    else:
        return True
    return False
