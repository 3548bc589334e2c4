"""The plan of an organization, in words of the pages, and the events behind it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet

from billing import entitlements
from billing.models import ProviderEvent, Subscription
from billing.states import PlanState, SubscriptionStatus, grace_ends
from gateway.lib import clock
from orgs.models import Organization

# The provider closes a session that no customer has completed.
CHECKOUT_LIFETIME = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Plan:
    """`next_date`: end of the paid time, when the provider renews or ends it. Spec: §3 Subscription · D39-D41"""

    # BILLING_MODE.
    mode: str
    state: PlanState
    status: SubscriptionStatus
    next_date: datetime | None
    cancel_at_period_end: bool
    # The last moment of the grace period of an unpaid invoice.
    grace_ends: datetime | None
    has_customer: bool
    # A checkout session is open, or its completion is not confirmed yet.
    pending_checkout: bool


def plan_of(organization: Organization, now: datetime | None = None) -> Plan:
    moment = now or clock.now()
    row = subscription_of(organization) or Subscription(organization=organization)
    status = SubscriptionStatus(row.status)
    return Plan(
        mode=settings.BILLING_MODE,
        state=entitlements.state_of_row(row, moment),
        status=status,
        next_date=row.period_end,
        cancel_at_period_end=row.cancel_at_period_end,
        grace_ends=grace_ends(status, row.past_due_since),
        has_customer=bool(row.customer_id),
        pending_checkout=_has_pending_checkout(row, moment),
    )


def subscription_of(organization: Organization) -> Subscription | None:
    return Subscription.objects.filter(organization=organization).first()


def story(organization: Organization) -> QuerySet[ProviderEvent]:
    """Stored events, newest first by the provider's clock."""
    return ProviderEvent.objects.filter(organization=organization).order_by("-created", "-received_at", "-id")


def _has_pending_checkout(row: Subscription, now: datetime) -> bool:
    began_at = row.checkout_began_at
    return bool(row.checkout_session_id) and began_at is not None and now - began_at < CHECKOUT_LIFETIME
