from __future__ import annotations

from datetime import timedelta

import pytest
import structlog
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from audit.actor import system
from audit.event_types import EventType
from audit.models import AdminAuditEntry, RequestAuditEntry
from audit.record import record_admin
from audit.retention import remove_older_than
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
        assert remove_older_than(NOON, batch_rows=3) == 7
    assert len([query for query in captured if query["sql"].startswith("DELETE")]) == 4, "2 for each organization"
    assert set(RequestAuditEntry.objects.values_list("pk", flat=True)) == kept
    assert remove_older_than(NOON, batch_rows=3) == 0


def test_a_run_ends_in_time_and_the_next_goes_on() -> None:
    add_row(timestamp=NOON - timedelta(days=1))
    assert remove_older_than(NOON, longest_run_s=0) == 0
    assert remove_older_than(NOON) == 1


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
        assert prune_request_log.delay is not None
        assert prune_request_log() == 2
    assert list(RequestAuditEntry.objects.all()) == [kept]
    assert AdminAuditEntry.objects.count() == 1
    assert [(line["event"], line["removed"]) for line in logs] == [("audit.request_log_pruned", 2)]


def test_the_task_has_the_name_that_the_schedule_calls() -> None:
    assert prune_request_log.name in {entry["task"] for entry in workers.CELERY_BEAT_SCHEDULE.values()}
