"""Comparison with the provider's own objects, which mends what lost events left. Spec: D40"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import F, QuerySet

from audit.actor import system
from billing.errors import BillingProviderError, ProviderRefused
from billing.facts import Event, UnreadableEvent, read_subscription
from billing.fold import State, fold_each
from billing.models import ProviderEvent, Subscription
from billing.provider import Provider
from billing.provider_events import events_of, refold, store_event
from billing.services import subscription_for_change
from billing.states import PAID, SubscriptionStatus
from gateway.lib import clock
from gateway.lib.errors import NotFound
from orgs.models import Organization

log = structlog.get_logger(__name__)
RECONCILER = system("billing_reconcile")
_SECONDS = 30.0  # for one organization
# Each night once, also when a run takes longer than it may and the next one goes on.
_EVERY = timedelta(hours=20)
# After so many organizations in a row the provider is taken to be away.
_FAILURES = 5


@dataclass(frozen=True, slots=True)
class Difference:
    """`ours` and `theirs` are words; a difference that no reading can mend is for a person."""

    organization_id: UUID
    subscription_id: str
    ours: str
    theirs: str
    can_be_mended: bool = True


class _UnusableAnswer(BillingProviderError):
    """The provider says of this customer what cannot be read."""


@dataclass(slots=True)
class Report:
    """`unasked`: organizations for which the provider gave no usable answer."""

    asked: int = 0
    unasked: int = 0
    differences: list[Difference] = field(default_factory=list)


def reconcile_all(rows: QuerySet[Subscription], *, is_dry_run: bool, is_time_left: Callable[[], bool]) -> Report:
    """Ends early when the provider is away."""
    report, failures = Report(), 0
    # A cursor that is open while the provider is asked would keep SQLite from writing.
    for key in list(rows.values_list("pk", flat=True)):
        if not is_time_left() or failures == _FAILURES:
            break
        row = Subscription.objects.select_related("organization").filter(pk=key).first()
        if row is None:
            continue  # deleted meanwhile
        try:
            report.differences += reconcile(row, is_dry_run=is_dry_run)
            report.asked, failures = report.asked + 1, 0
        except (ProviderRefused, _UnusableAnswer):
            # It is there. Customers that it refuses each time must not stand in the way of all others.
            report.unasked, failures = report.unasked + 1, 0
        except BillingProviderError:
            report.unasked, failures = report.unasked + 1, failures + 1
        except NotFound:
            continue  # deleted meanwhile
    return report


def all_customers() -> QuerySet[Subscription]:
    """Those that waited longest first."""
    return Subscription.objects.filter(customer_id__isnull=False).order_by(
        F("reconciled_at").asc(nulls_first=True), "pk"
    )


def due_customers(now: datetime) -> QuerySet[Subscription]:
    return all_customers().exclude(reconciled_at__gt=now - _EVERY)


def reconcile(row: Subscription, *, is_dry_run: bool) -> list[Difference]:
    """The differences of one organization, mended unless it is a dry run. Raises: BillingProviderError."""
    organization, customer_id = row.organization, row.customer_id
    if customer_id is None:
        return []
    known = events_of(organization)
    readings = _read(customer_id, known)
    differences = list(_compare(organization, fold_each(known), readings))
    for each in differences:
        log.warning(
            "billing.difference",
            organization=str(organization.pk),
            subscription=each.subscription_id,
            ours=each.ours,
            theirs=each.theirs,
            dry_run=is_dry_run,
        )
    if not is_dry_run:
        differing = {each.subscription_id for each in differences if each.can_be_mended}
        _mend(organization, [reading for reading in readings if reading.subscription_id in differing])
    return differences


def _read(customer_id: str, known: list[Event]) -> list[Event]:
    """Readings that count after all of `known`, which were stored before the provider was asked."""
    try:
        found = Provider(seconds=_SECONDS, retries=1).subscriptions(customer_id, with_ended=True)
    except ProviderRefused as refusal:
        if not refusal.is_missing("customer"):
            raise
        return []  # nothing that we know of this customer is there
    read_at = max([found.read_at, *(event.created + 1 for event in known if event.customer_id == customer_id)])
    try:
        readings = [read_subscription(each, read_at=read_at) for each in found.objects]
    except UnreadableEvent as fault:
        log.warning("billing.provider_unreadable", what=str(fault))
        raise _UnusableAnswer from None
    if any(reading.customer_id != customer_id for reading in readings):
        log.warning("billing.provider_unreadable", what="customer of a subscription")
        raise _UnusableAnswer
    return readings


def _compare(organization: Organization, ours: dict[str, State], readings: list[Event]) -> Iterable[Difference]:
    theirs = fold_each(readings)
    for name in sorted(ours.keys() | theirs.keys()):
        own, told = ours.get(name, State()), theirs.get(name, State())
        both = {own.status, told.status}
        # A subscription that ended before it was heard of changes nothing.
        if _words(own) != _words(told) and not both <= {SubscriptionStatus.NONE, SubscriptionStatus.CANCELED}:
            # An ended subscription stays ended.
            can_be_mended = name in theirs and own.status is not SubscriptionStatus.CANCELED
            yield Difference(organization.pk, name, _words(own), _words(told), can_be_mended)
    paid = [name for name, told in theirs.items() if told.status in PAID]
    if len(paid) > 1:
        yield Difference(
            organization.pk,
            ", ".join(sorted(paid)),
            "one subscription",
            f"{len(paid)} subscriptions",
            can_be_mended=False,
        )


def _words(state: State) -> str:
    end = clock.rfc3339(state.period_end) if state.period_end else ""
    parts = [state.status.value, "ends" if state.is_ending else "", end]
    return " ".join(part for part in parts if part)


@transaction.atomic
def _mend(organization: Organization, readings: list[Event]) -> None:
    """Stores the readings that differ as events, and computes the state again. Raises: NotFound."""
    for reading in readings:
        store_event(reading, actor=RECONCILER, source=ProviderEvent.Source.RECONCILIATION)
    row = subscription_for_change(organization)
    row.reconciled_at = clock.now()
    refold(row, actor=RECONCILER)
