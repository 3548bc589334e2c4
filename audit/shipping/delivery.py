"""Delivery to one destination: batch by batch from the streams, at least once, in order. Spec: D98"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from uuid import UUID

import structlog

from audit.models import LogDestination
from audit.shipping.batch import SUSPICIOUS, Progress, send_in_order
from audit.shipping.claims import release, renew
from audit.shipping.events import Event
from audit.shipping.platforms.exchange import DestinationRefused, RetryLater, Verdict
from audit.shipping.results import (
    ClaimLost,
    Outcome,
    bytes_left,
    count_sent,
    end_skipping,
    refused_since_acceptance,
    write_failure,
    write_postponed,
    write_progress,
    write_skipped,
)
from audit.shipping.sending import Sender, sender_for
from audit.shipping.waiting import BATCH_EVENTS, Record, next_records, rows_before
from audit.stream import Log
from gateway.lib.database_threads import give_connections_back
from gateway.lib.guarded_client import Response, send
from gateway.lib.sentences import sentence

LONGEST_S = 10.0  # then others have their turn
RENEWED_AFTER_S = 10.0
LONGEST_BATCH_S = 30.0
TOO_SLOW = sentence("The platform responded too slowly.")
# A platform that refuses a few records and accepted none: perhaps it is the destination. Then they are set aside.
ATTEMPTS_BEFORE_SET_ASIDE = 5
log = structlog.get_logger(__name__)


def deliver(pk: UUID, claim: UUID, request: Callable[..., Response] = send) -> int:
    """Delivers until nothing waits, something fails, or the time is up. Returns the number of records handled."""
    # The message may have waited: the claim is as good as new, or lost.
    destination = LogDestination.objects.filter(pk=pk, enabled=True).first() if renew(pk, claim) else None
    if destination is None:
        return 0
    handled = 0
    stop_at = time.monotonic() + LONGEST_S
    try:
        sender = sender_for(destination, request)
        if isinstance(sender, DestinationRefused):
            write_failure(destination, claim, sender, sender.reason)
            return 0
        delivery = _Delivery(destination, claim, sender)
        if not delivery.has_allowance():
            write_postponed(destination, claim)
            return 0
        delivery.skip_old_records()
        while time.monotonic() < stop_at and delivery.has_allowance() and (done := delivery.deliver_batch()):
            handled += done
    except ClaimLost:
        log.info("log_shipping.claim_lost", destination=str(pk))
    finally:
        release(pk, claim)
    return handled


class _Delivery:
    def __init__(self, destination: LogDestination, claim: UUID, sender: Sender) -> None:
        self._destination, self._claim, self._sender = destination, claim, sender
        self._renew_at = time.monotonic() + RENEWED_AFTER_S
        self._batch_until = 0.0
        self._sent_bytes = 0
        self._allowance = bytes_left(destination.org_id)

    def has_allowance(self) -> bool:
        """Two deliveries of one organization may exceed it by what they send in LONGEST_S."""
        return self._allowance > 0

    def skip_old_records(self) -> None:
        """Raises: ClaimLost."""
        before = self._destination.skip_before
        if before is None:
            return
        for each in Log:
            while rows := rows_before(self._destination, each, before):
                write_skipped(self._destination, self._claim, each, rows)
        end_skipping(self._destination, self._claim)

    def deliver_batch(self) -> int:
        """Returns how many records are dealt with; 0 when none waits, or after a failure. Raises: ClaimLost."""
        # After failures a batch is smaller, so that a slow platform gets on, and a faulty one costs less.
        records = next_records(self._destination, max(1, BATCH_EVENTS >> self._destination.failures))
        if not records:
            return 0
        # No connection to the database is held while a platform takes its time.
        give_connections_back()
        self._batch_until = time.monotonic() + LONGEST_BATCH_S
        progress = send_in_order([record.event for record in records], self._send, self._may_go_on)
        return self._write(records, progress)

    def _write(self, records: Sequence[Record], progress: Progress) -> int:
        # Also when the claim is lost meanwhile.
        count_sent(self._destination.org_id, self._sent_bytes)
        if progress.doubtful and not progress.accepted:
            progress = self._judged(progress)
        elif not progress.handled and progress.stopped is None:
            progress.stopped = RetryLater(TOO_SLOW)
        if progress.handled:
            refused = {place: self._sender.words(reason) for place, reason in progress.refused.items()}
            unnamed = [self._sender.words(reason) for reason in progress.unnamed]
            done = records[: progress.handled]
            outcome = Outcome(done, refused, unnamed, progress.certain, self._sent_bytes)
            write_progress(self._destination, self._claim, outcome)
        self._sent_bytes = 0
        if progress.stopped is not None:
            write_failure(self._destination, self._claim, progress.stopped, self._sender.words(progress.stopped.reason))
            return 0
        return progress.handled

    def _judged(self, progress: Progress) -> Progress:
        """The destination may be at fault for a batch of which nothing was accepted."""
        if self._destination.failures < ATTEMPTS_BEFORE_SET_ASIDE:
            return Progress(stopped=RetryLater(progress.first_reason))
        if refused_since_acceptance(self._destination) + progress.handled >= SUSPICIOUS:
            return Progress(stopped=DestinationRefused(progress.first_reason))
        return progress

    def _send(self, events: Sequence[Event]) -> Verdict:
        sent = self._sender.send(events)
        self._sent_bytes += sent.sent_bytes
        self._allowance -= sent.sent_bytes
        return sent.verdict

    def _may_go_on(self) -> bool:
        if time.monotonic() >= self._batch_until:
            return False
        if time.monotonic() < self._renew_at:
            return True
        self._renew_at = time.monotonic() + RENEWED_AFTER_S
        is_held = renew(self._destination.pk, self._claim)
        give_connections_back()
        return is_held
