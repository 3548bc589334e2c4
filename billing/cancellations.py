"""Subscriptions of deleted organizations end at the provider, however long it is away. Spec: D37"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import structlog
from django.db.models import F

from billing.errors import BillingProviderError, ProviderRefused
from billing.facts import Event, UnreadableEvent, identifier
from billing.models import ProviderCancellation, ProviderEvent, Subscription
from billing.provider import Provider
from billing.states import SubscriptionStatus
from gateway.lib import clock
from orgs.models import Organization

log = structlog.get_logger(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=6)
_SECONDS = 45.0  # for one customer: less than the pause after which another worker takes it
# Attempts do not end: a customer who is charged for a deleted organization is worse than a line in the log.
_WARN_AFTER = timedelta(days=1)
_GONE = {SubscriptionStatus.NONE, SubscriptionStatus.CANCELED}


def request_cancellation(organization: Organization) -> None:
    """In the transaction that deletes the organization, for the customer it has and for those it had before."""
    now = Subscription.objects.filter(organization=organization, customer_id__isnull=False)
    known = ProviderEvent.objects.filter(organization=organization).exclude(customer_id="")
    customers = {*now.values_list("customer_id", flat=True), *known.values_list("customer_id", flat=True).distinct()}
    for customer_id in sorted(filter(None, customers)):
        ProviderCancellation.objects.get_or_create(
            customer_id=customer_id, defaults={"organization_id": organization.pk}
        )


def reopen(event: Event) -> None:
    """A subscription of a deleted organization lives: it began after the others had ended."""
    if event.snapshot is None or event.snapshot.status in _GONE:
        return
    # An attempt under way may have looked before it began: such an attempt finds another time of the next one.
    known = ProviderCancellation.objects.filter(customer_id=event.customer_id)
    known.update(done_at=None, attempts=0, next_attempt_at=clock.now())


def cancel_due(is_time_left: Callable[[], bool]) -> int:
    """Attempts each cancellation that is due. Returns the number of those that are done."""
    done = 0
    while is_time_left():
        row = _claim()
        if row is None:
            break
        done += _attempt(row)
    return done


def _claim() -> ProviderCancellation | None:
    """The next one that is due; other workers leave it alone until its next attempt is due."""
    now = clock.now()
    for row in ProviderCancellation.objects.filter(done_at=None, next_attempt_at__lte=now).order_by("next_attempt_at")[
        :10
    ]:
        seen = ProviderCancellation.objects.filter(pk=row.pk, next_attempt_at=row.next_attempt_at, done_at=None)
        row.next_attempt_at = now + _pause(row.attempts)
        if seen.update(next_attempt_at=row.next_attempt_at, attempts=F("attempts") + 1):
            return row
    return None


def _attempt(row: ProviderCancellation) -> bool:
    try:
        _end_all(row.customer_id)
    except BillingProviderError as fault:
        ProviderCancellation.objects.filter(pk=row.pk).update(last_error=_reason(fault))
        if clock.now() - row.requested_at > _WARN_AFTER:
            log.error("billing.cancellation_waits", customer=row.customer_id, requested_at=row.requested_at.isoformat())
        return False
    # Unless it was opened again meanwhile.
    same = ProviderCancellation.objects.filter(pk=row.pk, next_attempt_at=row.next_attempt_at)
    is_done = bool(same.update(done_at=clock.now(), last_error=""))
    log.info("billing.subscriptions_canceled", customer=row.customer_id, opened_again=not is_done)
    return is_done


def _end_all(customer_id: str) -> None:
    """Open checkout sessions too: one that is paid later would begin a subscription. Raises: BillingProviderError."""
    provider = Provider(seconds=_SECONDS, retries=1)
    try:
        for session_id in provider.open_checkouts(customer_id):
            provider.expire_checkout(session_id)
        for found in provider.subscriptions(customer_id, with_ended=False).objects:
            _end(provider, identifier(found))
    except UnreadableEvent:
        raise BillingProviderError from None
    except ProviderRefused as refusal:
        if not refusal.is_missing("customer"):
            raise


def _end(provider: Provider, subscription_id: str) -> None:
    try:
        provider.cancel_subscription(subscription_id)
    except ProviderRefused as refusal:
        # It ended meanwhile.
        if refusal.reason != "resource_missing":
            raise


def _pause(attempts: int) -> timedelta:
    doubled: timedelta = _FIRST_PAUSE * 2 ** min(attempts, 20)
    return min(doubled, _LONGEST_PAUSE)


def _reason(fault: BillingProviderError) -> str:
    return f"{type(fault).__name__} {getattr(fault, 'reason', '')}".strip()[:200]
