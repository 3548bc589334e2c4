"""Webhooks of log shipping as the library of Standard Webhooks verifies them."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.db import transaction
from standardwebhooks import Webhook, WebhookVerificationError

from audit.models import AdminAuditEntry, LogDestination, RequestAuditEntry
from audit.shipping import destinations
from gateway.lib import clock
from gateway.lib.guarded_client import send
from tests.api.audit.rows import ORG
from tests.api.audit.shipping.stage import ANA, change, deliver_due, record_calls
from tests.receivers import Receiver
from tests.receivers.wire import Request

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "whsec_ZG9udC1zaG93LW1lLThjMWYtYW5kLW1vcmU="
NEXT_SECRET = "whsec_YW5vdGhlci1vbmUtZm9yLXRoZS1uZXh0LXllYXI="


def add(receiver: Receiver, **config: str) -> LogDestination:
    with transaction.atomic():
        return destinations.create(
            org_id=ORG,
            actor=ANA,
            label="Hook",
            platform="webhook",
            endpoint_url=f"{receiver.url}/hook",
            config=config,
        )


def ids() -> list[str]:
    """Of all records of ORG, in the order of time."""
    rows = [*RequestAuditEntry.objects.filter(org_id=ORG), *AdminAuditEntry.objects.filter(org_id=ORG)]
    return [str(row.id) for row in sorted(rows, key=lambda row: row.id)]


def verified(secret: str | bytes, request: Request) -> list[str]:
    """The ids of a batch. Raises: WebhookVerificationError."""
    events = Webhook(secret).verify(request.raw, dict(request.headers.items()))["events"]
    return [event["id"] for event in events]


def test_the_library_for_webhooks_verifies_each_batch() -> None:
    with Receiver("webhook", secrets=[SECRET]) as receiver:
        add(receiver, secret=SECRET)
        record_calls("r-1", "ü-2", client_name="Ed’s “client” \u2028")
        deliver_due(send)
        record_calls("r-3")
        deliver_due(send)
        first, second = receiver.requests
    assert verified(SECRET, first) + verified(SECRET, second) == ids()
    assert len(ids()) == 4
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        verified(NEXT_SECRET, first)
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        Webhook(SECRET).verify(first.raw.replace(b"r-1", b"r-9"), dict(first.headers.items()))
    with time_machine.travel(clock.now() + timedelta(minutes=6)), pytest.raises(WebhookVerificationError, match="old"):
        verified(SECRET, first)


def test_while_a_secret_changes_the_library_verifies_with_either() -> None:
    with Receiver("webhook", secrets=[NEXT_SECRET]) as receiver:
        destination = add(receiver, secret=SECRET)
        change(destination, config={"secret": NEXT_SECRET, "previousSecret": SECRET})
        deliver_due(send)
        change(destination, config={"secret": NEXT_SECRET, "previousSecret": ""})
        deliver_due(send)
        both, new = receiver.requests
    assert verified(SECRET, both) == verified(NEXT_SECRET, both) == ids()[:2]
    assert verified(NEXT_SECRET, new) == ids()[2:]
    with pytest.raises(WebhookVerificationError):
        verified(SECRET, new)


def test_a_secret_that_is_a_text_is_its_bytes() -> None:
    with Receiver("webhook") as receiver:
        add(receiver, secret="a text of the receiver's")
        deliver_due(send)
        (request,) = receiver.requests
    assert verified(b"a text of the receiver's", request) == ids()
