from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
import structlog
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from audit import retention
from audit.actor import system
from audit.admin_log import record_admin
from audit.event_types import EventType
from audit.models import AdminAuditEntry, RequestAuditEntry
from audit.retention import LONGEST_RUN_S, Pruning, remove_older_than
from audit.tasks import prune_request_log
from gateway.lib import clock
from gateway.settings import workers
from tests.api.audit.rows import NOON, ORG, OTHER_ORG, add_row

pytestmark = pytest.mark.django_db


def test_old_rows_go_in_batches_and_the_rest_stays() -> None:
    for number in range(1, 8):
        add_row(timestamp=NOON - timedelta(seconds=number), org_id=(ORG, OTHER_ORG)[number % 2])
    kept = {add_row(timestamp=NOON).id, add_row(timestamp=NOON + timedelta(days=1), org_id=OTHER_ORG).id}
    with CaptureQueriesContext(connection) as captured:
        assert remove_older_than(NOON, batch_rows=3) == Pruning(7)
    assert len([query for query in captured if query["sql"].startswith("DELETE")]) == 3, "of 4 and 3 rows"
    assert set(RequestAuditEntry.objects.values_list("pk", flat=True)) == kept
    assert remove_older_than(NOON, batch_rows=3) == Pruning(0)


def test_a_run_ends_in_time_and_the_next_goes_on() -> None:
    row = add_row(timestamp=NOON - timedelta(days=1))
    assert remove_older_than(NOON, longest_run_s=0) == Pruning(0, organizations_left=1, oldest_left=row.timestamp)
    assert remove_older_than(NOON) == Pruning(1)


def runs_for(batches: int) -> Callable[[], float]:
    """A clock on which a run of 240 s has time for so many batches."""
    readings = itertools.count()
    return lambda: 0.0 if next(readings) <= batches else LONGEST_RUN_S


def left_of(org_id: uuid.UUID) -> int:
    return RequestAuditEntry.objects.filter(org_id=org_id).count()


def test_no_organization_waits_behind_the_size_of_another() -> None:
    """The one with the lower id has more old rows than one run removes; both have rows of every day."""
    for day in range(1, 13):
        add_row(timestamp=NOON - timedelta(days=day), org_id=OTHER_ORG)
        for hour in range(3):
            add_row(timestamp=NOON - timedelta(days=day, hours=hour), org_id=ORG)
    done = remove_older_than(NOON, batch_rows=3, monotonic=runs_for(8))
    assert done.removed == 24
    assert left_of(OTHER_ORG) == 6, "half of each has gone"
    assert left_of(ORG) == 18
    assert done.organizations_left == 2
    assert done.oldest_left == RequestAuditEntry.objects.earliest("timestamp").timestamp


def test_organizations_that_a_run_left_out_are_first_the_next_time() -> None:
    for number in range(6):
        add_row(timestamp=NOON - timedelta(days=9, seconds=number), org_id=OTHER_ORG)
        add_row(timestamp=NOON - timedelta(days=10, seconds=number), org_id=ORG)
    assert remove_older_than(NOON, batch_rows=6, monotonic=runs_for(1)).removed == 6
    assert (left_of(ORG), left_of(OTHER_ORG)) == (0, 6)
    for number in range(600):
        add_row(timestamp=NOON - timedelta(days=8, seconds=number), org_id=ORG)
    assert remove_older_than(NOON, batch_rows=6, monotonic=runs_for(1)) == Pruning(
        6, organizations_left=1, oldest_left=NOON - timedelta(days=8, seconds=599)
    )
    assert left_of(OTHER_ORG) == 0


def test_the_log_says_what_a_run_had_no_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    oldest = clock.now() - timedelta(days=900)
    add_row(timestamp=oldest)
    add_row(timestamp=oldest, org_id=OTHER_ORG)
    monkeypatch.setattr(retention, "remove_older_than", partial(remove_older_than, longest_run_s=0))
    with structlog.testing.capture_logs() as logs:
        assert prune_request_log() == 0
    assert logs[-1] == {
        "event": "audit.request_log_not_pruned",
        "log_level": "warning",
        "organizations": 2,
        "oldest": clock.rfc3339(oldest),
    }


def test_the_task_keeps_what_the_setting_says_and_the_whole_admin_log(settings: Settings) -> None:
    settings.AUDIT_RETENTION_DAYS = 30
    now = clock.now()
    add_row(timestamp=now - timedelta(days=31))
    add_row(timestamp=now - timedelta(days=31), org_id=OTHER_ORG)
    kept = add_row(timestamp=now - timedelta(days=29))
    with transaction.atomic():
        record_admin(EventType.ORGANIZATION_CREATED, org_id=ORG, actor=system("setup"))
    AdminAuditEntry.objects.update(timestamp=now - timedelta(days=3_000))
    with structlog.testing.capture_logs() as logs:
        assert prune_request_log() == 2
    assert list(RequestAuditEntry.objects.all()) == [kept]
    assert AdminAuditEntry.objects.count() == 1
    assert [(line["event"], line["removed"]) for line in logs] == [("audit.request_log_pruned", 2)]


def test_the_task_has_the_name_that_the_schedule_calls() -> None:
    assert prune_request_log.name in {entry["task"] for entry in workers.CELERY_BEAT_SCHEDULE.values()}
