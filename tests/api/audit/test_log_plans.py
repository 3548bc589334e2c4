"""How the database finds rows of the log: each filter and each summary has an index."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoDbBlocker

from audit import selectors
from audit.distinct_values import distinct_values, latest_labels
from audit.filters import REQUEST_FILTERS, Filters
from audit.log_pages import Page, page_of
from audit.log_query import LogQuery
from audit.matching import matching_entries
from audit.models import RequestAuditEntry
from audit.usage.response_times import response_times
from gateway.lib.ids import first_log_id_at, log_id_for
from tests.api.audit.rows import NOON, ORG, OTHER_ORG
from tests.factories.module_rows import rows_of_module

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("long_log")]


@pytest.fixture(scope="module")
def long_log(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """A log of 4,000 rows of 40 organizations."""
    with rows_of_module(django_db_blocker, _make_log):
        yield


def _make_log() -> None:
    orgs = [ORG, OTHER_ORG, *(uuid.UUID(int=number) for number in range(38))]
    rows = [
        RequestAuditEntry(
            id=log_id_for(NOON - timedelta(minutes=n)),
            org_id=orgs[n % 40],
            user_id=f"user-{n % 49}",
            user_label="U",
            vendor=f"v-{n % 19}",
            tool=f"t-{n % 71}",
            source="mcp",
            status="success" if n % 16 else "denied",
            request_id=f"r-{n}",
            timestamp=NOON - timedelta(minutes=n),
        )
        for n in range(4_000)
    ]
    RequestAuditEntry.objects.bulk_create(rows, batch_size=500)
    if connection.vendor == "postgresql":  # it does it by itself in the background; SQLite never does
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE audit_requestauditentry")


@pytest.fixture
def _noon() -> Iterator[None]:
    with time_machine.travel(NOON, tick=False):
        yield


def page(filters: Filters | None = None, before: uuid.UUID | None = None) -> Page:
    rows = matching_entries(RequestAuditEntry, ORG, filters or Filters())
    return page_of(rows, LogQuery(limit=20, cursor=before))


def plan_of(select: Callable[[], object]) -> str:
    """How the database would find the rows of `select`."""
    with connection.cursor() as cursor:
        with CaptureQueriesContext(connection) as captured:
            select()
        asked = [each["sql"] for each in captured]
        query = next((sql for sql in asked if "ORDER BY" in sql), asked[-1]).replace("%", "%%")
        explain = "EXPLAIN " if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN "
        cursor.execute(explain + query, [])
        lines = [str(line) for line in cursor.fetchall()]
    # Months without a row are read as they are.
    return "\n".join(line for line in lines if "Seq Scan" not in line or "_before" in line)


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ({}, "request_log_of_org"),
        ({"start": "2026-03-08", "end": "2026-03-09"}, "request_log_of_org"),
        ({"user_id": "user-1"}, "request_log_of_user"),
        ({"vendor": "v-1"}, "request_log_of_vendor"),
        # SQLite has no statistics to choose by; it reads the organization's part of one index.
        ({"tool": "t-1"}, "request_log_of_vendor" if connection.vendor == "postgresql" else "COVERING"),
        ({"tool": "t-1", "vendor": "v-1"}, "request_log_of_vendor"),
        ({"source": "mcp"}, "request_log_of_org"),
        ({"status": "denied"}, "request_log_of_status"),
        ({"request_id": "r-1"}, "request_log_of_request"),
    ],
)
def test_every_filter_has_its_index(query: dict[str, str], index: str) -> None:
    filters = Filters.parse(REQUEST_FILTERS, query)
    plan = plan_of(lambda: page(filters))
    assert index in plan, plan
    assert "SCAN audit" not in plan
    assert "Seq Scan" not in plan


def test_a_later_page_begins_in_the_index() -> None:
    before = first_log_id_at(NOON - timedelta(minutes=500))
    plan = plan_of(lambda: page(before=before))
    walk = "request_log_of_org (org_id=? AND id<?)" if connection.vendor == "sqlite" else "request_log_of_org"
    assert walk in plan, plan
    assert "Sort" not in plan
    assert "B-TREE" not in plan


@pytest.mark.parametrize(
    ("select", "index"),
    [
        (lambda org_id: distinct_values(RequestAuditEntry, org_id, "vendor"), "request_log_of_vendor"),
        (lambda org_id: latest_labels(RequestAuditEntry, org_id, "user_id"), "request_log_of_user"),
        (lambda org_id: selectors.last_calls(org_id, ["user-1", "user-2"]), "request_log_of_user"),
        (selectors.recent_errors, "request_log_of_status"),
        (lambda org_id: response_times(org_id, "v-1"), "request_log_of_vendor"),
        (lambda org_id: selectors.recent_calls(org_id, 1), "request_log_of_org"),
        (lambda org_id: selectors.recent_calls(org_id, 1), "request_log_of_status"),
        (lambda org_id: selectors.recent_calls(org_id, 1, user_id="user-1"), "request_log_of_user"),
    ],
)
@pytest.mark.usefixtures("_noon")
def test_every_summary_has_its_index(select: Callable[[uuid.UUID], object], index: str) -> None:
    plan = plan_of(lambda: select(ORG))
    assert index in plan, plan
    assert "SCAN audit" not in plan
    assert "Seq Scan" not in plan


@pytest.mark.usefixtures("_noon")
def test_rejected_credentials_have_an_index_of_their_own() -> None:
    plan = plan_of(lambda: selectors.rejected_uses(ORG))
    assert "request_log_rejected" in plan, plan
