"""The outbox against a real mail server: sent once, tried again, refused, slow, away."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings as configured
from django.db import transaction

from gateway.lib import clock
from gateway.mail import sending
from gateway.mail.kinds import MailKind, Purpose
from gateway.mail.models import MailState, OutgoingMail
from gateway.mail.outbox import Recipient, queue_mail
from gateway.mail.retention import remove_old
from gateway.mail.sending import send_waiting
from orgs.notices import NEW_OWNER
from orgs.roles import Role
from orgs.services.ownership import transfer_ownership
from tests.factories.cast import Cast
from tests.factories.races import at_once
from tests.fakes.deaf_port import deaf_port
from tests.fakes.dripping_smtp_server import REPLIES, TLS, dripping_after
from tests.fakes.smtp_server import Mailbox

FACTS = {"person": "Ada", "actor": "Bo", "organization": "Acme", "org_id": "1", "happened_at": clock.now()}


def queue(cast: Cast, *addresses: str, language: str = "", **facts: Any) -> list[OutgoingMail]:
    recipients = [Recipient(each, language) for each in addresses]
    return queue_mail(NEW_OWNER, recipients, organization_id=cast.org.pk, facts={**FACTS, **facts})


def share_ownership(cast: Cast) -> None:
    admin = cast.user("admin")
    transfer_ownership(actor=cast.user("owner"), organization=cast.org, user_id=admin.pk, step_down_to=Role.OWNER)


def states() -> dict[str, str]:
    return dict(OutgoingMail.objects.values_list("address", "state"))


def later(of: timedelta) -> time_machine.travel:
    return time_machine.travel(clock.now() + of, tick=False)


def test_a_message_arrives_once_with_both_bodies(cast: Cast, mailbox: Mailbox) -> None:
    [row] = queue(cast, "ada@example.com")
    assert send_waiting() == 1
    assert send_waiting() == 0
    [message] = mailbox.messages
    assert message["Subject"] == "Ada is now an owner of Acme"
    assert message["To"] == "ada@example.com"
    assert message["Message-ID"] == f"<{row.pk.hex}@{configured.MAIL_HOST}>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert "Bo made Ada an owner of Acme." in mailbox.text_of(0)
    assert "<p>Bo made Ada an owner of Acme." in mailbox.text_of(0, "html")
    row.refresh_from_db()
    assert (row.state, row.attempts, row.claim) == (MailState.SENT, 1, None)
    assert row.ended_at


def test_each_person_reads_the_own_language(cast: Cast, mailbox: Mailbox) -> None:
    queue(cast, "ada@example.com", language="de")
    queue(cast, "bo@example.com")
    send_waiting()
    subjects = {message["To"]: message["Subject"] for message in mailbox.messages}
    assert subjects["bo@example.com"] == "Ada is now an owner of Acme"
    assert subjects["ada@example.com"] == "Ada ist jetzt Inhaber von Acme"


def test_names_stay_text(cast: Cast, mailbox: Mailbox) -> None:
    queue(cast, "ada@example.com", person="<b>Ada</b> & Co")
    send_waiting()
    assert "<b>Ada</b> & Co an owner" in mailbox.text_of(0).replace("\u200b", "")
    html = mailbox.text_of(0, "html").replace("\u200b", "")
    assert "&lt;b&gt;Ada&lt;/b&gt; &amp; Co" in html
    assert "<b>" not in html


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r", "\u2028", "\x0b"])
def test_no_name_begins_a_header(cast: Cast, mailbox: Mailbox, end: str) -> None:
    queue(cast, "ada@example.com", person=f"Ada{end}Bcc: spy@example.com{end}{end}Hello")
    send_waiting()
    [message] = mailbox.messages
    assert mailbox.recipients == ["ada@example.com"]
    assert message["Bcc"] is None
    assert "Bcc: spy@example.com" in message["Subject"]


def test_an_address_with_a_line_end_is_refused_and_the_next_one_sent(cast: Cast, mailbox: Mailbox) -> None:
    queue(cast, "ada@example.com\nBcc: spy@example.com", "bo@example.com")
    assert send_waiting() == 2
    assert mailbox.recipients == ["bo@example.com"]
    assert sorted(states().values()) == [MailState.REFUSED, MailState.SENT]


def test_a_secret_among_the_facts_is_hidden(cast: Cast, mailbox: Mailbox) -> None:
    queue(cast, "ada@example.com", person="cak_0123456789ab_" + "s" * 43)
    send_waiting()
    assert "ssss" not in mailbox.messages[0].as_string()


def test_one_refused_address_keeps_nobody_from_the_message(cast: Cast, mailbox: Mailbox) -> None:
    mailbox.refused = {"no@example.com": "550 5.1.1 No such user", "full@example.com": "452 4.2.2 Mailbox full"}
    queue(cast, "ada@example.com", "no@example.com", "full@example.com", "bo@example.com")
    assert send_waiting() == 3
    assert sorted(mailbox.recipients) == ["ada@example.com", "bo@example.com"]
    assert states()["no@example.com"] == MailState.REFUSED
    full = OutgoingMail.objects.get(address="full@example.com")
    assert (full.state, full.reason) == (MailState.WAITING, "452 4.2.2 Mailbox full")
    mailbox.refused = {}
    with later(timedelta(hours=2)):
        assert send_waiting() == 1
    assert "full@example.com" in mailbox.recipients


def test_a_refused_message_is_not_sent_again(cast: Cast, mailbox: Mailbox) -> None:
    mailbox.data_reply = "554 5.7.1 Looks like spam"
    queue(cast, "ada@example.com")
    assert send_waiting() == 1
    assert OutgoingMail.objects.get().reason == "554 5.7.1 Looks like spam"


def test_a_server_that_is_away_loses_nothing(cast: Cast, mailbox: Mailbox, settings: Any) -> None:
    [row] = queue(cast, "ada@example.com")
    port, settings.EMAIL_PORT = settings.EMAIL_PORT, 1
    assert send_waiting() == 0
    row.refresh_from_db()
    assert (row.state, row.attempts, row.reason) == (MailState.WAITING, 1, str(sending.AWAY))
    assert row.next_attempt_at > clock.now()
    # Not at once again.
    settings.EMAIL_PORT = port
    assert send_waiting() == 0
    with later(timedelta(minutes=2)):
        assert send_waiting() == 1
    assert len(mailbox.messages) == 1


def test_pauses_grow_up_to_an_hour_and_end_after_three_days(cast: Cast, mailbox: Mailbox, settings: Any) -> None:
    pauses = [sending.pause_after(attempts) for attempts in (1, 2, 3, 20, 32_000)]
    assert pauses == [timedelta(seconds=30), timedelta(minutes=1), timedelta(minutes=2), *[timedelta(hours=1)] * 2]
    [row] = queue(cast, "ada@example.com")
    settings.EMAIL_PORT = 1
    with later(timedelta(days=3)):
        send_waiting()
    row.refresh_from_db()
    assert row.state == MailState.FAILED


def test_a_server_that_does_not_answer_holds_up_one_attempt(cast: Cast, mailbox: Mailbox, settings: Any) -> None:
    settings.EMAIL_TIMEOUT = 0.2
    mailbox.is_silent = True
    queue(cast, "ada@example.com", "bo@example.com", "cy@example.com")
    assert send_waiting() == 0
    # The others do not each wait for as long.
    assert set(OutgoingMail.objects.values_list("state", "attempts")) == {(MailState.WAITING, 1)}
    mailbox.is_silent = False
    with later(timedelta(minutes=2)):
        assert send_waiting() == 3


def test_a_server_that_takes_up_no_connection_is_away(cast: Cast, mailbox: Mailbox, settings: Any) -> None:
    queue(cast, "ada@example.com")
    settings.EMAIL_TIMEOUT = 0.2
    with deaf_port() as port:
        settings.EMAIL_PORT = port
        assert send_waiting() == 0
    assert states() == {"ada@example.com": MailState.WAITING}


@pytest.mark.parametrize(("replies", "opening"), [(0, b""), (len(REPLIES), b""), (0, TLS)])
def test_a_server_that_answers_drop_by_drop_holds_up_no_longer_than_a_silent_one(
    cast: Cast, mailbox: Mailbox, settings: Any, replies: int, opening: bytes
) -> None:
    settings.EMAIL_TIMEOUT, settings.EMAIL_MESSAGE_TIMEOUT = 5, 0.3
    settings.EMAIL_USE_SSL = bool(opening)
    queue(cast, "ada@example.com", "bo@example.com")
    began_s = time.monotonic()
    with dripping_after(replies, opening) as port:
        settings.EMAIL_PORT = port
        assert send_waiting() == 0
    assert time.monotonic() - began_s < 5
    assert set(OutgoingMail.objects.values_list("state", "attempts", "reason")) == {
        (MailState.WAITING, 1, "The mail server didn’t respond.")
    }


def test_a_run_ends_in_time_and_the_rest_is_free_at_once(
    cast: Cast, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue(cast, "ada@example.com", "bo@example.com")
    monkeypatch.setattr(sending, "LONGEST_S", 0.0)
    assert send_waiting() == 0
    assert set(OutgoingMail.objects.values_list("attempts", "claim")) == {(0, None)}
    monkeypatch.undo()
    assert send_waiting() == 2


def test_a_message_of_a_sender_that_died_is_sent_by_the_next(cast: Cast, mailbox: Mailbox) -> None:
    queue(cast, "ada@example.com")
    # It has claimed the message, and ends.
    assert len(sending._claimed(cast.org.pk, 10)) == 1
    assert send_waiting() == 0
    with later(sending.CLAIMED_FOR + timedelta(seconds=1)):
        assert send_waiting() == 1


def test_security_notices_go_first_and_organizations_in_turn(cast: Cast, mailbox: Mailbox) -> None:
    optional = MailKind("new_owner", Purpose.OPTIONAL, "", NEW_OWNER.subject)
    for number in range(3):
        queue_mail(optional, [Recipient(f"a{number}@example.com")], organization_id=cast.org.pk, facts=FACTS)
    queue_mail(optional, [Recipient("b@example.com")], organization_id=cast.other_org.pk, facts=FACTS)
    queue(cast, "owner@example.com")
    send_waiting(batch=1)
    assert mailbox.recipients == ["owner@example.com"]
    send_waiting(batch=2)
    assert set(mailbox.recipients) == {"owner@example.com", "a0@example.com", "b@example.com"}


def test_many_security_notices_hold_up_no_other_organization(cast: Cast, mailbox: Mailbox) -> None:
    queue(cast, *[f"owner{number}@example.com" for number in range(5)])
    optional = MailKind("new_owner", Purpose.OPTIONAL, "", NEW_OWNER.subject)
    queue_mail(optional, [Recipient("b@example.com")], organization_id=cast.other_org.pk, facts=FACTS)
    for _ in range(3):
        queue_mail(NEW_OWNER, [Recipient("a@example.com")], organization_id=None, facts=FACTS)
    queue_mail(NEW_OWNER, [Recipient("c@example.com")], organization_id=None, facts=FACTS)
    send_waiting(batch=4)
    assert set(mailbox.recipients) == {"owner0@example.com", "b@example.com", "a@example.com", "c@example.com"}


def test_a_message_that_cannot_be_written_keeps_no_other_one(cast: Cast, mailbox: Mailbox) -> None:
    [faulty] = queue_mail(NEW_OWNER, [Recipient("no@example.com")], organization_id=cast.org.pk, facts={"other": 1})
    queue(cast, "ada@example.com")
    assert send_waiting() == 1
    assert mailbox.recipients == ["ada@example.com"]
    faulty.refresh_from_db()
    assert (faulty.state, faulty.attempts, faulty.claim) == (MailState.WAITING, 1, None)
    assert faulty.reason == str(sending.FAULTY)
    with later(timedelta(days=3)):
        assert send_waiting() == 0
    assert states()["no@example.com"] == MailState.FAILED


@pytest.mark.embedded
def test_fifty_senders_send_each_message_once(committed_cast: Cast, mailbox: Mailbox) -> None:
    queue(committed_cast, *[f"person{number}@example.com" for number in range(20)])
    done = at_once(*[lambda: send_waiting(batch=5)] * 50)
    assert sum(done) == 20
    assert sorted(mailbox.recipients) == sorted(f"person{number}@example.com" for number in range(20))


def test_an_undone_change_sends_nothing(cast: Cast, mailbox: Mailbox) -> None:
    with transaction.atomic():
        share_ownership(cast)
        transaction.set_rollback(True)
    assert send_waiting() == 0


def test_owners_and_the_person_are_told_of_a_new_owner(cast: Cast, mailbox: Mailbox) -> None:
    share_ownership(cast)
    send_waiting()
    # Not the owner of the other organization.
    assert sorted(mailbox.recipients) == ["admin@example.com", "owner@example.com"]
    assert f"/orgs/{cast.org.pk}/activity/changes" in mailbox.text_of(0)


def test_an_address_that_nobody_verified_learns_nothing(cast: Cast, mailbox: Mailbox) -> None:
    admin = cast.user("admin")
    admin.email_verified = False
    admin.save(update_fields=["email_verified"])
    share_ownership(cast)
    send_waiting()
    assert mailbox.recipients == ["owner@example.com"]


def test_without_a_mail_server_nothing_is_stored(cast: Cast, settings: Any) -> None:
    settings.MAIL_DELIVERY = "off"
    assert queue(cast, "ada@example.com") == []
    assert not OutgoingMail.objects.exists()


def test_the_embedded_default_writes_files(cast: Cast, settings: Any, tmp_path: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = str(tmp_path)
    queue(cast, "ada@example.com")
    assert send_waiting() == 1
    [file] = tmp_path.iterdir()
    assert "Ada is now an owner of Acme" in file.read_text()
    remove_old()
    assert file.exists()
    with later(timedelta(days=31)):
        remove_old()
    assert not file.exists()


def test_what_became_of_messages_is_kept_for_a_month(cast: Cast, mailbox: Mailbox) -> None:
    queue(cast, "ada@example.com")
    send_waiting()
    queue(cast, "bo@example.com")
    assert remove_old() == 0
    with later(timedelta(days=31)):
        assert remove_old() == 1
    assert states() == {"bo@example.com": MailState.WAITING}
