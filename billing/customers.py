"""The organization that a customer of the provider belongs to."""

from __future__ import annotations

import hashlib

from django.db import connection

from billing.facts import Event
from billing.models import ProviderEvent, Subscription
from gateway.lib import ids
from orgs.models import Organization


def lock_customer(customer_id: str) -> None:
    """Until the transaction ends. Locked before the organization, which may not be known yet.

    Without it an event of an unknown customer and the event that names the customer could miss each other: neither
    sees the other's row before its commit.
    """
    # SQLite has one writer at a time.
    if connection.vendor == "postgresql":
        digest = hashlib.sha256(f"billing customer {customer_id}".encode()).digest()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [int.from_bytes(digest[:8], "big", signed=True)])


def organization_of(event: Event) -> Organization | None:
    """The one that has the customer, or had it; else the one whose checkout session the customer has completed."""
    return _organization_of_customer(event.customer_id) or _organization_of_checkout(event)


def _organization_of_customer(customer_id: str) -> Organization | None:
    row = Subscription.objects.select_related("organization").filter(customer_id=customer_id).first()
    if row is not None:
        return row.organization
    # The provider deleted this customer, and the organization has another one now.
    earlier = ProviderEvent.objects.filter(customer_id=customer_id, organization__isnull=False)
    known = earlier.select_related("organization").order_by("created", "id").first()
    return known.organization if known else None


def _organization_of_checkout(event: Event) -> Organization | None:
    """An organization whose row was lost, as by an old backup; never one that has a customer."""
    key = ids.parse_id(event.organization_id)
    if key is None or Subscription.objects.filter(organization_id=key, customer_id__isnull=False).exists():
        return None
    return Organization.objects.filter(pk=key).first()
