"""Security notices: who is told of which change, and that nobody else is."""

from __future__ import annotations

from typing import Any

import pytest
import time_machine
from django.test import Client

from credentials.credential_scope import CredentialScope
from credentials.services.credentials import store_credential
from gateway.catalog import registry
from gateway.lib import clock
from gateway.mail.models import OutgoingMail
from gateway.mail.sending import send_waiting
from gateway.web.sessions import SessionStore, key_of
from oauth_ext.services.agent_keys import mint_agent_key
from orgs import notices
from orgs.models import Organization
from orgs.notices import CREDENTIAL_REPLACED, NEW_AGENT_KEY, tell_owners
from orgs.roles import Role
from orgs.services.browser_sessions import note_use
from orgs.services.mail_choices import choose_mail
from orgs.services.members import leave_organization, remove_member
from orgs.services.ownership import step_down, transfer_ownership
from tests.factories.cast import Cast, signed_in_session
from tests.factories.catalog import load_vendors
from tests.factories.credentials import make_service_client
from tests.factories.management_tokens import bearer_of, made_token
from tests.factories.races import at_once
from tests.fakes.smtp_server import Mailbox

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.0 Safari/605.1.15"


def told(kind: str) -> list[str]:
    """Addresses, without the part that all have."""
    rows = OutgoingMail.objects.filter(kind=kind).order_by("address").values_list("address", flat=True)
    return [each.removesuffix("@example.com") for each in rows]


def share_ownership(cast: Cast) -> None:
    transfer_ownership(
        actor=cast.user("owner"), organization=cast.org, user_id=cast.user("admin").pk, step_down_to=Role.OWNER
    )
    OutgoingMail.objects.all().delete()


def test_a_removed_owner_and_the_others_are_told(cast: Cast, mailbox: Mailbox) -> None:
    share_ownership(cast)
    remove_member(actor=cast.user("owner"), organization=cast.org, user_id=cast.user("admin").pk)
    assert told("owner_removed") == ["admin", "owner"]
    send_waiting()
    assert "Owner made this change." in mailbox.text_of(0)


def test_an_owner_who_steps_down_or_leaves_is_told_of(cast: Cast, mailbox: Mailbox) -> None:
    share_ownership(cast)
    step_down(actor=cast.user("admin"), organization=cast.org)
    assert told("owner_removed") == ["admin", "owner"]
    share_ownership(cast)
    leave_organization(actor=cast.user("admin"), organization=cast.org)
    assert told("owner_removed") == ["admin", "owner"]


def test_the_end_of_another_role_is_no_notice(cast: Cast, mailbox: Mailbox) -> None:
    remove_member(actor=cast.user("owner"), organization=cast.org, user_id=cast.user("member").pk)
    assert not OutgoingMail.objects.exists()


def test_a_notice_names_the_management_token_and_makes_no_links_of_names(cast: Cast, mailbox: Mailbox) -> None:
    client = make_service_client(cast.org, "Bot https://evil.example/x")
    OutgoingMail.objects.all().delete()
    token = made_token(cast, "admin", name="Terraform")
    path = f"/api/orgs/{cast.org.pk}/service-clients/{client.pk}/agent-key"
    assert Client().post(path, content_type="application/json", headers=bearer_of(token)).status_code == 201
    send_waiting()
    text = mailbox.text_of(0) + mailbox.text_of(0, "html")
    assert f"Admin (token Terraform, {token.rpartition('_')[0]})" in mailbox.text_of(0)
    assert "https://evil" not in text
    assert token not in text


def test_owners_and_the_admin_are_told_of_a_new_agent_key_without_the_key(cast: Cast, mailbox: Mailbox) -> None:
    client = make_service_client(cast.org, "Triage bot")
    OutgoingMail.objects.all().delete()
    minted = mint_agent_key(actor=cast.user("admin"), client=client)
    assert told("new_agent_key") == ["admin", "owner"]
    send_waiting()
    assert mailbox.messages[0]["Subject"] == "New key for the agent Triage bot in Acme"
    assert minted.prefix in mailbox.text_of(0)
    everything = "".join(message.as_string() for message in mailbox.messages) + str(list(OutgoingMail.objects.values()))
    assert minted.agent_key not in everything


def test_a_replaced_credential_is_told_of_and_a_first_one_is_not(cast: Cast, mailbox: Mailbox) -> None:
    load_vendors("acme")
    vendor = registry.load().get("acme")
    assert vendor is not None

    def store(key: str) -> None:
        fields = {"apiKey": key}
        scope = CredentialScope.ORGANIZATION
        store_credential(actor=cast.user("admin"), organization=cast.org, vendor=vendor, scope=scope, fields=fields)

    store("first-secret-key")
    assert told("credential_replaced") == []
    store("second-secret-key")
    assert told("credential_replaced") == ["admin", "owner"]
    send_waiting()
    assert "second-secret-key" not in "".join(message.as_string() for message in mailbox.messages)


def test_a_flood_of_changes_fills_no_mailbox(cast: Cast, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "NOTICES_AN_HOUR", 2)
    owner, words = cast.user("owner"), "further ones appear only in the admin log"

    def change(organization: Organization, who: str) -> None:
        tell_owners(CREDENTIAL_REPLACED, organization_id=organization.pk, actor=cast.user(who), vendor="Acme")

    for _ in range(4):
        change(cast.org, "admin")
    change(cast.other_org, "other_owner")
    tell_owners(NEW_AGENT_KEY, organization_id=cast.org.pk, actor=owner, agent="Bot", prefix="cak_0123456789ab")
    assert told("credential_replaced") == ["other_owner", "owner", "owner"]
    assert told("new_agent_key") == ["owner"]
    send_waiting()
    texts = [mailbox.text_of(place) for place in range(4) if mailbox.messages[place]["To"] == owner.email]
    assert [words in " ".join(text.split()) for text in texts if "replaced the credentials" in text] == [False, True]
    with time_machine.travel(clock.now() + notices.AN_HOUR, tick=False):
        change(cast.org, "admin")
    assert told("credential_replaced") == ["other_owner", "owner", "owner", "owner"]


def use(cast: Cast, agent: str, who: str = "member") -> None:
    person = cast.user(who)
    note_use(user_id=person.pk, key=key_of(SessionStore(signed_in_session(person))), user_agent=agent)


def test_a_new_browser_is_told_of_once_and_the_first_one_is_not(cast: Cast, mailbox: Mailbox) -> None:
    use(cast, FIREFOX)
    assert told("new_browser") == []
    use(cast, SAFARI)
    use(cast, SAFARI)
    use(cast, FIREFOX)
    # It is the first one of another person.
    use(cast, SAFARI, "other_owner")
    assert told("new_browser") == ["member"]
    send_waiting()
    assert mailbox.messages[0]["Subject"] == "New sign-in: Safari on macOS"


def test_fifty_sessions_of_one_new_browser_are_one_notice(committed_cast: Cast, mailbox: Mailbox) -> None:
    use(committed_cast, FIREFOX)
    done = at_once(*[lambda: use(committed_cast, SAFARI)] * 50)
    assert done == [None] * 50
    assert told("new_browser") == ["member"]


def test_a_notice_is_translated(cast: Cast, mailbox: Mailbox) -> None:
    owner = cast.user("owner")
    choose_mail(user=owner, language="de", wanted=[])
    share_ownership(cast)
    remove_member(actor=owner, organization=cast.org, user_id=cast.user("admin").pk)
    send_waiting()
    subjects = {message["To"]: message["Subject"] for message in mailbox.messages}
    assert subjects["owner@example.com"] == "Admin ist nicht mehr Inhaber von Acme"
    assert subjects["admin@example.com"] == "Admin is no longer an owner of Acme"


@pytest.mark.parametrize(
    "kind", ["new_owner", "owner_removed", "new_agent_key", "credential_replaced", "new_browser", "invitation"]
)
def test_each_message_is_in_one_language(cast: Cast, mailbox: Mailbox, kind: str) -> None:
    """German and English have no line of words in common, apart from the names."""
    from gateway.mail.kinds import kind_named
    from gateway.mail.rendering import message_of

    facts: dict[str, Any] = dict.fromkeys(
        ["person", "organization", "actor", "agent", "prefix", "vendor", "browser", "inviter", "org_id"], "X"
    )
    facts |= {"link": "https://x.example/invite/t", "is_reminder": True, "role": "member"}
    facts |= {"happened_at": "2030-05-01T10:00:00Z", "expires_at": "2030-05-01T10:00:00Z"}
    found = kind_named(kind)
    assert found is not None
    texts = []
    for language in ("en", "de"):
        message = message_of(OutgoingMail(kind=kind, address="a@example.com", language=language), found, facts)
        texts.append({line for line in message.body.splitlines() if len(line) > 25 and "://" not in line})
    assert texts[0]
    assert not texts[0] & texts[1]


def test_what_a_person_chooses_on_the_profile(cast: Cast, mailbox: Mailbox) -> None:
    browser = cast.client("member")
    shown = browser.get("/profile").text
    assert 'value="invitation" checked' in shown
    assert browser.post("/profile/mail", {"language": "de"}).status_code == 302
    cast.user("member").refresh_from_db()
    assert cast.user("member").language == "de"
    assert 'value="invitation">' in browser.get("/profile").text
    browser.post("/profile/mail", {"language": "de", "wanted": "invitation"})
    assert 'value="invitation" checked' in browser.get("/profile").text
    # Another person's page is as it was.
    assert 'value="invitation" checked' in cast.client("other_owner").get("/profile").text


@pytest.mark.parametrize("fields", [{"language": "xx"}, {"wanted": "new_owner"}, {"wanted": "<b>"}])
def test_a_choice_that_is_not_offered_changes_nothing(cast: Cast, fields: dict[str, str]) -> None:
    browser = cast.client("member")
    browser.post("/profile/mail", {"language": "de", "wanted": "invitation"})
    assert "notice" in browser.post("/profile/mail", fields, follow=True).text
    cast.user("member").refresh_from_db()
    assert cast.user("member").language == "de"
    assert 'value="invitation" checked' in browser.get("/profile").text


def test_an_unverified_address_chooses_nothing(cast: Cast) -> None:
    person = cast.user("member")
    person.email_verified = False
    person.save(update_fields=["email_verified"])
    browser = cast.client("member")
    assert "/profile/mail" not in browser.get("/profile").text
    browser.post("/profile/mail", {"language": "de"})
    person.refresh_from_db()
    assert person.language == ""


@pytest.mark.parametrize(("delivery", "words"), [("files", "EMAIL_URL"), ("off", "This service sends no email.")])
def test_pages_say_where_messages_go(cast: Cast, settings: Any, delivery: str, words: str) -> None:
    settings.MAIL_DELIVERY = delivery
    for path in ("/profile", f"/orgs/{cast.org.pk}/invitations/people"):
        assert words in cast.client("admin").get(path).text


def test_pages_with_a_mail_server_name_no_folder(cast: Cast, mailbox: Mailbox) -> None:
    assert "EMAIL_URL" not in cast.client("admin").get("/profile").text
