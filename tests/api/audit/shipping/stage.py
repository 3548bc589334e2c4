"""A destination of each organization, and a platform that is played by a function."""

from __future__ import annotations

import gzip
import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from audit.actor import Actor
from audit.audit_connection import open_audit_connection
from audit.call_record import CallRecord
from audit.models import AdminAuditEntry, LogDestination, RequestAuditEntry
from audit.shipping import destinations, waiting
from audit.shipping.claims import claim_due
from audit.shipping.delivery import deliver
from audit.shipping.waiting import Lag
from audit.stream import readable_below
from gateway.lib import clock
from gateway.lib.guarded_client import Response
from tests.api.audit.rows import ORG, make_record
from tests.api.audit.undisturbed import bound
from tests.factories.until import until_true

ANA = Actor("user-1", "Ana")
URL = "https://logs.example.com/hook"
Reply = Response | Exception


@dataclass
class PlayedPlatform:
    """Answers with `replies` in turn, then with 200. `refuses`: request ids of records that it answers with 422."""

    replies: list[Reply] = field(default_factory=list)
    refuses: set[str] = field(default_factory=set)
    batches: list[list[dict[str, Any]]] = field(default_factory=list)
    meanwhile: Callable[[], None] | None = None

    def __call__(self, method: str, url: str, **options: Any) -> Response:
        body = options["body"]
        is_packed = options["headers"].get("Content-Encoding") == "gzip"
        sent = json.loads(gzip.decompress(body) if is_packed else body)["events"]
        events = [{"id": event["id"], **event["data"]} for event in sent]
        self.batches.append(events)
        if self.meanwhile is not None:
            self.meanwhile()
        reply = self.replies.pop(0) if self.replies else Response(200, {}, b"")
        if isinstance(reply, Exception):
            raise reply
        if self.refuses & {event.get("requestId") for event in events}:
            return Response(422, {}, b"bad field")
        return reply

    def accepted(self) -> list[str]:
        """The request ids of all batches that were sent."""
        return [event["requestId"] for batch in self.batches for event in batch if "requestId" in event]


def until_readable() -> None:
    """Waits until consumers may read all rows: transactions of other databases may hold them back for a moment."""

    def is_readable() -> bool:
        below = readable_below()
        models = (RequestAuditEntry, AdminAuditEntry)
        if any(model.objects.filter(position__gte=below).exists() for model in models):
            return False
        bound.reached = below
        return True

    until_true(is_readable)


def change(destination: LogDestination, **changes: Any) -> None:
    with transaction.atomic():
        row = destinations.destination_of(destination.org_id, destination.pk, locked=True)
        destinations.change(row, destinations.Changes(**changes), actor=ANA)
    until_readable()


def replay(destination: LogDestination, since: datetime) -> None:
    with transaction.atomic():
        row = destinations.destination_of(destination.org_id, destination.pk, locked=True)
        destinations.replay(row, since, actor=ANA)
    until_readable()


def make_destination(org_id: uuid.UUID = ORG, label: str = "SIEM", **config: str) -> LogDestination:
    with transaction.atomic():
        made = destinations.create(
            org_id=org_id, actor=ANA, label=label, platform="webhook", endpoint_url=URL, config=config
        )
    until_readable()
    return made


def record_calls(*names: str, org_id: uuid.UUID = ORG, **changes: object) -> None:
    """Committed as the call path does."""
    connection = open_audit_connection()
    connection.commit([_call(name, org_id, changes) for name in names])
    connection.close()
    until_readable()


def _call(name: str, org_id: uuid.UUID, changes: dict[str, object]) -> CallRecord:
    return make_record(**{"request_id": name, "org_id": org_id, "timestamp": clock.now(), **changes})


def deliver_due(platform: Callable[..., Response]) -> int:
    """One round of the scheduler and its deliveries."""
    until_readable()
    return sum(deliver(pk, claim, platform) for pk, claim in claim_due())


def deliver_all(platform: Callable[..., Response]) -> int:
    """Rounds until nothing is due: a delivery may write a record of its own, which the next round sends."""
    handled = 0
    while done := deliver_due(platform):
        handled += done
    return handled


def lag_of(destination: LogDestination) -> Lag:
    until_readable()
    return waiting.lag_of(destination)


def answers(*statuses: int) -> Sequence[Reply]:
    return [Response(status, {}, b"not now") for status in statuses]
