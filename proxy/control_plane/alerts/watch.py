"""One round: look, note, tell. It is one transaction, and the place in the admin log is its lock.

A round that fails changes nothing, so no cause is lost and none is told twice. docs/decisions/0096
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from audit.models import AdminAuditEntry
from audit.stream import Log, begin_at_end, take
from billing.entitlements import state_of_row
from billing.models import Subscription
from billing.states import PlanState
from credentials.selectors import vendors_in_use
from gateway.coordination import backend
from gateway.lib import clock
from orgs.alert_terms import OF_LAPSED, AlertKind
from orgs.models import Alert, Organization
from orgs.models.alert import DETAIL_CHARACTERS, LABEL_CHARACTERS
from orgs.services.alert_settings import quiet_end, settings_of_each
from proxy.control_plane.alerts import telling
from proxy.control_plane.alerts.facts import Fact, Found
from proxy.control_plane.alerts.looks import EACH_ROUND, EACH_SLOW_ROUND, Look, Round, cause_of
from proxy.control_plane.alerts.messages import DueMessage, queue_messages
from proxy.control_plane.health import state_cache

CURSOR = "alerts"
ROWS_A_ROUND = 1_000
_STATE = ("label", "detail", "level", "began_at", "ended_at", "absent_since", "told_level", "told_at")


def watch(*, is_slow: bool = False) -> int:
    """Return the number of messages; 0 also while another process watches. `is_slow`: with the looks that cost more."""
    begin_at_end(CURSOR, Log.ADMIN)
    # Read before the transaction, which the readers of the logs wait for.
    health = state_cache.read(backend.current(), vendors_in_use())
    with transaction.atomic():
        batch = take(CURSOR, Log.ADMIN, ROWS_A_ROUND)
        if batch is None:
            return 0
        named: dict[str, set[UUID]] = defaultdict(set)
        for row in batch.rows:
            if isinstance(row, AdminAuditEntry):
                named[row.event_type].add(row.org_id)
        return _round(Round(clock.now(), health, named), EACH_SLOW_ROUND if is_slow else EACH_ROUND)


def alerts_that_count() -> QuerySet[Alert]:
    """Those that go on, and those of which people were not told the end."""
    return Alert.objects.filter(Q(ended_at__isnull=True) | Q(told_level__gt=0))


def _round(this: Round, looks: Mapping[AlertKind, Look]) -> int:
    book = _Book()
    counting: dict[AlertKind, list[Alert]] = defaultdict(list)
    for alert in book.opened(alerts_that_count()):
        counting[AlertKind(alert.kind)].append(alert)
    decided: list[Alert] = []
    for kind, look in looks.items():
        decided += _noted(this.now, look(this, counting[kind]), counting[kind], book)
    due = _due_messages(this.now, decided)
    book.save(decided)
    return queue_messages(due, this.now)


class _Book:
    """Alerts as they were read: only those that changed are written."""

    def __init__(self) -> None:
        self._before: dict[UUID, tuple[object, ...]] = {}

    def opened(self, rows: Iterable[Alert]) -> list[Alert]:
        alerts = list(rows)
        self._before |= {each.pk: _state(each) for each in alerts}
        return alerts

    def save(self, alerts: Sequence[Alert]) -> None:
        changed = [each for each in alerts if _state(each) != self._before.get(each.pk)]
        Alert.objects.bulk_create([each for each in changed if each.pk not in self._before], batch_size=500)
        Alert.objects.bulk_update([each for each in changed if each.pk in self._before], _STATE, batch_size=500)


def _state(alert: Alert) -> tuple[object, ...]:
    return tuple(getattr(alert, name) for name in _STATE)


def _noted(now: datetime, found: Found, counting: Sequence[Alert], book: _Book) -> list[Alert]:
    """The alerts of one kind that are decided, with what was seen. New causes have a new row, or their former one."""
    known = {cause_of(alert): alert for alert in counting}
    fresh = [fact for fact in found.facts if fact.cause not in known]
    known |= {cause_of(alert): alert for alert in _begun(fresh, book, now)}
    noted = []
    for fact in found.facts:
        # The log outlives an organization, so a cause may be of one that is deleted.
        if alert := known.pop(fact.cause, None):
            telling.note_presence(alert, _fitting(fact), now)
            noted.append(alert)
    for cause, alert in known.items():
        if cause not in found.undecided:
            telling.note_absence(alert, now, found.ends.get(cause))
            noted.append(alert)
    return noted


def _begun(facts: Sequence[Fact], book: _Book, now: datetime) -> Iterator[Alert]:
    """The former rows of causes that were over, and new rows of the others."""
    if not facts:
        return
    org_ids = {each.cause.org_id for each in facts}
    keys = {each.cause.key for each in facts}
    rows = Alert.objects.filter(kind=facts[0].cause.kind, organization_id__in=org_ids, cause__in=keys)
    former = {cause_of(row): row for row in book.opened(rows)}
    here = set(Organization.objects.filter(pk__in=org_ids).values_list("pk", flat=True))
    for fact in facts:
        if fact.cause in former:
            yield former[fact.cause]
        elif fact.cause.org_id in here:
            yield _new(fact, now)


def _new(fact: Fact, now: datetime) -> Alert:
    cause = fact.cause
    return Alert(organization_id=cause.org_id, kind=cause.kind.value, cause=cause.key, began_at=fact.since or now)


def _fitting(fact: Fact) -> Fact:
    return replace(fact, label=fact.label[:LABEL_CHARACTERS], detail=fact.detail[:DETAIL_CHARACTERS])


def _due_messages(now: datetime, alerts: Sequence[Alert]) -> list[DueMessage]:
    org_ids = {each.organization_id for each in alerts}
    rows = settings_of_each(org_ids)
    lapsed = _lapsed(org_ids)
    due = []
    for alert in alerts:
        if alert.organization_id in lapsed and alert.kind not in OF_LAPSED:
            continue
        row = rows[alert.organization_id]
        if alert.kind in row.muted_kinds:
            telling.keep_silent(alert)
        elif quiet_end(row, now) is None and (moment := telling.next_message(alert, now)):
            due.append(DueMessage(alert, moment, row))
    return due


def _lapsed(org_ids: set[UUID]) -> set[UUID]:
    """Organizations without a plan: they are told of their plan alone, and of the rest once they have one."""
    if settings.BILLING_MODE == "disabled" or not org_ids:
        return set()
    rows = Subscription.objects.filter(organization_id__in=org_ids)
    return org_ids - {row.organization_id for row in rows if state_of_row(row) is PlanState.ACTIVE}
