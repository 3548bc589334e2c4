"""Delivery to webhooks: signed, in order, again after a failure, and never to an address that is not allowed."""

from __future__ import annotations

import math
import threading
from datetime import timedelta
from typing import Any

import pytest

from credentials.management.commands.rotate_master_key import OTHERS
from gateway.lib import clock
from gateway.lib.errors import Conflict, Forbidden
from gateway.lib.guarded_client import OutboundTimeout, Response
from gateway.mail.models import MailState, OutgoingMail
from gateway.mail.opt_outs import subscription_of
from gateway.mail.sending import send_waiting
from orgs.models import AlertMessage, AlertSettings
from orgs.services.alert_secret_sealing import SECRETS, secrets_of
from orgs.services.alert_settings import Changes, change_settings, rotate_secret
from orgs.services.members import remove_member
from proxy.control_plane.alerts.delivery import deliver_waiting
from proxy.control_plane.alerts.trial import send_test
from proxy.control_plane.alerts.watch import watch
from proxy.control_plane.health.states import HealthStatus
from tests.api.alerts.stage import Stage
from tests.factories.cast import Cast
from tests.factories.health import connected_vendor
from tests.receivers.faults import Fault
from tests.receivers.receiver import Receiver
from tests.receivers.webhook import key_of

DOWN, UP = HealthStatus.DOWN, HealthStatus.HEALTHY


@pytest.fixture
def down(stage: Stage) -> Stage:
    """A vendor is down, and no message has told it."""
    connected_vendor(stage.cast.org, "acme")
    stage.health("acme", DOWN)
    return stage


def test_a_receiver_that_fails_gets_the_same_event_later(down: Stage) -> None:
    down.receiver.fail_next(Fault.answers(503), 2)
    down.round()
    assert [(row.webhook, row.attempts, bool(row.reason)) for row in down.messages()] == [("waiting", 1, True)]
    for _ in range(4):
        down.round(1)
    assert [row.webhook for row in down.messages()] == ["sent"]
    assert len({request.headers["webhook-id"] for request in down.receiver.requests}) == 1
    assert len(down.events()) == 1


def test_an_end_waits_for_its_begin(down: Stage) -> None:
    down.receiver.fail_next(Fault.answers(503), math.inf)
    down.round()
    down.health("acme", UP)
    down.round(1)
    down.round(6)
    assert [row.moment for row in down.messages()] == ["begin", "end"]
    down.receiver.heal()
    down.round(60)
    assert [event["type"] for event in down.events()] == ["alert.began", "alert.ended"]


def test_after_a_day_a_message_is_given_up(down: Stage) -> None:
    down.receiver.fail_next(Fault.answers(500), math.inf)
    down.round()
    down.round(25 * 60)
    assert [row.webhook for row in down.messages()] == ["failed"]
    assert deliver_waiting() == 0


def test_a_redirect_is_not_followed(down: Stage) -> None:
    down.receiver.fail_next(Fault.redirects(), math.inf)
    down.round()
    assert [row.webhook for row in down.messages()] == ["waiting"]
    assert not down.receiver.violations


def test_an_address_that_became_private_gets_nothing(down: Stage, settings: Any) -> None:
    settings.ALLOW_PRIVATE_ENDPOINTS = False
    down.round()
    (row,) = down.messages()
    assert (row.webhook, row.reason) == ("waiting", "The address points to a network that is not allowed.")
    assert not down.receiver.requests


@pytest.mark.parametrize(
    "url", ["https://10.0.0.1/hook", "http://example.com/hook", "ftp://example.com", "https://[::1]/"]
)
def test_an_address_that_is_not_allowed_is_not_stored(stage: Stage, settings: Any, url: str) -> None:
    settings.ALLOW_PRIVATE_ENDPOINTS = False
    before = AlertSettings.objects.get().webhook_url
    with pytest.raises(Exception, match="not allowed") as refusal:
        stage.change(webhook_url=url)
    assert list(refusal.value.fields) == ["webhookUrl"]  # type: ignore[attr-defined]
    assert AlertSettings.objects.get().webhook_url == before


def test_one_receiver_that_is_away_holds_up_no_other_organization(down: Stage) -> None:
    connected_vendor(down.cast.other_org, "acme")
    down.receiver.fail_next(Fault.answers(503), math.inf)
    with Receiver("webhook", clock=clock.now) as other:
        made = change_settings(
            actor=down.cast.user("other_owner"),
            organization=down.cast.other_org,
            changes=Changes(webhook_url=f"{other.url}/globex"),
        )
        other.wire.keys = [key_of(made.secret)]  # type: ignore[attr-defined]
        down.round()
        assert [event["payload"]["events"][0]["data"]["organization"] for event in other.events] == ["Globex"]
    assert [row.webhook for row in down.messages()] == ["waiting"]


def test_one_receiver_that_takes_its_time_holds_up_no_other_organization(down: Stage) -> None:
    connected_vendor(down.cast.other_org, "acme")
    down.change(webhook_url="https://slow.example.com/hook")
    quick = change_settings(
        actor=down.cast.user("other_owner"),
        organization=down.cast.other_org,
        changes=Changes(webhook_url="https://quick.example.com/hook"),
    )
    assert quick.secret
    down.keep_states()
    assert watch() == 2
    is_quick_done = threading.Event()

    def request(method: str, url: str, **options: Any) -> Response:
        if "slow" in url:
            # It answers only after the other one has.
            assert is_quick_done.wait(60)
        else:
            is_quick_done.set()
        return Response(204, {}, b"")

    assert deliver_waiting(request) == 2
    assert set(AlertMessage.objects.values_list("webhook", flat=True)) == {"sent"}


def test_a_receiver_that_does_not_answer_in_time_gets_it_later(down: Stage) -> None:
    down.keep_states()
    watch()

    def request(method: str, url: str, **options: Any) -> Response:
        raise OutboundTimeout

    assert deliver_waiting(request) == 0
    (row,) = down.messages()
    assert (row.webhook, row.attempts) == ("waiting", 1)
    assert row.reason
    assert row.next_attempt_at > clock.now()
    down.round(1)
    assert [row.webhook for row in down.messages()] == ["sent"]
    assert len(down.events()) == 1


def test_a_message_that_cannot_be_written_keeps_no_other(down: Stage) -> None:
    connected_vendor(down.cast.other_org, "acme")
    down.keep_states()
    change_settings(
        actor=down.cast.user("other_owner"),
        organization=down.cast.other_org,
        changes=Changes(webhook_url="https://quick.example.com/hook"),
    )
    watch()
    AlertMessage.objects.filter(organization=down.cast.org).update(kind="sunrise")
    assert deliver_waiting(lambda *_, **__: Response(204, {}, b"")) == 1
    (row,) = down.messages()
    assert (row.webhook, row.attempts, row.reason) == ("waiting", 1, "The message couldn’t be prepared.")
    assert AlertMessage.objects.get(organization=down.cast.other_org).webhook == "sent"


def test_both_secrets_sign_for_a_day_after_a_rotation(down: Stage) -> None:
    wire = down.receiver.wire
    former = wire.keys[0]  # type: ignore[attr-defined]
    made = rotate_secret(actor=down.cast.user("admin"), organization=down.cast.org)
    wire.keys = [key_of(made.secret), former]  # type: ignore[attr-defined]
    down.round()
    wire.keys = [key_of(made.secret)]  # type: ignore[attr-defined]
    down.health("acme", UP)
    down.traveller.shift(timedelta(hours=25))
    down.round()
    down.round(6)
    assert [event["type"] for event in down.events()] == ["alert.began", "alert.ended"]


def test_who_may_rotate_the_secret(stage: Stage) -> None:
    with pytest.raises(Forbidden):
        rotate_secret(actor=stage.cast.user("member"), organization=stage.cast.org)
    with pytest.raises(Conflict):
        rotate_secret(actor=stage.cast.user("other_owner"), organization=stage.cast.other_org)


def test_another_address_gets_another_secret(stage: Stage) -> None:
    before = secrets_of(AlertSettings.objects.get())
    stage.change(webhook_url=f"{stage.receiver.url}/elsewhere")
    after = secrets_of(AlertSettings.objects.get())
    assert before is not None
    assert after is not None
    assert before.secret != after.secret
    assert after.previous == ""
    stage.change(webhook_url="")
    row = AlertSettings.objects.get()
    assert (row.webhook_url, bytes(row.secret_sealed), secrets_of(row)) == ("", b"", None)


def test_a_key_change_seals_the_secrets_again() -> None:
    assert SECRETS in OTHERS


def test_a_test_goes_to_the_person_and_the_webhook(stage: Stage) -> None:
    trial = send_test(actor=stage.cast.user("admin"), organization=stage.cast.org)
    send_waiting()
    assert (trial.mailed_to, trial.webhook, trial.answer) == ("admin@example.com", True, "")
    assert [str(each["Subject"]) for each in stage.mailbox.messages] == ["This is a test alert (Acme)"]
    assert [event["type"] for event in stage.events()] == ["alert.test"]
    assert [(row.moment, row.mails, row.webhook) for row in stage.messages()] == [("test", 1, "sent")]


def test_a_test_says_why_the_webhook_did_not_take_it(stage: Stage) -> None:
    stage.receiver.fail_next(Fault.answers(401))
    trial = send_test(actor=stage.cast.user("owner"), organization=stage.cast.org)
    assert trial.webhook is False
    assert trial.answer
    assert [row.webhook for row in stage.messages()] == ["failed"]


def test_there_may_be_nothing_to_test(cast: Cast, settings: Any) -> None:
    settings.MAIL_DELIVERY = "off"
    with pytest.raises(Conflict, match="Nothing to test"):
        send_test(actor=cast.user("owner"), organization=cast.org)
    assert not AlertMessage.objects.exists()


def test_a_mail_server_that_is_away_or_refuses_one_address(down: Stage) -> None:
    down.mailbox.refused["admin@example.com"] = "550 No such user"
    down.round()
    assert down.subjects() == ["Acme isn’t responding (Acme)"]
    states = dict(OutgoingMail.objects.values_list("address", "state"))
    assert states == {"owner@example.com": MailState.SENT, "admin@example.com": MailState.REFUSED}


def test_mail_that_waits_is_not_sent_to_a_person_who_lost_the_role_meanwhile(down: Stage) -> None:
    down.keep_states()
    watch()
    remove_member(actor=down.cast.user("owner"), organization=down.cast.org, user_id=down.cast.user("admin").pk)
    send_waiting()
    assert [str(each["To"]) for each in down.mailbox.messages] == ["owner@example.com"]
    assert OutgoingMail.objects.get(address="admin@example.com").state == MailState.OBSOLETE


def test_one_unsubscribes_from_one_organization(down: Stage) -> None:
    connected_vendor(down.cast.other_org, "acme")
    owner = down.cast.user("other_owner")
    owner.email = "owner2@example.com"
    owner.save()
    down.round()
    message = next(each for each in down.mailbox.messages if each["To"] == "admin@example.com")
    link = str(message["List-Unsubscribe"]).strip("<>")
    subscription_of(link.rpartition("/")[2]).end()
    down.health("acme", UP)
    down.round()
    down.round(6)
    assert len(down.subjects("admin@example.com")) == 1
    assert len(down.subjects("owner@example.com")) == 2
    assert len(down.subjects("owner2@example.com")) == 2
