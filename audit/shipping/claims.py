"""Claims on destinations: one delivery each, for a minute, so many at once, fair to organizations."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q, QuerySet

from audit.models import LogDestination
from audit.shipping.results import CLAIMED_FOR
from audit.shipping.waiting import with_waiting_records
from audit.shipping_models import DestinationStatus
from gateway.lib import clock, ids

_TURN = 5_120_498_317  # the number of a lock in the database that nothing else takes


@transaction.atomic
def claim_due(slots: int | None = None) -> list[tuple[UUID, UUID]]:
    """Claims destinations that have records waiting. Returns their ids and claims: none while another process claims.

    At most `slots` deliver at once, and an organization has its share of them. In both, at most half go to destinations
    that are not known to answer: those that never answer hold their slots longest.
    """
    if not _has_turn():
        return []
    slots = settings.SHIPPING_CONCURRENCY if slots is None else slots
    of_all = _Slots(slots)
    of_orgs: defaultdict[UUID, _Slots] = defaultdict(lambda: _Slots(settings.SHIPPING_CONCURRENCY_OF_ORGANIZATION))
    for org_id, status in _held().values_list("org_id", "status"):
        for each in (of_all, of_orgs[org_id]):
            each.take(status)
    claimed: list[tuple[UUID, UUID]] = []
    for pk, org_id, status in _due():
        both = (of_all, of_orgs[org_id])
        if all(each.has_one_for(status) for each in both) and (claim := _claim(pk)) is not None:
            claimed.append((pk, claim))
            for each in both:
                each.take(status)
    return claimed


@dataclass(slots=True)
class _Slots:
    size: int
    taken: int = 0
    doubtful: int = 0  # of the taken ones

    def has_one_for(self, status: str) -> bool:
        is_doubtful = status != DestinationStatus.OK
        return self.taken < self.size and not (is_doubtful and self.doubtful >= max(1, self.size // 2))

    def take(self, status: str) -> None:
        self.taken += 1
        self.doubtful += status != DestinationStatus.OK


def renew(pk: UUID, claim: UUID) -> bool:
    """False when the claim is lost."""
    return bool(LogDestination.objects.filter(pk=pk, claim=claim).update(claimed_until=clock.now() + CLAIMED_FOR))


def release(pk: UUID, claim: UUID) -> None:
    LogDestination.objects.filter(pk=pk, claim=claim).update(claim=None, claimed_until=None)


def _has_turn() -> bool:
    """Slots that two processes count at the same time would be given twice. SQLite has one writer at a time."""
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_TURN])
        return bool(cursor.fetchone()[0])


def _held() -> QuerySet[LogDestination]:
    return LogDestination.objects.filter(claimed_until__gt=clock.now())


def _due() -> list[tuple[UUID, UUID, str]]:
    due = _free().filter(next_attempt_at__lte=clock.now())
    # The one that waited longest is first.
    ordered = with_waiting_records(due).order_by(F("last_attempt_at").asc(nulls_first=True), "pk")
    return list(ordered.values_list("pk", "org_id", "status"))


def _claim(pk: UUID) -> UUID | None:
    """None for a row that another transaction has locked: this one has locked others, and never waits."""
    if not _free().select_for_update(skip_locked=True).filter(pk=pk).values_list("pk"):
        return None
    claim = ids.new_id()
    LogDestination.objects.filter(pk=pk).update(claim=claim, claimed_until=clock.now() + CLAIMED_FOR)
    return claim


def _free() -> QuerySet[LogDestination]:
    """Enabled destinations without a claim that still holds."""
    unclaimed = Q(claimed_until__isnull=True) | Q(claimed_until__lte=clock.now())
    return LogDestination.objects.filter(unclaimed, enabled=True)
