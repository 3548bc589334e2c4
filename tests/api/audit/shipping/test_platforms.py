"""Each platform against a strict receiver of its wire format: every record arrives in the end, after any answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine

from audit.models import AdminAuditEntry, LogDestination, RefusedRecord, RequestAuditEntry
from audit.shipping import sending
from gateway.lib import clock
from tests.api.audit.rows import ORG, OTHER_ORG
from tests.api.audit.shipping.platform_stage import CASES, Case, led_to
from tests.api.audit.shipping.stage import deliver_all, deliver_due, record_calls
from tests.receivers import Fault, Receiver

pytestmark = pytest.mark.django_db(transaction=True)
MOMENT = clock.now
FAULTS = {
    "401": Fault.answers(401),
    "403": Fault.answers(403),
    "404": Fault.answers(404),
    "429": Fault.answers(429),
    "429 in seconds": Fault.answers(429, retry_after=7),
    "500": Fault.answers(500),
    "503": Fault.answers(503),
    "503 without a word": Fault.empty(503),
    "garbage": Fault.garbage(503),
    "a page of another program": Fault.garbage(),
    "a redirect": Fault.redirects(),
    "no HTTP": Fault.not_http(),
    "a closed connection": Fault.closes(),
    "a lost answer": Fault.closes().but_keeps(),
    "no answer": Fault.never_answers(),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def ids_of(org_id: Any = ORG) -> list[str]:
    """The ids of all records of an organization, in the order of time."""
    rows = [*RequestAuditEntry.objects.filter(org_id=org_id), *AdminAuditEntry.objects.filter(org_id=org_id)]
    return [str(row.id) for row in sorted(rows, key=lambda row: row.id)]


def test_records_arrive_in_order_and_only_those_of_the_organization(case: Case) -> None:
    with case.receiver() as receiver:
        destination = case.destination()
        record_calls("r-1", "r-2", org_id=OTHER_ORG)
        record_calls("r-1", "r-2", status="error", error_code="vendor_timeout", credential_scope="org")
        record_calls("r-3", vendor="", tool="", status="denied", error_code="tool_not_allowed", client_name="Ed's")
        assert deliver_due(led_to(receiver)) == 4
        assert receiver.ids(*case.id_path) == ids_of()
        assert receiver.violations == []
    destination.refresh_from_db()
    assert (destination.status, destination.delivered, destination.last_error) == ("ok", 4, "")


@pytest.mark.parametrize("fault", FAULTS)
def test_after_a_fault_the_records_arrive(case: Case, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "TIMEOUT_S", 0.3 if fault == "no answer" else 10.0)
    monkeypatch.setattr(sending, "_tokens", type(sending._tokens)())
    with case.receiver() as receiver:
        destination = case.destination()
        record_calls("r-1", "r-2")
        if case.kind == "webhook" and fault == "a page of another program":
            pytest.skip("a receiver may answer with any body")
        receiver.fail_next(FAULTS[fault])
        assert deliver_due(led_to(receiver)) == 0
        destination.refresh_from_db()
        _assert_it_says_why(destination, case)
        monkeypatch.setattr(sending, "TIMEOUT_S", 10.0)
        with time_machine.travel(clock.now() + timedelta(minutes=2), tick=True):
            deliver_all(led_to(receiver))
        assert set(ids_of()) <= set(receiver.ids(*case.id_path))
        assert receiver.violations == []
    destination.refresh_from_db()
    assert (destination.failures, destination.refused, destination.skipped) == (0, 0, 0)


def _assert_it_says_why(destination: LogDestination, case: Case) -> None:
    assert destination.failures == 1
    assert destination.last_error
    for secret in case.secrets:
        assert secret not in destination.last_error


def test_a_refused_record_is_set_aside_and_all_others_arrive(case: Case) -> None:
    with case.receiver() as receiver:
        destination = case.destination()
        assert deliver_due(led_to(receiver)) == 1
        record_calls(*(f"r-{n}" for n in range(12)))
        poisoned = str(RequestAuditEntry.objects.get(request_id="r-5").id)
        receiver.poison = lambda event: poisoned in repr(event)
        deliver_due(led_to(receiver))
        destination.refresh_from_db()
        if destination.failures:
            assert set(receiver.ids(*case.id_path)) < set(ids_of()), "a platform that cannot refuse one record waits"
            return
        assert set(receiver.ids(*case.id_path)) == set(ids_of()) - {poisoned}
        assert receiver.violations == []
    named = None if case.kind == "otlp" else poisoned
    assert [row.row_id and str(row.row_id) for row in RefusedRecord.objects.all()] == [named]
    assert (destination.status, destination.refused) == ("ok", 1)


def test_a_wrong_secret_loses_nothing(case: Case) -> None:
    settings = {**case.settings}
    name = next(
        each for each in ("password", "client_secret", "token", "api_key", "headers", "secrets") if each in settings
    )
    settings[name] = {"headers": {"X-Key": "other"}, "secrets": ["whsec_b3RoZXI="]}.get(name, "other")
    with Receiver(case.kind, **settings) as receiver:
        destination = case.destination()
        record_calls("r-1")
        assert deliver_due(led_to(receiver)) == 0
        assert receiver.events == []
    destination.refresh_from_db()
    assert (destination.failures, destination.refused) == (1, 0)
    _assert_it_says_why(destination, case)


@pytest.mark.parametrize(
    ("age", "words"), [(timedelta(hours=2), "more than an hour older"), (timedelta(days=8), "one week")]
)
def test_records_that_loki_finds_too_old_are_no_wall(age: timedelta, words: str) -> None:
    case = CASES["loki"]
    with time_machine.travel(clock.now(), tick=False) as now, case.receiver() as receiver:
        destination = case.destination()
        record_calls("newest")
        deliver_all(led_to(receiver))
        for n in range(30):
            record_calls(f"old-{n}", timestamp=clock.now() - age)
        now.shift(1)
        deliver_all(led_to(receiver))
        destination.refresh_from_db()
        assert (destination.delivered, destination.refused, destination.failures) == (2, 30, 0)
        assert words in destination.last_error
        assert len(receiver.requests) <= 3 + 5, "they are found out together"
        assert all(words in row.reason for row in RefusedRecord.objects.all())
        record_calls("poison")
        poison = str(RequestAuditEntry.objects.get(request_id="poison").id)
        receiver.poison = lambda event: poison in event["line"]
        for _ in range(6):
            deliver_all(led_to(receiver))
            destination.refresh_from_db()
            now.move_to(max(destination.next_attempt_at, clock.now()))
        assert destination.refused == 31, "old records say nothing about the destination"
        record_calls("next")
        assert deliver_all(led_to(receiver)) == 1
        destination.refresh_from_db()
        assert (destination.status, destination.last_error) == ("ok", "")
        assert receiver.violations == []
