"""Claims on mail domains, with two organizations, and the people of a domain who join by a click."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client as Browser

from audit.actor import Actor
from audit.models import AdminAuditEntry
from gateway.lib.errors import Conflict, Forbidden, Invalid, NotFound
from gateway.mail.models import MailState, OutgoingMail
from gateway.mail.sending import send_waiting
from orgs.models import JoinRequest, MailDomain, Membership, Organization, User
from orgs.services.mail_domains import (
    approve_join_request,
    ask_to_join,
    change_offer,
    claim_domain,
    confirm_domain,
    decline_join_request,
    domain_of,
    join_by_domain,
    join_offers,
    release_domain,
    waiting_join_requests,
)
from orgs.services.mail_providers import is_public_provider
from orgs.services.members import remove_member
from tests.api.support.people import act as staff_act
from tests.factories.cast import Cast, make_person
from tests.factories.races import at_once, refusals_at_once
from tests.fakes import smtp_server
from tests.fakes.smtp_server import Mailbox

STAFF = Actor(id="staff", label="Sam (support staff)")


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    with smtp_server.running(settings) as mailbox:
        yield mailbox


def move(person: User, address: str, *, verified: bool = True) -> User:
    person.email, person.email_verified = address, verified
    person.save(update_fields=["email", "email_verified"])
    return person


def claimed(cast: Cast, offer: str = "ask", *, who: str = "owner", org: Organization | None = None) -> MailDomain:
    return claim_domain(actor=cast.user(who), organization=org or cast.org, offer=offer)


def confirmed(cast: Cast, offer: str = "ask") -> MailDomain:
    return confirm_domain(actor=STAFF, domain_id=claimed(cast, offer).pk)


@pytest.mark.parametrize(
    ("address", "domain"),
    [
        ("a@Acme.Example.com", "acme.example.com"),
        ("a@gmail.com", ""),
        ("a@YAHOO.co.uk", ""),
        ("a@outlook.de", ""),
        ("a@live.acme.com", "live.acme.com"),
        ("a@localhost", ""),
        ("a@exämple.com", ""),
        ("a@127.0.0.1", ""),
        ("", ""),
    ],
)
def test_the_domain_of_a_verified_address(address: str, domain: str) -> None:
    assert domain_of(User(email=address, email_verified=True)) == domain
    assert domain_of(User(email=address, email_verified=False)) == ""


def test_public_providers_in_many_countries() -> None:
    assert all(map(is_public_provider, ["hotmail.com", "hotmail.co.uk", "live.nl", "gmx.net", "icloud.com"]))
    assert not any(map(is_public_provider, ["acme.com", "yahoo.acme.com", "mygmx.net", "co.uk"]))


def test_a_claim_offers_nothing_before_support_has_confirmed_it(cast: Cast) -> None:
    row = claimed(cast)
    assert row.domain == "example.com"
    assert join_offers(cast.user("stranger")) == []
    with pytest.raises(Forbidden):
        ask_to_join(user=cast.user("stranger"), organization=cast.org)
    confirm_domain(actor=STAFF, domain_id=row.pk)
    [offer] = join_offers(cast.user("stranger"))
    assert (offer.organization, offer.may_join, offer.is_asked) == (cast.org, False, False)
    events = AdminAuditEntry.objects.filter(org_id=cast.org.pk, event_type__startswith="mail_domain.")
    assert {(each.event_type, each.actor_label) for each in events} == {
        ("mail_domain.claimed", "Owner"),
        ("mail_domain.confirmed", "Sam (support staff)"),
    }


def test_who_may_claim(cast: Cast) -> None:
    for who, org, refusal in (
        ("admin", cast.org, Forbidden),
        ("member", cast.org, Forbidden),
        ("stranger", cast.org, NotFound),
        ("owner", cast.other_org, NotFound),
    ):
        with pytest.raises(refusal):
            claimed(cast, who=who, org=org)
    with pytest.raises(Invalid):
        claimed(cast, "everything")
    for address, verified in (("owner@gmail.com", True), ("owner@acme.example", False)):
        move(cast.user("owner"), address, verified=verified)
        with pytest.raises(Conflict):
            claimed(cast)
    assert not MailDomain.objects.exists()


def test_one_organization_has_a_domain(cast: Cast) -> None:
    first, second = claimed(cast), claimed(cast, who="other_owner", org=cast.other_org)
    confirm_domain(actor=STAFF, domain_id=first.pk)
    with pytest.raises(Conflict):
        confirm_domain(actor=STAFF, domain_id=second.pk)
    with pytest.raises(Conflict):
        confirm_domain(actor=STAFF, domain_id=first.pk)
    with pytest.raises(NotFound):
        release_domain(actor=cast.user("other_owner"), organization=cast.other_org, domain_id=first.pk)
    release_domain(actor=cast.user("owner"), organization=cast.org, domain_id=first.pk)
    assert join_offers(cast.user("stranger")) == []
    confirm_domain(actor=STAFF, domain_id=second.pk)
    assert [each.organization for each in join_offers(cast.user("stranger"))] == [cast.other_org]
    with pytest.raises(Conflict):
        claimed(cast)


def test_fifty_confirmations_give_it_to_one_organization(committed_cast: Cast) -> None:
    cast = committed_cast
    rows = [claimed(cast), claimed(cast, who="other_owner", org=cast.other_org)]
    works = [lambda row=row: confirm_domain(actor=STAFF, domain_id=row.pk) for row in rows * 25]
    codes = refusals_at_once(*works)
    assert codes.count("") == 1
    assert MailDomain.objects.filter(confirmed_at__isnull=False).count() == 1


@pytest.mark.parametrize("change", ["left", "unverified", "moved", "demoted"])
def test_a_claimant_who_could_not_claim_it_today_is_not_confirmed(cast: Cast, change: str) -> None:
    row, owner = claimed(cast), cast.user("owner")
    if change == "left":
        Membership.objects.filter(organization=cast.org, user=owner).delete()
    elif change == "demoted":
        Membership.objects.filter(organization=cast.org, user=owner).update(role="admin")
    else:
        move(owner, "owner@acme.example" if change == "moved" else owner.email, verified=change == "moved")
    with pytest.raises(Conflict):
        confirm_domain(actor=STAFF, domain_id=row.pk)


def test_a_person_joins_by_a_click_and_never_by_itself(cast: Cast) -> None:
    confirmed(cast, "join")
    person = cast.user("stranger")
    browser = cast.client("stranger")
    assert "Join as a member" in browser.get("/welcome").text
    assert not Membership.objects.filter(organization=cast.org, user=person).exists()
    answer = browser.post("/welcome/join", {"action": "join", "organization": str(cast.org.pk)})
    assert answer["Location"] == f"/orgs/{cast.org.pk}"
    assert Membership.objects.get(organization=cast.org, user=person).role == "member"
    assert join_offers(person) == []
    entry = AdminAuditEntry.objects.get(event_type="member.joined")
    assert (entry.actor_label, entry.metadata["domain"]) == ("Stranger", "example.com")


@pytest.mark.parametrize("address", ["a@other.example", "a@sub.example.com", "a@example.com.evil.example"])
def test_other_addresses_are_offered_nothing(cast: Cast, address: str) -> None:
    confirmed(cast, "join")
    person = move(cast.user("stranger"), address)
    assert join_offers(person) == []
    for act in (join_by_domain, ask_to_join):
        with pytest.raises(Forbidden):
            act(user=person, organization=cast.org)
    browser = cast.client("stranger")
    assert "Acme" not in browser.get("/welcome").text
    browser.post("/welcome/join", {"action": "join", "organization": str(cast.org.pk)})
    assert not Membership.objects.filter(organization=cast.org, user=person).exists()


def test_an_unverified_address_is_offered_nothing(cast: Cast) -> None:
    confirmed(cast, "join")
    person = move(cast.user("stranger"), "stranger@example.com", verified=False)
    assert join_offers(person) == []
    with pytest.raises(Forbidden):
        join_by_domain(user=person, organization=cast.org)


def test_the_owner_chooses_between_joining_and_asking(cast: Cast) -> None:
    row = confirmed(cast, "ask")
    person = cast.user("stranger")
    with pytest.raises(Forbidden):
        join_by_domain(user=person, organization=cast.org)
    change_offer(actor=cast.user("owner"), organization=cast.org, domain_id=row.pk, offer="join")
    with pytest.raises(Forbidden):
        change_offer(actor=cast.user("admin"), organization=cast.org, domain_id=row.pk, offer="ask")
    assert join_by_domain(user=person, organization=cast.org).role == "member"


def test_a_removed_person_is_offered_nothing(cast: Cast) -> None:
    confirmed(cast, "join")
    remove_member(actor=cast.user("owner"), organization=cast.org, user_id=cast.user("member").pk)
    assert join_offers(cast.user("member")) == []
    with pytest.raises(Forbidden):
        join_by_domain(user=cast.user("member"), organization=cast.org)


def test_who_asks_puts_no_link_into_the_message(cast: Cast, mailbox: Mailbox) -> None:
    confirmed(cast)
    User.objects.filter(pk=cast.user("stranger").pk).update(display_name="Sign in at https://evil.example/x")
    cast.user("stranger").refresh_from_db()
    ask_to_join(user=cast.user("stranger"), organization=cast.org)
    send_waiting()
    text = mailbox.text_of(0) + mailbox.text_of(0, "html")
    assert "Sign in at" in text
    assert not re.search(r"https?://evil|evil\.example", text)


def test_a_message_that_waited_is_not_for_a_former_owner(cast: Cast, mailbox: Mailbox) -> None:
    confirmed(cast)
    ask_to_join(user=cast.user("stranger"), organization=cast.org)
    Membership.objects.filter(organization=cast.org, user=cast.user("owner")).update(role="admin")
    send_waiting()
    assert not mailbox.messages
    assert OutgoingMail.objects.get().state == MailState.OBSOLETE


def test_an_admin_lets_in_or_declines(cast: Cast) -> None:
    confirmed(cast)
    person, other = cast.user("stranger"), make_person("newcomer")
    browser = cast.client("stranger")
    for _ in range(2):
        browser.post("/welcome/join", {"action": "ask", "organization": str(cast.org.pk)})
    ask_to_join(user=other, organization=cast.org)
    assert "You asked to join. An admin will decide." in browser.get("/welcome").text
    assert list(OutgoingMail.objects.values_list("kind", "address")) == [("asked_to_join", "owner@example.com")] * 2
    first, second = waiting_join_requests(cast.org)
    of: dict[str, Any] = {"organization": cast.org}
    for act in (approve_join_request, decline_join_request):
        with pytest.raises(Forbidden):
            act(actor=cast.user("member"), request_id=first.pk, **of)
        with pytest.raises(NotFound):
            act(actor=cast.user("other_owner"), request_id=first.pk, organization=cast.other_org)
    assert approve_join_request(actor=cast.user("admin"), request_id=first.pk, **of).user == person
    with pytest.raises(NotFound):
        approve_join_request(actor=cast.user("admin"), request_id=first.pk, **of)
    decline_join_request(actor=cast.user("admin"), request_id=second.pk, **of)
    [offer] = join_offers(other)
    assert offer.is_declined
    assert list(waiting_join_requests(cast.org)) == []
    ask_to_join(user=other, organization=cast.org)
    assert list(waiting_join_requests(cast.org)) == []


def test_buttons_of_admins(cast: Cast) -> None:
    confirmed(cast)
    ask_to_join(user=cast.user("stranger"), organization=cast.org)
    path, request = f"/orgs/{cast.org.pk}/invitations", JoinRequest.objects.get()
    assert "Stranger" in cast.client("admin").get(path).text
    data = {"action": "approve-join", "request": str(request.pk)}
    assert cast.client("member").post(path, data).status_code == 403
    assert cast.client("other_owner").post(path, data).status_code == 404
    assert Browser().post(path, data).status_code == 302
    assert not Membership.objects.filter(user=cast.user("stranger")).exists()
    assert "Stranger is now a member." in cast.client("admin").post(path, data, follow=True).text
    assert cast.client("admin").post(path, {**data, "action": "decline-join"}).status_code == 404


def test_a_request_of_a_person_who_has_another_address_by_now_is_refused(cast: Cast) -> None:
    confirmed(cast)
    row = ask_to_join(user=cast.user("stranger"), organization=cast.org)
    move(cast.user("stranger"), "stranger@other.example")
    with pytest.raises(Conflict):
        approve_join_request(actor=cast.user("admin"), organization=cast.org, request_id=row.pk)


def test_requests_end_with_the_domain(cast: Cast) -> None:
    row = confirmed(cast)
    ask_to_join(user=cast.user("stranger"), organization=cast.org)
    release_domain(actor=STAFF, organization=cast.org, domain_id=row.pk)
    assert not JoinRequest.objects.exists()


def test_fifty_clicks_make_one_member_and_one_entry(committed_cast: Cast) -> None:
    confirmed(committed_cast, "join")
    work = [lambda: join_by_domain(user=committed_cast.user("stranger"), organization=committed_cast.org)] * 50
    assert len({row.pk for row in at_once(*work)}) == 1  # type: ignore[union-attr]
    assert AdminAuditEntry.objects.filter(event_type="member.joined").count() == 1


def test_joining_needs_the_plan_of_the_organization(cast: Cast, settings: Any) -> None:
    confirmed(cast, "join")
    settings.BILLING_MODE = "manual"
    cast.client("stranger").post("/welcome/join", {"action": "join", "organization": str(cast.org.pk)})
    assert not Membership.objects.filter(user=cast.user("stranger")).exists()


def test_the_page_of_an_owner(cast: Cast) -> None:
    path, owner = f"/orgs/{cast.org.pk}/settings/mail-domain", cast.client("owner")
    for who, status in (("admin", 403), ("member", 403), ("other_owner", 404)):
        assert cast.client(who).get(path).status_code == status
        assert cast.client(who).post(path, {"action": "claim", "offer": "join"}).status_code == status
    assert "Claim example.com" in owner.get(path).text
    assert owner.post(path, {"action": "claim", "offer": "no"}).status_code == 422
    assert "Waiting for support" in owner.post(path, {"action": "claim", "offer": "join"}, follow=True).text
    row = MailDomain.objects.get()
    confirm_domain(actor=STAFF, domain_id=row.pk)
    assert "Confirmed" in owner.get(path).text
    owner.post(path, {"action": "offer", "offer": "ask", "domain": str(row.pk)})
    row.refresh_from_db()
    assert row.offer == "ask"
    owner.post(path, {"action": "release", "offer": "ask", "domain": str(row.pk)})
    assert not MailDomain.objects.exists()


def test_support_confirms_in_the_console(cast: Cast) -> None:
    row = claimed(cast)
    staff = make_person("sam")
    staff.is_staff = staff.is_superuser = True
    staff.save(update_fields=["is_staff", "is_superuser"])
    cast.people["sam"] = staff
    assert staff_act(cast.client("owner"), "confirm-domain", row, cast.org).status_code == 302
    row.refresh_from_db()
    assert row.confirmed_at is None
    assert staff_act(cast.client("sam"), "confirm-domain", row, cast.other_org).status_code == 404
    assert staff_act(cast.client("sam"), "confirm-domain", row, cast.org).status_code == 302
    row.refresh_from_db()
    assert row.confirmed_at is not None
