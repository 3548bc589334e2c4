"""Rejected and accepted credentials in the request log. Every test has the same facts in another organization."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import REJECTED, RequestAuditEntry
from audit.selectors import CredentialUse, RejectedUse, accepted_uses, rejected_uses
from tests.api.audit.rows import NOON, ORG, OTHER_ORG, add_row

pytestmark = pytest.mark.django_db
EARLIER = NOON - timedelta(hours=2)


@pytest.fixture(autouse=True)
def _noon() -> Iterator[None]:
    with time_machine.travel(NOON, tick=False):
        yield


def reject(timestamp: datetime = EARLIER, **changes: Any) -> None:
    add_row(**{"timestamp": timestamp, "status": "error", "error_code": REJECTED, **_OWN, **changes})


def accept(timestamp: datetime = EARLIER, **changes: Any) -> None:
    add_row(**{"timestamp": timestamp, **_OWN, **changes})


_OWN: dict[str, Any] = {"credential_scope": "organization"}


def use(**changes: Any) -> CredentialUse:
    facts = {"vendor": "acme", "scope": "organization", "name": "", "since": EARLIER, **changes}
    return CredentialUse(**facts)  # type: ignore[arg-type]


def test_the_latest_rejection_of_each_credential_and_caller() -> None:
    reject(EARLIER - timedelta(minutes=5))
    reject()
    reject(EARLIER - timedelta(minutes=1), user_id="user-2")
    reject(EARLIER - timedelta(minutes=2), credential_scope="named_key", credential_name="Ops")
    reject(EARLIER - timedelta(minutes=3), vendor="globex")
    reject(NOON, org_id=OTHER_ORG)
    assert rejected_uses(ORG) == [
        RejectedUse("acme", "organization", "", "user-1", EARLIER, EARLIER - timedelta(minutes=5)),
        RejectedUse("acme", "organization", "", "user-2", *[EARLIER - timedelta(minutes=1)] * 2),
        RejectedUse("acme", "named_key", "Ops", "user-1", *[EARLIER - timedelta(minutes=2)] * 2),
        RejectedUse("globex", "organization", "", "user-1", *[EARLIER - timedelta(minutes=3)] * 2),
    ]
    assert [each.rejected_at for each in rejected_uses(OTHER_ORG)] == [NOON]


@pytest.mark.parametrize(
    "changes",
    [
        {"error_code": "vendor_timeout"},
        {"error_code": "tool_error"},
        {"status": "denied", "error_code": "no_credentials"},
        {"status": "success", "error_code": ""},
        {"credential_scope": ""},
    ],
)
def test_other_endings_are_no_rejections(changes: dict[str, Any]) -> None:
    reject(**changes)
    assert rejected_uses(ORG) == []


def test_a_week_is_looked_at() -> None:
    week = timedelta(days=7)
    reject(NOON - week - timedelta(seconds=1))
    assert rejected_uses(ORG) == []
    reject(NOON - week)
    assert [each.rejected_at for each in rejected_uses(ORG)] == [NOON - week]


@pytest.mark.parametrize(
    ("changes", "is_accepted"),
    [
        ({}, True),
        ({"timestamp": EARLIER}, False),
        ({"org_id": OTHER_ORG}, False),
        ({"vendor": "globex"}, False),
        ({"credential_scope": "named_key"}, False),
        ({"credential_name": "Ops"}, False),
        ({"cached": True}, False),
        ({"status": "error", "error_code": "vendor_timeout"}, False),
        ({"status": "error", "error_code": REJECTED}, False),
        ({"status": "unknown"}, False),
    ],
)
def test_what_counts_as_accepted(changes: dict[str, Any], is_accepted: bool) -> None:
    accept(**{"timestamp": EARLIER + timedelta(seconds=1), **changes})
    asked = use()
    assert accepted_uses(ORG, [asked]) == ({asked} if is_accepted else set())


def test_callers_are_distinguished_where_they_are_named() -> None:
    accept(NOON, credential_scope="team", user_id="user-2")
    one, both, nobody = (
        use(scope="team", user_ids=ids) for ids in (("user-1",), ("user-1", "user-2"), ("user-3", "user-4"))
    )
    anybody = use(scope="team")
    assert accepted_uses(ORG, [one, both, nobody, anybody]) == {both, anybody}
    assert accepted_uses(OTHER_ORG, [one, both, nobody, anybody]) == set()


def test_many_are_asked_in_one_query() -> None:
    accept(NOON, credential_scope="named_key", credential_name="key 399")
    uses = [use(scope="named_key", name=f"key {number}") for number in range(400)]
    with CaptureQueriesContext(connection) as queries:
        assert accepted_uses(ORG, uses) == {uses[399]}
    assert len(queries) == 1
    with CaptureQueriesContext(connection) as queries:
        assert accepted_uses(ORG, []) == set()
    assert len(queries) == 0


def test_indexes_that_begin_with_the_organization_answer() -> None:
    with CaptureQueriesContext(connection) as queries:
        rejected_uses(ORG)
        accepted_uses(ORG, [use()])
    indexes = {index.name for index in RequestAuditEntry._meta.indexes}
    explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
    for query in queries.captured_queries:
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SET LOCAL enable_seqscan = off")  # a table this small is read whole otherwise
            cursor.execute(explain + query["sql"])
            plan = " ".join(str(row) for row in cursor.fetchall())
        assert any(index in plan for index in indexes), plan
