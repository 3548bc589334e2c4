"""The results of a batch, written in one transaction by the holder of the destination's claim."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet

from audit.actor import Target, system
from audit.admin_log import record_admin
from audit.event_types import EventType
from audit.models import DeliveryHour, LogDestination, RefusedRecord, SentHour
from audit.shipping.platforms.exchange import DestinationRefused, RetryLater
from audit.shipping.waiting import Record, columns_of, last_places
from audit.shipping_models import DestinationStatus
from audit.stream import Log, Place
from gateway.lib import clock
from gateway.lib.metrics.names import SHIPPING_DELIVERED
from gateway.lib.sentences import sentence

SHORTEST_WAIT_S = 1.0
LONGEST_WAIT_S = 300.0
WAIT_OF_A_REFUSED_DESTINATION_S = 60.0
FAILING_AFTER = timedelta(minutes=5)
KEPT_FOR = timedelta(hours=24)  # records wait so long for a destination that fails. Spec: D98
KEPT_REFUSED_RECORDS = 1_000
HOURS_KEPT_FOR = timedelta(days=2)
# Longer than the longest request. Each batch renews the claim.
CLAIMED_FOR = timedelta(seconds=60)
ACTOR = system(sentence("log shipping"))
ALLOWANCE_USED = sentence(
    "The organization has reached its hourly delivery limit. Delivery continues in the next hour."
)


class ClaimLost(Exception):
    """The destination was deleted, changed or claimed by another process."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of a batch: `records` are those that were handled, `refused` the places of some of them with reasons.

    `unnamed`: reasons of more refused ones, whose places the platform did not say. `certain`: the refused ones of which
    the destination is surely not the cause.
    """

    records: Sequence[Record]
    refused: dict[int, str]
    unnamed: Sequence[str] = ()
    certain: Collection[int] = ()
    sent_bytes: int = 0


def write_progress(destination: LogDestination, claim: UUID, outcome: Outcome) -> None:
    """Moves the destination on. Raises: ClaimLost."""
    refused = len(outcome.refused) + len(outcome.unnamed)
    accepted = len(outcome.records) - refused
    with transaction.atomic():
        row = _claimed(destination.pk, claim)
        _move(row, last_places(outcome.records))
        row.claimed_until = clock.now() + CLAIMED_FOR
        row.delivered += accepted
        row.refused += refused
        _count(row, delivered=accepted, refused=refused, sent_bytes=outcome.sent_bytes)
        _set_aside(row, outcome)
        if accepted:
            _recover(row)
        elif refused:
            row.last_error = next(iter([*outcome.refused.values(), *outcome.unnamed]))
        row.save()
    SHIPPING_DELIVERED.add(row.platform, "delivered", amount=accepted)
    SHIPPING_DELIVERED.add(row.platform, "refused", amount=refused)
    _refresh(destination, row)


def write_failure(
    destination: LogDestination,
    claim: UUID,
    fault: RetryLater | DestinationRefused,
    words: str,
    chance: Callable[[], float] = random.random,
) -> None:
    """Counts a failed attempt and sets the time of the next one. Raises: ClaimLost."""
    now = clock.now()
    with transaction.atomic():
        row = _claimed(destination.pk, claim)
        row.failures += 1
        row.failing_since = row.failing_since or now
        row.last_error = words
        row.next_attempt_at = now + timedelta(seconds=_wait_s(row.failures, fault, chance))
        if now - row.failing_since >= KEPT_FOR:
            row.skip_before = now - KEPT_FOR
        _count(row, failures=1)
        is_failing = isinstance(fault, DestinationRefused) or now - row.failing_since >= FAILING_AFTER
        if is_failing and row.status != DestinationStatus.FAILING:
            _audit(EventType.LOG_SHIPPING_DELIVERY_FAILED, row, error=words)
        if row.status != DestinationStatus.FAILING:
            row.status = DestinationStatus.FAILING if is_failing else DestinationStatus.RETRYING
        row.save()
    SHIPPING_DELIVERED.add(row.platform, "failed")
    _refresh(destination, row)


def write_skipped(destination: LogDestination, claim: UUID, log: Log, rows: Sequence[tuple[Place, datetime]]) -> None:
    """Leaves out rows that are too old, and counts them. Raises: ClaimLost."""
    first, last = (clock.rfc3339(rows[end][1]) for end in (0, -1))
    with transaction.atomic():
        row = _claimed(destination.pk, claim)
        _move(row, {log: rows[-1][0]})
        row.skipped += len(rows)
        row.claimed_until = clock.now() + CLAIMED_FOR
        _count(row, skipped=len(rows))
        _audit(EventType.LOG_SHIPPING_RECORDS_SKIPPED, row, records=len(rows), log=log.value, first=first, last=last)
        row.save()
    SHIPPING_DELIVERED.add(row.platform, "skipped", amount=len(rows))
    _refresh(destination, row)


def end_skipping(destination: LogDestination, claim: UUID) -> None:
    """Raises: ClaimLost."""
    with transaction.atomic():
        row = _claimed(destination.pk, claim)
        row.skip_before = None
        row.save()
    _refresh(destination, row)


def bytes_left(org_id: UUID) -> int:
    """The bytes that the organization may still send in this hour."""
    sent = _sent_in_this_hour(org_id).values_list("sent_bytes", flat=True).first() or 0
    return max(0, settings.SHIPPING_BYTES_PER_HOUR - sent)


def count_sent(org_id: UUID, sent_bytes: int) -> None:
    """Of a delivery or a test, also when it fails."""
    if not sent_bytes:
        return
    of_hour, more = _sent_in_this_hour(org_id), {"sent_bytes": F("sent_bytes") + sent_bytes}
    if not of_hour.update(**more):
        # Another delivery may be the first of the hour at the same time.
        SentHour.objects.bulk_create([SentHour(org_id=org_id, hour=_this_hour())], ignore_conflicts=True)
        of_hour.update(**more)


def write_postponed(destination: LogDestination, claim: UUID) -> None:
    """The next hour brings a new allowance. Raises: ClaimLost."""
    with transaction.atomic():
        row = _claimed(destination.pk, claim)
        row.next_attempt_at = _this_hour() + timedelta(hours=1)
        row.last_error = ALLOWANCE_USED
        row.save()
    _refresh(destination, row)


def refused_since_acceptance(destination: LogDestination) -> int:
    """The records set aside after the last acceptance, for which the destination may be at fault."""
    since = destination.last_delivery_at or destination.created_at
    return destination.refused_records.filter(refused_at__gt=since, is_certain=False).count()


def prune_hours() -> int:
    """Returns the number of removed rows."""
    before = clock.now() - HOURS_KEPT_FOR
    return sum(model.objects.filter(hour__lt=before).delete()[0] for model in (DeliveryHour, SentHour))


def _claimed(pk: UUID, claim: UUID) -> LogDestination:
    row = LogDestination.objects.select_for_update().filter(pk=pk, claim=claim, enabled=True).first()
    if row is None:
        raise ClaimLost
    row.last_attempt_at = clock.now()
    return row


def _move(row: LogDestination, places: dict[Log, Place]) -> None:
    for column, value in columns_of(places).items():
        setattr(row, column, value)


def _recover(row: LogDestination) -> None:
    if row.status == DestinationStatus.FAILING:
        _audit(EventType.LOG_SHIPPING_RECOVERED, row)
    row.status, row.failures, row.failing_since, row.last_error = DestinationStatus.OK, 0, None, ""
    row.last_delivery_at = row.next_attempt_at = clock.now()


def _count(row: LogDestination, **numbers: int) -> None:
    # The claim keeps others away from this row.
    hour, _ = DeliveryHour.objects.get_or_create(destination=row, hour=_this_hour())
    for name, number in numbers.items():
        setattr(hour, name, getattr(hour, name) + number)
    hour.save()


def _sent_in_this_hour(org_id: UUID) -> QuerySet[SentHour]:
    return SentHour.objects.filter(org_id=org_id, hour=_this_hour())


def _this_hour() -> datetime:
    return clock.now().replace(minute=0, second=0, microsecond=0)


def _set_aside(row: LogDestination, outcome: Outcome) -> None:
    now = clock.now()
    rows = [
        RefusedRecord(
            destination=row,
            log=outcome.records[place].log.value,
            row_id=outcome.records[place].place.id,
            reason=reason,
            refused_at=now,
            is_certain=place in outcome.certain,
        )
        for place, reason in sorted(outcome.refused.items())
    ]
    rows += [RefusedRecord(destination=row, row_id=None, reason=reason, refused_at=now) for reason in outcome.unnamed]
    if not rows:
        return
    RefusedRecord.objects.bulk_create(rows)
    kept = row.refused_records.order_by("-pk").values_list("pk", flat=True)
    if oldest := list(kept[KEPT_REFUSED_RECORDS - 1 : KEPT_REFUSED_RECORDS]):
        row.refused_records.filter(pk__lt=oldest[0]).delete()


def _wait_s(failures: int, fault: RetryLater | DestinationRefused, chance: Callable[[], float]) -> float:
    longest = min(LONGEST_WAIT_S, SHORTEST_WAIT_S * float(1 << min(failures - 1, 20)))
    if isinstance(fault, DestinationRefused):
        longest = max(longest, WAIT_OF_A_REFUSED_DESTINATION_S)
    # Destinations that failed together come back one after another.
    wait_s = longest * (0.5 + chance() / 2)
    wish_s = fault.after_s if isinstance(fault, RetryLater) else None
    return max(wait_s, wish_s or 0.0)


def _audit(event: EventType, row: LogDestination, **facts: object) -> None:
    record_admin(event, org_id=row.org_id, actor=ACTOR, target=Target(str(row.pk), row.label), metadata=facts)


def _refresh(destination: LogDestination, row: LogDestination) -> None:
    for each in row._meta.concrete_fields:
        setattr(destination, each.attname, getattr(row, each.attname))
