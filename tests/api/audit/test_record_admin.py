from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest
import structlog
from django.db import transaction

from audit.actor import Actor, Target, system
from audit.admin_log import record_admin
from audit.event_types import EventType
from audit.models import AdminAuditEntry
from tests.api.audit.rows import ORG, OTHER_ORG

ANA = Actor("user-1", "Ana")


@pytest.mark.django_db
def test_a_change_is_recorded_with_everything_that_is_known() -> None:
    with structlog.contextvars.bound_contextvars(request_id="r-1", ip_address="10.0.0.1"), transaction.atomic():
        row = record_admin(
            EventType.CREDENTIAL_CREATED,
            org_id=ORG,
            actor=ANA,
            target=Target("c-1", "Production"),
            metadata={"vendor": "acme", "fields": ("apiKey", "region"), "rotated": False, "age_days": 3, "note": None},
        )
        record_admin(EventType.CREDENTIAL_CREATED, org_id=OTHER_ORG, actor=system("health monitor"))
    stored = AdminAuditEntry.objects.get(org_id=ORG)
    assert stored == row
    assert (stored.event_type, stored.actor_id, stored.actor_label) == ("credential.created", "user-1", "Ana")
    assert (stored.target_id, stored.target_label) == ("c-1", "Production")
    assert (stored.ip_address, stored.request_id) == ("10.0.0.1", "r-1")
    assert stored.metadata == {
        "vendor": "acme",
        "fields": ["apiKey", "region"],
        "rotated": False,
        "age_days": 3,
        "note": None,
    }
    other = AdminAuditEntry.objects.get(org_id=OTHER_ORG)
    assert (other.actor_id, other.actor_label, other.target_id) == ("system", "System (health monitor)", "")


@pytest.mark.django_db
def test_address_and_request_id_come_from_the_log_context() -> None:
    with transaction.atomic():
        with structlog.contextvars.bound_contextvars(request_id="from-context", ip_address="10.9.9.9"):
            row = record_admin(EventType.AGENT_KEY_REVOKED, org_id=ORG, actor=ANA)
        without = record_admin(EventType.AGENT_KEY_REVOKED, org_id=ORG, actor=ANA)
    assert (row.request_id, row.ip_address) == ("from-context", "10.9.9.9")
    assert (without.request_id, without.ip_address) == ("", "")


@pytest.mark.django_db(transaction=True)
def test_outside_a_transaction_it_refuses() -> None:
    with pytest.raises(RuntimeError, match="transaction"):
        record_admin(EventType.AGENT_KEY_CREATED, org_id=ORG, actor=ANA)
    assert not AdminAuditEntry.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_row_goes_with_the_change() -> None:
    with transaction.atomic():
        record_admin(EventType.AGENT_KEY_CREATED, org_id=ORG, actor=ANA)
        transaction.set_rollback(True)
    assert not AdminAuditEntry.objects.exists()


@pytest.mark.django_db
def test_hostile_labels_and_metadata_are_stored_cleaned() -> None:
    hostile = "x\x00\r\n\x1b[2J\ud800"
    with structlog.contextvars.bound_contextvars(request_id=hostile), transaction.atomic():
        record_admin(
            EventType.SERVICE_CLIENT_CREATED,
            org_id=ORG,
            actor=Actor("u", hostile),
            target=Target("t", hostile * 99),
            metadata={hostile: [hostile, {"deep": {"deeper": {"deepest": [hostile]}}}]},
        )
    stored = AdminAuditEntry.objects.get()
    assert stored.actor_label == stored.request_id == "x\ufffd\ufffd\ufffd\ufffd[2J\ufffd"
    assert len(stored.target_label) == 200
    assert not any(ord(character) < 32 for character in str(stored.metadata))


@pytest.mark.django_db
def test_secret_shaped_text_in_metadata_is_masked_and_other_types_become_text() -> None:
    client = uuid.uuid4()
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    with transaction.atomic():
        record_admin(
            EventType.AGENT_KEY_CREATED,
            org_id=ORG,
            actor=ANA,
            metadata={
                "sent": "Bearer abcdefgh12345678",
                "client": client,
                "at": moment,
                "ratio": 0.5,
                "nan": float("nan"),
            },
        )
    stored = AdminAuditEntry.objects.get().metadata
    assert "abcdefgh12345678" not in stored["sent"]
    assert (stored["client"], stored["at"], stored["ratio"], stored["nan"]) == (str(client), str(moment), 0.5, "nan")
