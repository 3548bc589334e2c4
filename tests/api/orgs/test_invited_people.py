"""Invitations to a list of addresses: each line's own result, what joining gives, the message, the reminder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings as configured

from gateway.coordination.rules import Rule
from gateway.coordination.sqlite_store import SQLiteStore
from gateway.lib import clock
from gateway.mail.models import MailState, OutgoingMail
from gateway.mail.opt_outs import Subscription, digest_of
from gateway.mail.sending import send_waiting
from orgs.models import Invitation, Membership, Organization, ServerAccess, Team, TeamMembership
from orgs.roles import Role
from orgs.services.invitation_mail import INVITATION, remind
from orgs.services.invitation_sealing import token_of
from orgs.services.invitations import accept_invitation, revoke_invitation
from orgs.services.invited_people import addresses_in
from orgs.services.ownership import step_down, transfer_ownership
from tests.factories.api import Api
from tests.factories.cast import make_person
from tests.factories.catalog import load_vendors
from tests.factories.races import at_once
from tests.fakes import smtp_server
from tests.fakes.smtp_server import Mailbox

LINK = re.compile(r"https?://\S+/invite/\S+")


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    with smtp_server.running(settings) as mailbox:
        yield mailbox


@pytest.fixture(autouse=True)
def _own_windows(shared: SQLiteStore, request: pytest.FixtureRequest) -> None:
    """Addresses are the same in each test, and their limits last a day."""
    request.getfixturevalue("committed_api" if "committed_api" in request.fixturenames else "api")
    load_vendors("acme")


def post(api: Api, path: str, body: object, *, who: str, status: int) -> Any:
    answer = api.send(who, "POST", path, body)
    assert answer.status_code == status, (answer.status_code, answer.content)
    return json.loads(answer.content)


def invite(api: Api, *emails: str, who: str = "admin", status: int = 201, **body: Any) -> Any:
    return post(api, "/orgs/{org}/invitations/people", {"emails": list(emails), **body}, who=who, status=status)


def send_path(invitation_id: str) -> str:
    return f"/orgs/{{org}}/invitations/{invitation_id}/send"


def results(answer: Any) -> list[tuple[str, str, bool]]:
    return [(line["email"], line["result"], line["mailed"]) for line in answer["results"]]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a@x.org, b@x.org;c@x.org\r\nd@x.org", ["a@x.org", "b@x.org", "c@x.org", "d@x.org"]),
        ('Ada Lovelace <a@x.org>, "B, the other" <b@x.org>', ["a@x.org", "b@x.org"]),
        ("a@x.org\nA@X.org", ["A@X.org"]),
        ("Ada<a@x.org>Bo<b@x.org>", ["a@x.org", "b@x.org"]),
        ("<a@x.org> <b@x.org>", ["a@x.org", "b@x.org"]),
        (" ,;\n\t", []),
        ("no-address", ["no-address"]),
    ],
)
def test_a_pasted_list_is_taken_apart(text: str, found: list[str]) -> None:
    assert [each for each in addresses_in(text) if "@" in each or each == "no-address"] == found


def test_a_long_line_is_taken_apart_in_one_pass() -> None:
    # Each refused beginning would read the rest of the line again.
    assert addresses_in("a" * 2_000_000) == ["a" * 2_000_000]


@pytest.mark.parametrize(
    "spelling",
    [
        '"a"@example.com',
        '"\\a"@example.com',
        "=?utf-8?q?a?=@example.com",
        "\u212a@example.com",
        "a@[127.0.0.1]",
    ],
)
def test_no_other_spelling_of_an_address_is_written_to(api: Api, mailbox: Mailbox, spelling: str) -> None:
    Subscription(INVITATION, digest_of("a@example.com")).end()
    answer = invite(api, spelling, "b@example.com")
    assert [line[1] for line in results(answer)] == ["invalid", "invited"]
    post(api, "/orgs/{org}/invitations", {"email": spelling}, who="admin", status=400)
    send_waiting()
    assert mailbox.recipients == ["b@example.com"]


@pytest.mark.parametrize("spelling", ["a@exam\xadple.com", "a@e\uff58ample.com", "A@EXAMPLE.com"])
def test_another_spelling_of_a_domain_is_the_same_address(
    api: Api, mailbox: Mailbox, settings: Any, spelling: str
) -> None:
    settings.INVITATION_MAILS_TO_ADDRESS = Rule("invitation-mails-to-address", limit=1, window_s=86_400)
    Subscription(INVITATION, digest_of("a@example.com")).end()
    assert [line[1] for line in results(invite(api, spelling, "b@b\xfccher.example"))] == ["invited", "invited"]
    theirs = {"emails": ["a@example.com", "b@xn--bcher-kva.example"]}
    answer = post(api, "/orgs/{other}/invitations/people", theirs, who="other_owner", status=201)
    assert [line[1] for line in results(answer)] == ["limit_reached", "limit_reached"]
    send_waiting()
    assert mailbox.recipients == ["b@xn--bcher-kva.example"]


def test_each_address_has_its_own_result(api: Api, mailbox: Mailbox) -> None:
    first = invite(api, "new@example.com")
    answer = invite(api, "ada@example.com", "member@EXAMPLE.com", "nonsense", "NEW@example.com", "bo@example.com")
    assert results(answer) == [
        ("ada@example.com", "invited", True),
        ("member@EXAMPLE.com", "already_member", False),
        ("nonsense", "invalid", False),
        ("NEW@example.com", "already_invited", False),
        ("bo@example.com", "invited", True),
    ]
    assert answer["results"][3]["invitation"]["id"] == first["results"][0]["invitation"]["id"]
    assert Invitation.objects.filter(organization=api.cast.org).count() == 3
    assert not Invitation.objects.filter(organization=api.cast.other_org).exists()
    assert {row.max_uses for row in Invitation.objects.all()} == {1}
    assert send_waiting() == 3
    assert sorted(mailbox.recipients) == ["ada@example.com", "bo@example.com", "new@example.com"]


def test_the_message_has_the_link_and_no_table_has_it(api: Api, mailbox: Mailbox) -> None:
    invite(api, "stranger@example.com")
    invitation = Invitation.objects.get()
    token = token_of(invitation)
    assert token
    assert token not in str(list(OutgoingMail.objects.values()))
    send_waiting()
    assert mailbox.messages[0]["Subject"] == "Admin invites you to join Acme"
    [link] = LINK.findall(mailbox.text_of(0))
    assert link == f"{configured.BASE_URL}/invite/{token}"
    assert link in mailbox.text_of(0, "html")
    assert accept_invitation(user=api.cast.user("stranger"), token=token).membership.role == "member"
    assert token not in str(list(OutgoingMail.objects.values()))


def test_names_of_strangers_become_no_links(api: Api, mailbox: Mailbox) -> None:
    Organization.objects.filter(pk=api.cast.org.pk).update(name="You won: https://evil.example/x, see www.evil.example")
    invite(api, "a@example.com")
    send_waiting()
    [message] = mailbox.messages
    assert message["Subject"].endswith("You won: https://evil.example/x, see www.evil.example")
    for kind in ("plain", "html"):
        text = mailbox.text_of(0, kind)
        assert not re.search(r"https?://evil|evil\.example|www\.evil", text)
        assert "You won: " in text
        assert LINK.search(text)


def test_an_invitation_that_ended_before_the_message_went_out_sends_none(api: Api, mailbox: Mailbox) -> None:
    invite(api, "ada@example.com")
    invitation = Invitation.objects.get()
    revoke_invitation(actor=api.cast.user("admin"), organization=api.cast.org, invitation_id=invitation.pk)
    assert send_waiting() == 1
    assert not mailbox.messages
    assert OutgoingMail.objects.get().state == MailState.OBSOLETE


def test_joining_gives_role_teams_and_vendors(api: Api, mailbox: Mailbox) -> None:
    team = Team.objects.create(organization=api.cast.org, name="Night")
    invite(api, "stranger@example.com", who="owner", role="admin", teams=[str(team.pk)], vendors=["acme"])
    person = api.cast.user("stranger")
    accept_invitation(user=person, token=str(token_of(Invitation.objects.get())))
    joined = Membership.objects.get(organization=api.cast.org, user=person)
    assert joined.role == "admin"
    assert TeamMembership.objects.get(membership=joined).team == team
    assert ServerAccess.objects.get(membership=joined).vendor == "acme"


def test_an_inviter_who_was_demoted_gives_less(api: Api, mailbox: Mailbox) -> None:
    team = Team.objects.create(organization=api.cast.org, name="Night")
    invite(api, "stranger@example.com", who="owner", role="admin", teams=[str(team.pk)])
    owner = api.cast.user("owner")
    transfer_ownership(
        actor=owner, organization=api.cast.org, user_id=api.cast.user("member").pk, step_down_to=Role.OWNER
    )
    step_down(actor=owner, organization=api.cast.org, to=Role.ADMIN)
    joined = accept_invitation(user=api.cast.user("stranger"), token=str(token_of(Invitation.objects.get()))).membership
    joined.refresh_from_db()
    assert joined.role == "member"
    assert TeamMembership.objects.filter(membership=joined).count() == 1


def test_an_inviter_who_left_gives_membership_alone(api: Api, mailbox: Mailbox) -> None:
    team = Team.objects.create(organization=api.cast.org, name="Night")
    invite(api, "stranger@example.com", teams=[str(team.pk)], vendors=["acme"])
    token = str(token_of(Invitation.objects.get()))
    Membership.objects.filter(organization=api.cast.org, user=api.cast.user("admin")).delete()
    joined = accept_invitation(user=api.cast.user("stranger"), token=token).membership
    assert not TeamMembership.objects.filter(membership=joined).exists()
    assert not ServerAccess.objects.filter(membership=joined).exists()


def test_a_team_that_was_deleted_is_skipped(api: Api, mailbox: Mailbox) -> None:
    team = Team.objects.create(organization=api.cast.org, name="Night")
    invite(api, "stranger@example.com", teams=[str(team.pk)])
    team.delete()
    assert accept_invitation(user=api.cast.user("stranger"), token=str(token_of(Invitation.objects.get())))


def test_refused_lists_change_nothing(api: Api, mailbox: Mailbox) -> None:
    foreign = Team.objects.create(organization=api.cast.other_org, name="Theirs")
    assert invite(api, "ada@example.com", role="admin", status=403)
    invite(api, "ada@example.com", role="owner", who="owner", status=400)
    invite(api, "ada@example.com", teams=[str(foreign.pk)], status=400)
    invite(api, "ada@example.com", teams=["nonsense"], status=400)
    invite(api, "ada@example.com", vendors=["nonsense"], status=400)
    invite(api, status=400)
    invite(api, *[f"p{number}@example.com" for number in range(51)], status=400)
    invite(api, "ada@example.com", who="member", status=403)
    invite(api, "ada@example.com", who="other_owner", status=404)
    assert not Invitation.objects.exists()
    assert not OutgoingMail.objects.exists()


def test_an_organization_sends_so_many_a_day(api: Api, mailbox: Mailbox, settings: Any) -> None:
    settings.INVITATION_MAILS = Rule("invitation-mails", limit=2, window_s=86_400)
    answer = invite(api, "a@example.com", "b@example.com", "c@example.com")
    assert [line[1] for line in results(answer)] == ["invited", "invited", "limit_reached"]
    path = send_path(answer["results"][0]["invitation"]["id"])
    assert post(api, path, {}, who="admin", status=409)["error"] == "limit_reached"
    # The other organization has a limit of its own.
    theirs = "/orgs/{other}/invitations/people"
    assert results(post(api, theirs, {"emails": ["d@example.com"]}, who="other_owner", status=201))[0][1] == "invited"


def test_one_address_gets_so_many_from_all_organizations(api: Api, mailbox: Mailbox, settings: Any) -> None:
    settings.INVITATION_MAILS_TO_ADDRESS = Rule("invitation-mails-to-address", limit=1, window_s=86_400)
    assert results(invite(api, "a@example.com"))[0][1] == "invited"
    theirs = "/orgs/{other}/invitations/people"
    answer = post(api, theirs, {"emails": ["A@example.com", "b@example.com"]}, who="other_owner", status=201)
    assert [line[1] for line in results(answer)] == ["limit_reached", "invited"]


def test_without_e_mail_the_invitations_are_made(api: Api, settings: Any) -> None:
    settings.MAIL_DELIVERY = "off"
    answer = invite(api, "a@example.com")
    assert results(answer) == [("a@example.com", "invited", False)]
    assert answer["results"][0]["invitation"]["inviteUrl"]
    path = send_path(answer["results"][0]["invitation"]["id"])
    post(api, path, {}, who="admin", status=409)


def test_a_message_is_sent_again_and_has_another_id(api: Api, mailbox: Mailbox) -> None:
    made = invite(api, "a@example.com")["results"][0]["invitation"]
    path = send_path(made["id"])
    assert post(api, path, {}, who="admin", status=200)["mailedAt"]
    post(api, path, {}, who="member", status=403)
    post(api, path.replace("{org}", "{other}"), {}, who="other_owner", status=404)
    assert send_waiting() == 2
    assert len({message["Message-ID"] for message in mailbox.messages}) == 2
    assert api.events()[-1] == "invitation.sent"


def test_a_link_for_anyone_is_not_sent(api: Api, mailbox: Mailbox) -> None:
    made = post(api, "/orgs/{org}/invitations", {}, who="admin", status=201)
    post(api, send_path(made["id"]), {}, who="admin", status=409)


def test_an_address_that_unsubscribed_gets_none(api: Api, mailbox: Mailbox) -> None:
    Subscription(INVITATION, digest_of("a@example.com")).end()
    invite(api, "a@example.com", "b@example.com")
    send_waiting()
    assert mailbox.recipients == ["b@example.com"]


def test_one_reminder_before_the_end(api: Api, mailbox: Mailbox) -> None:
    invite(api, "a@example.com", "b@example.com")
    send_waiting()
    joined = Invitation.objects.get(email="b@example.com")
    accept_invitation(user=make_person("b"), token=str(token_of(joined)))
    assert remind() == 0
    with time_machine.travel(clock.now() + timedelta(days=6), tick=False):
        assert remind() == 1
        assert remind() == 0
        send_waiting()
    assert mailbox.recipients == ["a@example.com", "b@example.com", "a@example.com"]
    assert "Reminder: this invitation expires soon." in mailbox.text_of(2)
    assert "A reminder" not in mailbox.text_of(0)


def test_fifty_workers_remind_once(committed_api: Api, mailbox: Mailbox) -> None:
    invite(committed_api, "a@example.com")
    Invitation.objects.update(mailed_at=clock.now() - timedelta(days=5), expires_at=clock.now() + timedelta(days=1))
    assert sum(at_once(*[remind] * 50)) == 1
    assert OutgoingMail.objects.filter(facts__is_reminder=True).count() == 1


def test_the_languages_of_people(api: Api, mailbox: Mailbox) -> None:
    stranger, admin = api.cast.user("stranger"), api.cast.user("admin")
    admin.language = "de"
    admin.save(update_fields=["language"])
    stranger.language = "en"
    stranger.save(update_fields=["language"])
    invite(api, "stranger@example.com", "unknown@example.com")
    send_waiting()
    subjects = {message["To"]: message["Subject"] for message in mailbox.messages}
    assert subjects["stranger@example.com"] == "Admin invites you to join Acme"
    assert subjects["unknown@example.com"] == "Admin lädt Sie ein, Acme beizutreten"


def test_an_organization_that_is_deleted_takes_its_messages_along(api: Api, mailbox: Mailbox) -> None:
    invite(api, "a@example.com")
    Organization.objects.filter(pk=api.cast.org.pk).delete()
    assert not OutgoingMail.objects.exists()
    assert send_waiting() == 0


def test_the_page_shows_each_result_and_closes_after_ten_lists(api: Api, mailbox: Mailbox) -> None:
    path, browser = f"/orgs/{api.cast.org.pk}/invitations/people", api.cast.client("admin")

    def send(text: str) -> Any:
        key = re.search(r'name="form_key" value="([^"]+)"', browser.get(path).text)
        assert key is not None
        fields = {"emails": text, "role": "member", "expires_in_days": "7", "form_key": key[1]}
        return browser.post(path, fields)

    answer = send("Ada <ada@example.com>\nmember@example.com, <b>bold</b>@example.com")
    assert answer.status_code == 201
    for words in ("ada@example.com", "Invited", "On its way", "Already a member", "Not an email address"):
        assert words in answer.text
    assert "<b>bold" not in answer.text
    # A person who is no owner gives no role beyond membership.
    assert '<option value="admin"' not in answer.text
    assert '<option value="admin"' in api.cast.client("owner").get(path).text
    statuses = [send(f"p{number}@example.com").status_code for number in range(10)]
    assert statuses == [201] * 9 + [429]
    assert "You’ve reached the limit of 10 invitations per hour" in browser.get(path).text
