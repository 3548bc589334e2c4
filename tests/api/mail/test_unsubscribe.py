"""The link that ends one kind of messages for one address."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.test import Client as Browser

from gateway.mail import kinds
from gateway.mail.kinds import MailKind, Purpose
from gateway.mail.models import MailState, OptOut, OutgoingMail
from gateway.mail.opt_outs import choose, is_unwanted, unsubscribe_url, unwanted_kinds
from gateway.mail.outbox import Recipient, queue_mail
from gateway.mail.sending import send_waiting
from orgs.notices import NEW_OWNER
from tests.factories.cast import Cast
from tests.factories.races import at_once
from tests.fakes.smtp_server import Mailbox

ADDRESS = "Ada@example.com"
FACTS = {"person": "Ada", "actor": "Bo", "organization": "Acme", "org_id": "1"}


@pytest.fixture
def news(monkeypatch: pytest.MonkeyPatch) -> MailKind:
    """An optional kind. It has the texts of a notice."""
    kind = MailKind("new_owner", Purpose.OPTIONAL, "News <of> all", NEW_OWNER.subject)
    monkeypatch.setitem(kinds._kinds, kind.name, kind)
    return kind


def path_of(kind: MailKind, address: str = ADDRESS) -> str:
    return unsubscribe_url(kind, address).removeprefix(settings.BASE_URL)


def test_the_link_shows_a_button_and_the_button_ends_it(cast: Cast, news: MailKind, mailbox: Mailbox) -> None:
    queue_mail(news, [Recipient(ADDRESS)], organization_id=cast.org.pk, facts=FACTS)
    send_waiting()
    [message] = mailbox.messages
    url = message["List-Unsubscribe"].strip(" <>")
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert url in mailbox.text_of(0)
    assert url in mailbox.text_of(0, "html")
    assert "ada" not in url.lower()
    path = url.removeprefix(settings.BASE_URL)
    shown = Browser().get(path)
    assert shown.status_code == 200
    assert "News &lt;of&gt; all" in shown.text
    assert not is_unwanted(news, ADDRESS)
    assert Browser().post(path).status_code == 200
    # Letter case does not make another address.
    assert is_unwanted(news, "ada@EXAMPLE.com")
    assert not is_unwanted(news, "bo@example.com")
    queue_mail(news, [Recipient(ADDRESS)], organization_id=cast.other_org.pk, facts=FACTS)
    send_waiting()
    assert len(mailbox.messages) == 1
    assert set(OutgoingMail.objects.values_list("state", flat=True)) == {MailState.SENT, MailState.UNWANTED}


def test_one_click_of_a_mail_program_needs_no_cookie_and_no_form_token(cast: Cast, news: MailKind) -> None:
    browser = Browser(enforce_csrf_checks=True)
    assert browser.post(path_of(news), {"List-Unsubscribe": "One-Click"}).status_code == 200
    assert is_unwanted(news, ADDRESS)


def test_a_foreign_token_is_unknown(cast: Cast, news: MailKind) -> None:
    path = path_of(news)
    for bad in (path[:-1] + ("A" if path[-1] != "A" else "B"), path.rpartition("/")[0] + "/x", f"{path}x"):
        assert Browser().get(bad).status_code == 404
        assert Browser().post(bad).status_code == 404
    assert not OptOut.objects.exists()


def test_a_security_notice_has_no_link_and_cannot_be_ended(cast: Cast, mailbox: Mailbox) -> None:
    queue_mail(NEW_OWNER, [Recipient(ADDRESS)], organization_id=cast.org.pk, facts=FACTS)
    OptOut.objects.create(address_sha256=b"1" * 32, kind=NEW_OWNER.name)
    send_waiting()
    assert mailbox.messages[0]["List-Unsubscribe"] is None
    assert "/mail/unsubscribe/" not in mailbox.text_of(0)
    assert Browser().post(path_of(NEW_OWNER)).status_code == 404


def test_a_choice_on_the_profile_is_the_same_rule(cast: Cast, news: MailKind) -> None:
    choose(ADDRESS, [])
    assert news.name in unwanted_kinds("ada@example.com")
    choose(ADDRESS, [news.name])
    assert news.name not in unwanted_kinds(ADDRESS)


def test_fifty_clicks_end_it_once(committed_cast: Cast, news: MailKind) -> None:
    path = path_of(news)
    answers = at_once(*[lambda: Browser().post(path).status_code] * 50)
    assert answers == [200] * 50
    assert OptOut.objects.count() == 1


def test_the_page_is_in_the_language_of_the_browser(cast: Cast, news: MailKind) -> None:
    browser = Browser(headers={"Accept-Language": "de"})
    assert "An diese Adresse gehen dann keine Nachrichten dieser Art mehr." in browser.get(path_of(news)).text
    assert "Sie haben diese Nachrichten abbestellt." in browser.post(path_of(news)).text
