"""The lists of the logs' filters. Every test has another organization's rows, which must not appear."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit import distinct_values as distinct
from audit.distinct_values import distinct_values, latest_labels
from audit.models import AdminAuditEntry, LogModel, RequestAuditEntry
from gateway.lib.ids import log_id_for
from tests.api.audit.log_rows import add_change
from tests.api.audit.rows import NOON, ORG, OTHER_ORG, add_row

pytestmark = pytest.mark.django_db
BOTH = pytest.mark.parametrize(("log", "column"), [(RequestAuditEntry, "user_id"), (AdminAuditEntry, "actor_id")])


@pytest.fixture(autouse=True)
def _foreign_rows() -> None:
    add_row(org_id=OTHER_ORG, user_id="foreign", user_label="Foreign", vendor="foreign")
    add_row(org_id=OTHER_ORG, user_label="Ana elsewhere")
    add_change(OTHER_ORG, actor_id="foreign", actor_label="Foreign")
    add_change(OTHER_ORG, actor_id="user-1", actor_label="Ana elsewhere", minutes=5)


def add_to_both(subject: str, label: str, *, minutes: float = 0) -> None:
    add_row(user_id=subject, user_label=label, timestamp=NOON + timedelta(minutes=minutes))
    add_change(ORG, actor_id=subject, actor_label=label, minutes=minutes)


def test_vendors_are_those_of_the_log() -> None:
    assert distinct_values(RequestAuditEntry, ORG, "vendor") == []
    for vendor in ("globex", "acme", "globex", "", "zeta-1"):
        add_row(vendor=vendor)
    assert distinct_values(RequestAuditEntry, ORG, "vendor") == ["acme", "globex", "zeta-1"]
    assert distinct_values(RequestAuditEntry, OTHER_ORG, "vendor") == ["acme", "foreign"]


@BOTH
def test_each_subject_has_the_label_of_its_latest_row(log: LogModel, column: str) -> None:
    assert latest_labels(log, ORG, column) == {}
    add_to_both("user-2", "Zoe")
    add_to_both("user-1", "Old name", minutes=-9)
    add_to_both("user-1", "ana")
    add_to_both("svc:o:c", "Nightly job")
    found = latest_labels(log, ORG, column)
    assert [*found.items()] == [("user-1", "ana"), ("svc:o:c", "Nightly job"), ("user-2", "Zoe")]


@BOTH
def test_the_list_of_subjects_is_bounded(log: LogModel, column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct, "MAX_KNOWN", 2)
    for number in range(3):
        add_to_both(f"user-{number}", "Ana")
    assert [*latest_labels(log, ORG, column)] == ["user-0", "user-1"]


def test_actors_are_found_along_an_index() -> None:
    times = [NOON + timedelta(seconds=number) for number in range(2_000)]
    AdminAuditEntry.objects.bulk_create(
        AdminAuditEntry(
            id=log_id_for(at),
            timestamp=at,
            org_id=ORG,
            event_type="x",
            actor_id=f"user-{at.second % 3}",
            actor_label="x",
        )
        for at in times
    )
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("ANALYZE audit_adminauditentry")
        with CaptureQueriesContext(connection) as captured:
            latest_labels(AdminAuditEntry, ORG, "actor_id")
        explain = "EXPLAIN " if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN "
        cursor.execute(explain + captured[-1]["sql"].replace("%", "%%"), [])
        plan = "\n".join(str(line) for line in cursor.fetchall())
    assert "admin_log_by_actor" in plan, plan
    assert "SCAN audit" not in plan
    assert "Seq Scan" not in plan
