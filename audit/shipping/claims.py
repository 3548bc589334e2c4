"""Claims on destinations: one delivery each, for a minute, so many at once, fair to organizations."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from django.conf import settings
from django.db.models import F, Q, QuerySet

from audit.models import LogDestination
from audit.shipping.results import CLAIMED_FOR
from audit.shipping.waiting import with_waiting_records
from audit.shipping_models import DestinationStatus
from gateway.lib import clock, ids


def claim_due(slots: int | None = None) -> list[tuple[UUID, UUID]]:
    """Claims destinations that have records waiting. Returns their ids and claims.

    At most `slots` deliver at once, and at most half of them to destinations that are not known to answer: those that
    never answer hold their slots longest.
    """
    slots = settings.SHIPPING_CONCURRENCY if slots is None else slots
    held = list(_held().values_list("org_id", "status"))
    doubtful = sum(status != DestinationStatus.OK for _, status in held)
    of_org = Counter(org_id for org_id, _ in held)
    claimed: list[tuple[UUID, UUID]] = []
    for pk, org_id, status in _due():
        if len(held) + len(claimed) >= slots:
            break
        is_doubtful = status != DestinationStatus.OK
        if of_org[org_id] >= settings.SHIPPING_CONCURRENCY_OF_ORGANIZATION:
            continue
        if is_doubtful and doubtful >= slots // 2:
            continue
        claim = _claim(pk)
        if claim is not None:
            claimed.append((pk, claim))
            of_org[org_id] += 1
            doubtful += is_doubtful
    return claimed


def renew(pk: UUID, claim: UUID) -> bool:
    """False when the claim is lost."""
    return bool(LogDestination.objects.filter(pk=pk, claim=claim).update(claimed_until=clock.now() + CLAIMED_FOR))


def release(pk: UUID, claim: UUID) -> None:
    LogDestination.objects.filter(pk=pk, claim=claim).update(claim=None, claimed_until=None)


def _held() -> QuerySet[LogDestination]:
    return LogDestination.objects.filter(claimed_until__gt=clock.now())


def _due() -> list[tuple[UUID, UUID, str]]:
    now = clock.now()
    free = Q(claimed_until__isnull=True) | Q(claimed_until__lte=now)
    due = LogDestination.objects.filter(free, enabled=True, next_attempt_at__lte=now)
    # The one that waited longest is first.
    ordered = with_waiting_records(due).order_by(F("last_attempt_at").asc(nulls_first=True), "pk")
    return list(ordered.values_list("pk", "org_id", "status"))


def _claim(pk: UUID) -> UUID | None:
    now, claim = clock.now(), ids.new_id()
    free = Q(claimed_until__isnull=True) | Q(claimed_until__lte=now)
    taken = LogDestination.objects.filter(free, pk=pk, enabled=True).update(
        claim=claim, claimed_until=now + CLAIMED_FOR
    )
    return claim if taken else None
