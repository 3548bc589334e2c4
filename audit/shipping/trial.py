"""A test record for one destination, sent at once, and what its platform answers. No place in a log moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings

from audit.actor import Actor
from audit.models import LogDestination
from audit.shipping.events import ADMIN, Event
from audit.shipping.platforms.exchange import Answer, Delivered, DestinationRefused, Verdict
from audit.shipping.platforms.verdicts import words_of
from audit.shipping.results import count_sent
from audit.shipping.sending import sender_for
from gateway.lib import clock, ids
from gateway.lib.database_threads import give_connections_back
from gateway.lib.errors import DomainError
from gateway.lib.guarded_client import Response, send
from gateway.lib.sentences import sentence
from gateway.lib.shared_slots import SharedSlots, SlotResult

EVENT_TYPE = "log_shipping.test"  # in no log
NOTE = sentence("A test of log shipping. Nothing was changed.")
_RETRY_AFTER_S = 5


class TooManyTests(DomainError):
    """The process's or the organization's limit is reached."""

    code, status = "rate_limited", 429  # nothing was sent, so a retry is safe
    message = sentence("Other tests are still in progress. Try again in a moment.")
    headers: Mapping[str, str] = {"Retry-After": str(_RETRY_AFTER_S)}


@dataclass(frozen=True, slots=True)
class Trial:
    """`answer`: the words of the platform, or why there are none."""

    accepted: bool
    answer: str


# A platform may take its whole deadline, and a waiting request holds a thread that pages need.
slots: SharedSlots[UUID] = SharedSlots(
    size=settings.CONCURRENT_SHIPPING_TESTS, of_owner=settings.CONCURRENT_SHIPPING_TESTS_OF_ORGANIZATION
)


def send_test(destination: LogDestination, *, actor: Actor, request: Callable[..., Response] = send) -> Trial:
    """Blocks as long as a delivery of one batch. Raises: TooManyTests."""
    answers: list[Response] = []

    def noted(*args: Any, **options: Any) -> Response:
        answers.append(request(*args, **options))
        return answers[-1]

    sender = sender_for(destination, noted)
    if isinstance(sender, DestinationRefused):
        return Trial(False, sender.reason)
    with trial_slot(destination.org_id):
        give_connections_back()
        sent = sender.send([_record(destination, actor)])
    count_sent(destination.org_id, sent.sent_bytes)
    accepted, reason = _read(sent.verdict)
    if accepted:
        last = answers[-1]
        reason = words_of(Answer(last.status, last.headers, last.body))
    return Trial(accepted, sender.words(reason))


def _read(verdict: Verdict) -> tuple[bool, str]:
    if not isinstance(verdict, Delivered):
        return False, verdict.reason
    refused = [*verdict.refused.values(), *verdict.unnamed]
    return not refused, refused[0] if refused else ""


def _record(destination: LogDestination, actor: Actor) -> Event:
    fields = {
        "orgId": str(destination.org_id),
        "eventType": EVENT_TYPE,
        "actorId": actor.id,
        "actorLabel": actor.label,
        "targetId": str(destination.pk),
        "targetLabel": destination.label,
        "metadata": {"note": NOTE},
    }
    return Event(str(ids.new_log_id()), ADMIN, clock.now(), fields)


@contextmanager
def trial_slot(org_id: UUID) -> Iterator[None]:
    """A place among the tests that run now. Raises: TooManyTests."""
    if slots.take(org_id) is not SlotResult.TAKEN:
        raise TooManyTests
    try:
        yield
    finally:
        slots.give_back(org_id)
