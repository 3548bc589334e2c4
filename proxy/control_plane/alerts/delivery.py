"""Delivery to webhooks: at least once, of each organization in order, of all organizations at once.

Only the first waiting message of an organization is sent, so an end never overtakes its begin.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog
from django.db.models import F, Window
from django.db.models.functions import RowNumber

from audit.shipping.platforms.exchange import DestinationRefused
from gateway.lib import clock, ids
from gateway.lib.database_threads import give_connections_back
from gateway.lib.guarded_client import Response, send
from gateway.lib.sentences import sentence
from gateway.mail.sending import pause_after
from orgs.alert_terms import WEBHOOK_GIVEN_UP_AFTER
from orgs.models import AlertMessage, AlertSettings
from orgs.models.alert import DETAIL_CHARACTERS
from orgs.services.alert_settings import settings_of_each
from proxy.control_plane.alerts.webhook import deliver, sender_of

AT_ONCE = 64  # requests
LONGEST_S = 20.0  # no request is begun after it
LOOK_EVERY_S = 1.0  # for messages that are new
# Longer than a request can take: a message of a deliverer that died is free after it.
CLAIMED_FOR = timedelta(minutes=2)
WAITING, SENT, FAILED = (
    AlertMessage.Delivery.WAITING.value,
    AlertMessage.Delivery.SENT.value,
    AlertMessage.Delivery.FAILED.value,
)
FAULTY = sentence("The message couldn’t be prepared.")
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Parcel:
    message: AlertMessage
    settings: AlertSettings
    request: Callable[..., Response]

    def send(self) -> str | None:
        """None: the receiver has it; otherwise why not, in words without a secret. Blocks; needs no database."""
        try:
            return self._send()
        except Exception as fault:
            # One message that cannot be sent must not keep those of other organizations.
            log.error("alerts.not_sent", message=str(self.message.pk), kind=self.message.kind, exc_info=fault)
            return str(FAULTY)

    def _send(self) -> str | None:
        sender = sender_of(self.settings, self.request)
        if isinstance(sender, DestinationRefused):
            return sender.reason
        return deliver(sender, self.message, self.message.organization.name)


def deliver_waiting(request: Callable[..., Response] = send) -> int:
    """Return the number of messages that have ended. Those that a receiver does not take now wait longer."""
    stop_at, ended = time.monotonic() + LONGEST_S, 0
    under_way: dict[Future[str | None], AlertMessage] = {}
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="alerts") as pool:
        while True:
            # Receivers that answer make room at once: those that do not hold up nobody.
            if time.monotonic() < stop_at:
                parcels = _claimed(ids.new_id(), AT_ONCE - len(under_way), request)
                under_way |= {pool.submit(parcel.send): parcel.message for parcel in parcels}
            if not under_way:
                return ended
            # No connection to the database is held while receivers take their time.
            give_connections_back()
            done, _ = wait(under_way, timeout=LOOK_EVERY_S, return_when=FIRST_COMPLETED)
            for each in done:
                ended += _write(under_way.pop(each), each.result())


def waiting_for_webhooks() -> int:
    return AlertMessage.objects.filter(webhook=WAITING).count()


def _claimed(claim: UUID, most: int, request: Callable[..., Response]) -> list[_Parcel]:
    """At most so many; those that no receiver has failed yet come first."""
    now = clock.now()
    place = Window(RowNumber(), partition_by=[F("organization_id")], order_by=[F("created_at").asc(), F("id").asc()])
    first = AlertMessage.objects.filter(webhook=WAITING).annotate(place=place).filter(place=1)
    due = first.filter(next_attempt_at__lte=now).order_by("attempts", "next_attempt_at")[:most]
    # The WHERE clause is the lock: of two deliverers, one gets the row.
    mine = AlertMessage.objects.filter(pk__in=[each.pk for each in due], webhook=WAITING, next_attempt_at__lte=now)
    if not mine.update(claim=claim, next_attempt_at=now + CLAIMED_FOR):
        return []
    messages = list(AlertMessage.objects.filter(claim=claim, webhook=WAITING).select_related("organization"))
    rows = settings_of_each({each.organization_id for each in messages})
    return [_Parcel(each, rows[each.organization_id], request) for each in messages]


def _write(message: AlertMessage, reason: str | None) -> bool:
    """Whether the message has ended."""
    now, attempts = clock.now(), message.attempts + 1
    state = SENT if reason is None else WAITING
    if reason is not None and now - message.created_at >= WEBHOOK_GIVEN_UP_AFTER:
        state = FAILED
    # A deliverer whose claim has run out writes nothing: another one has the message.
    AlertMessage.objects.filter(pk=message.pk, claim=message.claim).update(
        webhook=state,
        reason=(reason or "")[:DETAIL_CHARACTERS],
        attempts=attempts,
        claim=None,
        next_attempt_at=now + pause_after(attempts),
        delivered_at=now if state == SENT else None,
    )
    if reason is not None:
        log.info("alerts.not_delivered", message=str(message.pk), attempts=attempts, state=state)
    return state != WAITING
