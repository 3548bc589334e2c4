"""Seals of the logs, and what a comparison with them finds. A second organization's chain stays whole throughout."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from io import StringIO

import pytest
import structlog
import time_machine
from django.core.management import CommandError, call_command
from django.db import transaction
from pytest_django.fixtures import Settings

from audit import seals, tasks, verification
from audit.actor import system
from audit.admin_log import record_admin
from audit.audit_connection import AuditConnection, open_audit_connection
from audit.event_types import EventType
from audit.models import AdminAuditEntry, PrunedLog, RequestAuditEntry, Seal
from audit.retention import prune
from audit.seals import seal_next
from audit.stream import Log
from audit.tasks import seal_logs
from audit.verification import Finding, verify
from gateway.lib import ids
from tests.api.audit.rows import NOON, ORG, OTHER_ORG, make_record
from tests.factories.until import until_true

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("undisturbed_stream")]
Rows = list[RequestAuditEntry]


@pytest.fixture
def log() -> Iterator[AuditConnection]:
    opened = open_audit_connection()
    yield opened
    opened.close()


def sealed(log: AuditConnection, *, batches: int = 3, each: int = 4) -> Rows:
    """ORG's sealed rows, in the order of the stream; OTHER_ORG has as many."""
    for batch in range(batches):
        for number in range(each):
            moment = NOON + timedelta(minutes=batch, seconds=number)
            for org_id in (ORG, OTHER_ORG):
                log.commit([make_record(org_id=org_id, timestamp=moment, request_id=f"{batch}-{number}")])
        seal(2 * each)
    return list(RequestAuditEntry.objects.filter(org_id=ORG).order_by("position", "id"))


def seal(rows: int, log: Log = Log.REQUESTS) -> None:
    """Other databases' transactions hold the stream back now and then."""
    done = 0

    def all_sealed() -> bool:
        nonlocal done
        done += seal_next(log)
        return done >= rows

    until_true(all_sealed)


def findings(log: Log = Log.REQUESTS) -> list[Finding]:
    result = verify(log)
    assert not [each for each in result.findings if each.org_id == OTHER_ORG]
    return result.findings


@pytest.mark.parametrize(("column", "value"), [("kind", "resource"), ("item", "test://one")])
def test_the_kind_of_a_call_is_sealed(log: AuditConnection, column: str, value: str) -> None:
    row = sealed(log)[5]
    RequestAuditEntry.objects.filter(pk=row.pk).update(**{column: value})
    assert findings() == [Finding(ORG, Log.REQUESTS, "a row was changed", row.id)]


def test_seals_of_the_release_before_still_fit(log: AuditConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as before:
        before.setattr(seals, "VERSION", 1)
        before.setattr(seals, "row_digest", partial(seals.row_digest, version=1))
        sealed(log, batches=1)
    assert set(Seal.objects.values_list("version", flat=True)) == {1}
    log.commit([make_record(org_id=ORG, kind="prompt", item="greet", tool="")])
    seal(1)
    assert findings() == []
    assert Seal.objects.filter(org_id=ORG).latest("number").version == 2


def test_an_untouched_log_equals_its_seals(log: AuditConnection) -> None:
    rows = sealed(log)
    result = verify(Log.REQUESTS)
    assert (result.rows, result.expired, result.unsealed, result.findings) == (24, 0, 0, [])
    assert result.seals == Seal.objects.count() >= 6
    log.commit([make_record(request_id="new")])
    assert verify(Log.REQUESTS).unsealed == 1
    assert verify(Log.REQUESTS, org_id=OTHER_ORG).rows == len(rows)


@pytest.mark.parametrize(
    "change",
    [
        {"status": "error"},
        {"user_label": "Somebody else"},
        {"duration_ms": 8_000},
        {"count": 2},
        {"timestamp": NOON},
        {"org_id": OTHER_ORG},
        {"position": 1},
    ],
)
def test_a_changed_row_is_named(log: AuditConnection, change: dict[str, object]) -> None:
    row = sealed(log)[5]
    RequestAuditEntry.objects.filter(id=row.id).update(**change)
    found = verify(Log.REQUESTS).findings
    fault = "a row was removed" if "org_id" in change else "a row was changed"
    assert Finding(ORG, Log.REQUESTS, fault, row.id) in found
    # A row that was given to another organization was inserted there.
    expected = {"a row was inserted"} if "org_id" in change else set()
    assert {each.fault for each in found if each.org_id == OTHER_ORG} == expected


@pytest.mark.parametrize("place", [0, 5, 7, 11])
def test_a_removed_row_is_named(log: AuditConnection, place: int) -> None:
    row = sealed(log)[place]
    RequestAuditEntry.objects.filter(id=row.id).delete()
    assert findings() == [Finding(ORG, Log.REQUESTS, "a row was removed", row.id)]


@pytest.mark.parametrize("place", [0, 5, 7])
def test_an_inserted_row_is_named(log: AuditConnection, place: int) -> None:
    before = sealed(log)[place]
    forged = RequestAuditEntry.objects.get(id=before.id)
    forged.id = uuid.UUID(int=before.id.int - 1)
    forged.save(force_insert=True)
    assert findings() == [Finding(ORG, Log.REQUESTS, "a row was inserted", forged.id)]


@pytest.mark.parametrize("org_id", [ORG, uuid.UUID(int=7)], ids=["sealed before", "never sealed"])
def test_a_row_behind_the_last_seal_is_named(log: AuditConnection, org_id: uuid.UUID) -> None:
    """The organization was quiet while others were sealed: no later seal of its own would cover the row."""
    rows = sealed(log)
    until_true(lambda: seal_a_call_of_the_other(log))
    forged = RequestAuditEntry.objects.get(id=rows[-1].id)
    forged.id = uuid.UUID(int=rows[-1].id.int + 2**30)
    forged.org_id = org_id
    forged.save(force_insert=True)
    fault = "a row is in no seal: it was inserted, or its seal was removed"
    assert findings() == [Finding(forged.org_id, Log.REQUESTS, fault, forged.id)]


def seal_a_call_of_the_other(log: AuditConnection) -> bool:
    log.commit([make_record(org_id=OTHER_ORG)])
    return seal_next(Log.REQUESTS) > 0


def test_a_removed_last_seal_shows_by_its_rows(log: AuditConnection) -> None:
    rows = sealed(log)
    last = Seal.objects.filter(org_id=ORG).latest("number")
    last.delete()
    found = Finding(
        ORG, Log.REQUESTS, "a row is in no seal: it was inserted, or its seal was removed", rows[-last.rows].id
    )
    assert findings() == [found]
    assert verify(Log.REQUESTS, since=last.made_at + timedelta(days=1)).findings == [found]


def cut_off(rows: Rows) -> None:
    """Removes the last batch of ORG with its seal, as if neither had ever been."""
    last = Seal.objects.filter(org_id=ORG).latest("number")
    RequestAuditEntry.objects.filter(id__in=[row.id for row in rows[-last.rows :]]).delete()
    last.delete()


def test_a_missing_end_shows_by_the_seal_that_was_noted(log: AuditConnection) -> None:
    rows = sealed(log)
    last = Seal.objects.filter(org_id=ORG).latest("number")
    noted = (last.number, bytes(last.digest))
    assert verify(Log.REQUESTS, org_id=ORG, expected=noted).findings == []
    cut_off(rows)
    assert findings() == []
    (found,) = verify(Log.REQUESTS, org_id=ORG, expected=noted).findings
    assert found.fault.startswith("the end is missing")
    log.commit([make_record(request_id="forged")])
    seal(1)
    (found,) = verify(Log.REQUESTS, org_id=ORG, expected=noted).findings
    assert found.fault == f"seal {last.number} is another one than the one that was noted"


def altered_entries(last: Seal) -> None:
    last.entries = bytes(len(last.entries))


def altered_digest(last: Seal) -> None:
    last.digest = bytes(32)


def altered_count(last: Seal) -> None:
    last.rows += 1


def altered_time(last: Seal) -> None:
    last.made_at -= timedelta(days=400)


@pytest.mark.parametrize(
    ("alter", "fault"),
    [
        (altered_entries, "the entries of seal {0} were changed"),
        (altered_digest, "seal {0} was changed"),
        (altered_count, "seal {0} was changed"),
        (altered_time, "seal {0} was changed"),
    ],
)
def test_a_changed_seal_shows(log: AuditConnection, alter: Callable[[Seal], None], fault: str) -> None:
    sealed(log)
    first = Seal.objects.filter(org_id=ORG).earliest("number")
    alter(first)
    first.save()
    assert findings() == [Finding(ORG, Log.REQUESTS, fault.format(first.number))]


def test_a_seal_of_a_forged_time_is_not_left_out(log: AuditConnection) -> None:
    sealed(log)
    first = Seal.objects.filter(org_id=ORG).earliest("number")
    since = first.made_at
    altered_time(first)
    first.save()
    (found,) = verify(Log.REQUESTS, since=since).findings
    assert found.fault == f"seal {first.number} was changed"


def test_a_missing_seal_shows(log: AuditConnection) -> None:
    sealed(log)
    first = Seal.objects.filter(org_id=ORG).earliest("number")
    first.delete()
    assert findings()[0].fault == f"seal {first.number} is missing"


def test_what_retention_removed_is_not_missing(log: AuditConnection, settings: Settings) -> None:
    settings.AUDIT_RETENTION_DAYS = 30
    rows = sealed(log)
    prune(rows[5].timestamp)
    assert RequestAuditEntry.objects.filter(org_id=ORG).count() == 7
    result = verify(Log.REQUESTS)
    assert (result.findings, result.expired, result.rows) == ([], 10, 14)
    RequestAuditEntry.objects.filter(id=rows[9].id).delete()
    assert findings() == [Finding(ORG, Log.REQUESTS, "a row was removed", rows[9].id)]


def test_a_row_that_is_too_young_for_retention_is_missing(log: AuditConnection, settings: Settings) -> None:
    settings.AUDIT_RETENTION_DAYS = 100_000
    row = sealed(log)[0]
    PrunedLog.objects.create(log=Log.REQUESTS, before=row.timestamp + timedelta(days=1))
    RequestAuditEntry.objects.filter(id=row.id).delete()
    assert findings() == [Finding(ORG, Log.REQUESTS, "a row was removed", row.id)]


def test_rows_of_the_admin_log_never_expire(settings: Settings) -> None:
    settings.AUDIT_RETENTION_DAYS = 0
    with transaction.atomic():
        row = record_admin(EventType.TEAM_CREATED, org_id=ORG, actor=system("test"))
    seal(1, Log.ADMIN)
    PrunedLog.objects.create(log=Log.ADMIN, before=row.timestamp + timedelta(days=1))
    AdminAuditEntry.objects.all().delete()
    assert findings(Log.ADMIN) == [Finding(ORG, Log.ADMIN, "a row was removed", row.id)]


def test_a_comparison_may_begin_late(log: AuditConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sealed(log, batches=2)
    since = Seal.objects.filter(org_id=ORG).latest("number")
    RequestAuditEntry.objects.filter(id=rows[0].id).update(status="error")
    assert verify(Log.REQUESTS, org_id=ORG, since=since.made_at).findings == []
    assert findings()[0].row_id == rows[0].id


def test_the_admin_log_has_a_chain_of_its_own() -> None:
    with transaction.atomic():
        for org_id in (ORG, OTHER_ORG):
            for _ in range(3):
                record_admin(EventType.TEAM_CREATED, org_id=org_id, actor=system("test"), metadata={"name": "Ops"})
    seal(6, Log.ADMIN)
    assert verify(Log.ADMIN).rows == 6
    row = AdminAuditEntry.objects.filter(org_id=ORG).order_by("position", "id")[1]
    AdminAuditEntry.objects.filter(id=row.id).update(metadata={"name": "Sales"})
    assert findings(Log.ADMIN) == [Finding(ORG, Log.ADMIN, "a row was changed", row.id)]


def test_the_task_seals_both_logs_and_says_so(log: AuditConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "BATCH_ROWS", 2)
    log.commit([make_record(request_id=f"r-{number}") for number in range(5)])
    log.commit([make_record(org_id=OTHER_ORG, status="unknown", request_id="its process died")])
    with transaction.atomic():
        record_admin(EventType.TEAM_CREATED, org_id=ORG, actor=system("test"))
    done = 0
    with structlog.testing.capture_logs() as lines:

        def all_sealed() -> bool:
            nonlocal done
            done += seal_logs()
            return done == 7

        until_true(all_sealed)
    noted = {(line["org_id"], line["log"], line["seal"]) for line in lines if line["event"] == "audit.sealed"}
    stored = {(str(s.org_id), s.log, f"{s.number}:{bytes(s.digest).hex()}") for s in Seal.objects.all()}
    assert noted == stored


@pytest.mark.parametrize(("minutes", "warnings"), [(29, 0), (31, 1)])
def test_a_stream_that_stands_still_is_told(
    log: AuditConnection, monkeypatch: pytest.MonkeyPatch, minutes: int, warnings: int
) -> None:
    monkeypatch.setattr(tasks, "seal_next", lambda log: 0)  # a transaction that stays open holds the rows back
    log.commit([make_record(org_id=org_id, timestamp=NOON) for org_id in (ORG, OTHER_ORG)])
    later = NOON + timedelta(minutes=minutes)
    with time_machine.travel(later, tick=False), structlog.testing.capture_logs() as lines:
        seal_logs()
    assert [line["log"] for line in lines if line["event"] == "audit.stream_stalled"] == ["requests"] * warnings


def command(*args: str) -> str:
    out = StringIO()
    call_command("audit_verify", *args, stdout=out, no_color=True)
    return out.getvalue()


def test_the_command_names_the_first_fault(log: AuditConnection) -> None:
    row = sealed(log)[3]
    assert "requests: 24 rows match" in command()
    last = Seal.objects.filter(org_id=ORG).latest("number")
    noted = f"{last.number}:{bytes(last.digest).hex()}"
    command("--org", str(ORG), "--log", "requests", "--seal", noted)
    RequestAuditEntry.objects.filter(id=row.id).update(tool="other")
    out = StringIO()
    with pytest.raises(CommandError) as refusal:
        call_command("audit_verify", "--org", str(ORG), stdout=out, no_color=True)
    assert refusal.value.returncode == 1
    assert f"requests of {ORG}: a row was changed ({row.id})" in out.getvalue()
    assert "requests: 12 rows" in command("--org", str(OTHER_ORG), "--since", "2026-01-01")


@pytest.mark.parametrize(
    "args",
    [
        ("--org", "acme"),
        ("--since", "yesterday"),
        ("--seal", f"1:{'0' * 64}"),
        ("--org", str(ORG), "--log", "requests", "--seal", "1:abc"),
        ("--org", str(ORG), "--log", "requests", "--seal", f"1:{'0' * 64}", "--since", "2026-01-01"),
    ],
)
def test_the_command_refuses_what_it_cannot_read(args: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        command(*args)


def test_ids_of_unknown_organizations_have_nothing_to_compare() -> None:
    assert verification.verify(Log.REQUESTS, org_id=ids.new_id()).seals == 0
