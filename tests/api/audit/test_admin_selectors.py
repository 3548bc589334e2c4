"""Queries of the admin log. Every test has another organization's rows, which must not appear."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit import distinct_values
from audit.admin_selectors import known_actors
from audit.models import AdminAuditEntry
from audit.selectors import KnownUser
from gateway.lib.ids import log_id_for
from tests.api.audit.log_rows import add_change
from tests.api.audit.rows import NOON, ORG, OTHER_ORG

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _foreign_rows() -> None:
    add_change(OTHER_ORG, actor_id="foreign", actor_label="Foreign")
    add_change(OTHER_ORG, actor_id="user-1", actor_label="Ana elsewhere", minutes=5)


def test_known_actors_have_the_label_of_their_latest_change() -> None:
    assert known_actors(ORG) == []
    add_change(ORG, actor_id="user-2", actor_label="Zoe")
    add_change(ORG, actor_id="user-1", actor_label="Old name", minutes=-9)
    add_change(ORG, actor_id="user-1", actor_label="ana")
    add_change(ORG, actor_id="system", actor_label="System (health monitor)")
    assert known_actors(ORG) == [
        KnownUser("user-1", "ana"),
        KnownUser("system", "System (health monitor)"),
        KnownUser("user-2", "Zoe"),
    ]


def test_the_list_of_actors_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct_values, "MAX_KNOWN", 2)
    for number in range(3):
        add_change(ORG, actor_id=f"user-{number}")
    assert [user.user_id for user in known_actors(ORG)] == ["user-0", "user-1"]


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
            known_actors(ORG)
        explain = "EXPLAIN " if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN "
        cursor.execute(explain + captured[-1]["sql"].replace("%", "%%"), [])
        plan = "\n".join(str(line) for line in cursor.fetchall())
    assert "admin_log_by_actor" in plan, plan
    assert "SCAN audit" not in plan
    assert "Seq Scan" not in plan
