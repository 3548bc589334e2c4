"""Sends what waits in the outbox: at least once, organizations in turn, of each its security notices first."""

from __future__ import annotations

import smtplib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog
from django.core.mail import get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.db.models import F, TextField, Window
from django.db.models.functions import Cast, Coalesce, RowNumber

from gateway.lib import clock, ids
from gateway.lib.sentences import sentence
from gateway.mail.kinds import Facts, MailKind, kind_named
from gateway.mail.models import REASON_CHARACTERS, MailState, OutgoingMail
from gateway.mail.opt_outs import is_unwanted
from gateway.mail.outbox import one_line
from gateway.mail.rendering import message_of

BATCH = 50
# Longer than a run can take: a message of a sender that died is free after it.
CLAIMED_FOR = timedelta(minutes=10)
LONGEST_S = 60.0  # no message is begun after it
FIRST_PAUSE = timedelta(seconds=30)
LONGEST_PAUSE = timedelta(hours=1)
GIVEN_UP_AFTER = timedelta(days=3)
PERMANENT = 500  # the lowest reply of a mail server that another try does not change (RFC 5321 4.2.1)
AWAY = sentence("The mail server didn’t respond.")
FAULTY = sentence("The message couldn’t be saved.")
log = structlog.get_logger(__name__)
Connect = Callable[[], BaseEmailBackend]


class ServerAway(Exception):
    """The mail server cannot be used now, for any message. The text has no secret."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one attempt; WAITING: another one follows."""

    state: MailState
    reason: str = ""


def send_waiting(connect: Connect = get_connection, *, batch: int = BATCH) -> int:
    """Returns the number of messages that have ended. Those that the mail server does not take now wait longer."""
    claim = ids.new_id()
    waiting = _claimed(claim, batch)
    if not waiting:
        return 0
    stop_at, ended = time.monotonic() + LONGEST_S, 0
    with _Server(connect) as server:
        for place, mail in enumerate(waiting):
            if time.monotonic() >= stop_at:
                _release(claim, waiting[place:])
                break
            try:
                outcome = _attempt(mail, server)
            except ServerAway as fault:
                log.warning("mail.server_away", waiting=len(waiting) - place, fault=str(fault))
                for each in waiting[place:]:
                    _write(each, claim, Outcome(MailState.WAITING, str(fault)))
                break
            except Exception as fault:
                # One message that cannot be written must not keep those behind it.
                log.error("mail.not_written", mail=str(mail.pk), kind=mail.kind, exc_info=fault)
                outcome = Outcome(MailState.WAITING, str(FAULTY))
            _write(mail, claim, outcome)
            ended += outcome.state is not MailState.WAITING
    return ended


def _claimed(claim: UUID, batch: int) -> list[OutgoingMail]:
    """Free messages that are due, now this sender's."""
    due = OutgoingMail.objects.filter(state=MailState.WAITING, next_attempt_at__lte=clock.now())
    # An organization with many messages, or one person, does not hold up the others: also not by security notices.
    sender = Coalesce(Cast("organization_id", TextField()), Cast("address", TextField()))
    turn = Window(RowNumber(), partition_by=[sender], order_by=[F("is_urgent").desc(), F("created_at").asc()])
    chosen = due.annotate(turn=turn).order_by("turn", "-is_urgent", "created_at").values_list("pk", flat=True)[:batch]
    # The WHERE clause is the lock: of two senders, one gets the row.
    due.filter(pk__in=list(chosen)).update(claim=claim, next_attempt_at=clock.now() + CLAIMED_FOR)
    return list(OutgoingMail.objects.filter(claim=claim).order_by("-is_urgent", "created_at"))


class _Server:
    """A connection to the mail server, opened at the first message and again after a break."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._connection: BaseEmailBackend | None = None

    def __enter__(self) -> _Server:
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()

    def connection(self) -> BaseEmailBackend:
        """Raises: ServerAway."""
        if self._connection is None:
            connection = self._connect()
            try:
                connection.open()
            except (smtplib.SMTPException, OSError) as fault:
                raise ServerAway(_words(fault)) from None
            self._connection = connection
        return self._connection

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except (smtplib.SMTPException, OSError) as fault:
                log.info("mail.connection_not_closed", fault=type(fault).__name__)


def _attempt(mail: OutgoingMail, server: _Server) -> Outcome:
    """Raises: ServerAway."""
    kind = kind_named(mail.kind)
    facts = None if kind is None else _facts(mail, kind)
    if kind is None or facts is None or not _is_still_for(mail, kind):
        return Outcome(MailState.OBSOLETE)
    if is_unwanted(kind, mail.address, mail.organization_id):
        return Outcome(MailState.UNWANTED)
    try:
        message_of(mail, kind, facts, server.connection()).send()
    except smtplib.SMTPRecipientsRefused as fault:
        code, words = next(iter(fault.recipients.values()))
        return _refused(code, words)
    except smtplib.SMTPDataError as fault:
        return _refused(fault.smtp_code, fault.smtp_error)
    except (smtplib.SMTPException, OSError) as fault:
        server.close()
        raise ServerAway(_words(fault)) from None
    except ValueError as fault:
        # An address that no header can hold.
        return Outcome(MailState.REFUSED, one_line(str(fault), REASON_CHARACTERS))
    return Outcome(MailState.SENT)


def _is_still_for(mail: OutgoingMail, kind: MailKind) -> bool:
    return kind.is_still_for is None or kind.is_still_for(mail.address, mail.organization_id, mail.facts)


def _facts(mail: OutgoingMail, kind: MailKind) -> Facts | None:
    if kind.facts_at_sending is None:
        return dict(mail.facts)
    more = kind.facts_at_sending(mail.facts)
    return None if more is None else {**mail.facts, **more}


def _refused(code: int, words: bytes | str) -> Outcome:
    state = MailState.REFUSED if code >= PERMANENT else MailState.WAITING
    return Outcome(state, _reply(code, words))


def _reply(code: int, words: bytes | str) -> str:
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    return one_line(f"{code} {text}", REASON_CHARACTERS)


def _words(fault: Exception) -> str:
    if isinstance(fault, smtplib.SMTPResponseException):
        return _reply(fault.smtp_code, fault.smtp_error)
    return AWAY


def _write(mail: OutgoingMail, claim: UUID, outcome: Outcome) -> None:
    now, state = clock.now(), outcome.state
    attempts = mail.attempts + 1
    if state is MailState.WAITING and now - mail.created_at >= GIVEN_UP_AFTER:
        state = MailState.FAILED
    is_over = state is not MailState.WAITING
    # A sender whose claim has run out writes nothing: another one has the message.
    OutgoingMail.objects.filter(pk=mail.pk, claim=claim).update(
        state=state,
        reason=outcome.reason,
        attempts=attempts,
        claim=None,
        next_attempt_at=now + pause_after(attempts),
        ended_at=now if is_over else None,
    )
    if state in {MailState.REFUSED, MailState.FAILED}:
        log.warning("mail.not_sent", mail=str(mail.pk), kind=mail.kind, state=state.value, reason=outcome.reason)


def pause_after(attempts: int) -> timedelta:
    """Until the next attempt: doubled each time, an hour at most."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * (1 << min(attempts - 1, 10)))


def _release(claim: UUID, left: Sequence[OutgoingMail]) -> None:
    OutgoingMail.objects.filter(pk__in=[each.pk for each in left], claim=claim).update(
        claim=None, next_attempt_at=clock.now()
    )
