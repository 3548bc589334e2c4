"""`shipping_status` and `replay_shipping`."""

from __future__ import annotations

import json
import re
import uuid
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from audit.models import AdminAuditEntry, LogDestination
from gateway.lib import clock
from tests.api.audit.rows import ORG, OTHER_ORG
from tests.api.audit.shipping.stage import PlayedPlatform, answers, change, deliver_due, make_destination, record_calls

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "a-signing-secret-that-nobody-may-read"


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_status_of_every_organization_as_json() -> None:
    ours, theirs = make_destination(ORG, secret=SECRET), make_destination(OTHER_ORG, "Theirs")
    record_calls("r-1", "r-2")
    change(theirs, enabled=False)
    deliver_due(PlayedPlatform(list(answers(503))))
    text = run("shipping_status", "--json")
    found = {each["id"]: each for each in json.loads(text)}
    assert set(found) == {str(ours.pk), str(theirs.pk)}
    failing, paused = found[str(ours.pk)], found[str(theirs.pk)]
    ours.refresh_from_db()
    assert failing == {
        "id": str(ours.pk),
        "orgId": str(ORG),
        "label": "SIEM",
        "platform": "webhook",
        "enabled": True,
        "status": "retrying",
        "lagRecords": 3,
        "lagSeconds": failing["lagSeconds"],
        "delivered": 0,
        "refused": 0,
        "skipped": 0,
        "lastDeliveryAt": None,
        "nextAttemptAt": clock.rfc3339(ours.next_attempt_at),
        "lastError": "503: not now",
    }
    assert 0 <= failing["lagSeconds"] < 60
    assert (paused["enabled"], paused["label"], paused["lastError"]) == (False, "Theirs", None)
    assert SECRET not in text


def test_status_in_words() -> None:
    assert run("shipping_status") == "There is no destination.\n"
    assert json.loads(run("shipping_status", "--json")) == []
    destination = make_destination(secret=SECRET)
    deliver_due(PlayedPlatform())
    line = run("shipping_status")
    destination.refresh_from_db()
    assert line == (
        f"{destination.pk} of {ORG}: SIEM (webhook), ok, 0 waiting, 1 delivered, 0 refused, 0 skipped,"
        f" last delivery {clock.rfc3339(destination.last_delivery_at)}\n"
    )
    change(destination, enabled=False)
    assert re.search(r"paused \(ok\), 1 waiting for \d+ s", run("shipping_status"))


def test_a_replay_delivers_again_and_is_audited() -> None:
    before = clock.now() - timedelta(minutes=1)
    destination = make_destination()
    other = make_destination(OTHER_ORG)
    record_calls("r-1", "r-2")
    deliver_due(PlayedPlatform())
    said = run("replay_shipping", str(destination.pk), "--since", clock.rfc3339(before))
    # Its own record may not be readable yet.
    first, number, rest = re.split(r"(\d) wait", said)
    assert (first, rest) == (f"SIEM gets the records since {clock.rfc3339(before)}: ", ".\n")
    assert int(number) in (3, 4)
    platform = PlayedPlatform()
    deliver_due(platform)
    assert platform.accepted() == ["r-1", "r-2"]
    entry = AdminAuditEntry.objects.get(event_type="log_shipping.replayed")
    assert (entry.org_id, entry.target_id, entry.actor_id) == (ORG, str(destination.pk), "system")
    assert entry.actor_label == "System (replay_shipping)"
    other.refresh_from_db()
    assert other.delivered == 1


def test_a_paused_destination_says_so() -> None:
    destination = make_destination()
    change(destination, enabled=False)
    assert "It is paused" in run("replay_shipping", str(destination.pk), "--since", "2026-01-31")


@pytest.mark.parametrize(
    ("since", "words"),
    [
        ("yesterday", "Use a date such as"),
        ("2026-02-30", "Use a date such as"),
        ("2999-01-01", "Enter a time in the past."),
    ],
)
def test_a_wrong_time_replays_nothing(since: str, words: str) -> None:
    destination = make_destination()
    with pytest.raises(CommandError, match=words):
        run("replay_shipping", str(destination.pk), "--since", since)
    assert not AdminAuditEntry.objects.filter(event_type="log_shipping.replayed").exists()
    assert LogDestination.objects.get().skip_before is None


@pytest.mark.parametrize("named", [str(uuid.uuid4()), "no-id", ""])
def test_an_unknown_destination_is_named(named: str) -> None:
    make_destination()
    with pytest.raises(CommandError, match=f"There is no destination {named}"):
        run("replay_shipping", named, "--since", "2026-01-31")


def test_the_time_is_required() -> None:
    with pytest.raises(CommandError, match="--since"):
        run("replay_shipping", str(make_destination().pk))
