"""The notice of a failed payment and of an ended plan, on every page of the organization, for each role."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.conf import LazySettings

from billing.links import plan_url
from billing.models import Subscription
from credentials.credential_scope import CredentialScope
from gateway.lib import clock
from gateway.web.gate import Gate
from orgs.models import Membership
from orgs.roles import Role
from tests.api.pages.conftest import Site, text
from tests.api.pages.test_markup import all_pages
from tests.api.pages.test_plan_page import YESTERDAY, subscribe
from tests.contracts.test_gates import pages
from tests.factories.cast import make_person
from tests.factories.tenant import connect

NOTICE = re.compile(r'<section class="alert alert-(\w+) notice" aria-label="Plan">.*?</section>', re.S)


@pytest.fixture
def paying(site: Site, settings: LazySettings) -> Site:
    """The provider decides; the other organization pays."""
    settings.BILLING_MODE = "stripe"
    subscribe(site.cast.other_org, "active")
    return site


def notice(site: Site, who: str, route: str = "proxy_pages:home") -> str:
    """The notice in words, and its link; "" where the page has none."""
    found = NOTICE.search(text(site.cast.client(who).get(site.path(route))))
    return "" if found is None else " ".join(re.sub(r"<(?!a )[^>]+>", "", found[0]).split())


def test_all_is_well(paying: Site) -> None:
    subscribe(paying.cast.org, "active")
    for who in ("owner", "admin", "member"):
        assert notice(paying, who) == ""


def test_a_failed_payment_says_until_when_and_what_each_role_can_do(paying: Site) -> None:
    subscribe(paying.cast.org, "past_due", past_due_since=YESTERDAY)
    until = f"{YESTERDAY + timedelta(days=7):%-d %b %Y}"
    said = f"The last payment of Acme failed. Everything works until {until}."
    link = f'<a href="{plan_url(paying.cast.org.id)}">Update the payment method'
    assert notice(paying, "owner") == f"{said} {link}"
    for who in ("admin", "member"):
        assert notice(paying, who) == f"{said} An owner can update the payment method: Owner."
    other = text(paying.cast.client("other_owner").get(f"/orgs/{paying.cast.other_org.id}"))
    assert not NOTICE.search(other)


@pytest.mark.parametrize(
    ("status", "said", "remedy"),
    [
        ("none", "Acme has no plan yet.", "subscribe"),
        ("incomplete", "Acme has no plan yet.", "subscribe"),
        ("canceled", "The plan of Acme is not active.", "renew it"),
        ("paused", "The plan of Acme is not active.", "renew it"),
        ("unpaid", "The plan of Acme is not active.", "update the payment method"),
        ("past_due", "The plan of Acme is not active.", "update the payment method"),
    ],
)
def test_an_ended_plan_says_what_works_and_what_each_role_can_do(
    paying: Site, status: str, said: str, remedy: str
) -> None:
    subscribe(paying.cast.org, status, past_due_since=clock.now() - timedelta(days=8))
    works = "Tool calls work. Some features require an active plan."
    link = f'<a href="{plan_url(paying.cast.org.id)}">{remedy.capitalize()}'
    assert notice(paying, "owner") == f"{said} {works} {link}"
    assert notice(paying, "member") == f"{said} {works} An owner can {remedy}: Owner."


def test_the_owners_are_named(paying: Site) -> None:
    for name in ("second_owner", "gone_owner"):
        paying.cast.people[name] = make_person(name)
        Membership.objects.create(organization=paying.cast.org, user=paying.cast.user(name), role=Role.OWNER)
    gone = paying.cast.user("gone_owner")
    gone.is_active = False
    gone.save()
    assert notice(paying, "admin").endswith("An owner can subscribe: Owner, Second Owner.")


def test_where_operators_set_the_plan(paying: Site, settings: LazySettings) -> None:
    settings.BILLING_MODE = "manual"
    assert notice(paying, "owner").endswith("The operators of this service set the plan.")
    assert notice(paying, "admin").endswith("An owner can renew it: Owner.")
    settings.BILLING_PORTAL_URL = "https://pay.example/portal"
    assert notice(paying, "owner").endswith('<a href="https://pay.example/portal">Renew it')
    assert "pay.example" not in notice(paying, "admin")
    settings.BILLING_MODE = "disabled"
    for status in ("past_due", "canceled"):
        subscribe(paying.cast.org, status, past_due_since=YESTERDAY)
        assert notice(paying, "owner") == ""


def test_every_page_of_the_organization_says_once_who_can_help(paying: Site) -> None:
    """A page that is refused says it itself, and so does the plan's page."""
    admin, seen = paying.cast.client("admin"), set()
    for path in all_pages(paying):
        answer = admin.get(path)
        if path.startswith("/orgs/") and answer.status_code in {200, 402}:
            assert text(answer).count("An owner can subscribe: Owner.") == 1, path
            seen.add(answer.status_code)
    assert seen == {200, 402}


def needs_plan(gate: Gate | None) -> bool:
    return gate is not None and bool(gate.plan or gate.entitlement)


CLOSED = {
    "ConnectionPage": ("credentials:connection", "Connect"),
    "NewKeyPage": ("credentials:key-new", "Add key"),
    "KeyPage": ("credentials:key", "Replace"),
    "TeamsPage": ("orgs:teams", "Create team"),
    "InvitationsPage": ("orgs:invitations", "Create invitation"),
    "InvitePeoplePage": ("orgs:invite-people", "Send invitations"),
    "AgentKeyPage": ("oauth_pages:agent-key", "key"),
    "NewServiceClientPage": ("oauth_pages:service-client-new", "Create agent"),
}


def test_each_form_that_needs_a_plan_on_a_page_that_does_not_is_tried_here() -> None:
    needing = {view.__name__ for view in pages() if needs_plan(view.gates.get("POST"))}
    refused = {view.__name__ for view in pages() if needs_plan(view.gates.get("GET"))}
    assert needing - refused == set(CLOSED)


@pytest.mark.parametrize("page", CLOSED)
def test_a_button_that_would_be_refused_is_disabled_and_says_why(paying: Site, page: str) -> None:
    route, button = CLOSED[page]
    place = {"name": "Ops"}
    key = connect(paying.cast.org, paying.cast.user("owner"), "fake", CredentialScope.NAMED_KEY, place, apiKey="key")
    more = {
        "ConnectionPage": ("fake",),
        "NewKeyPage": ("fake",),
        "KeyPage": ("fake", str(key.id)),
        "AgentKeyPage": (paying.tenant.client.client_id,),
    }.get(page, ())
    address = paying.path(route, *more)
    for status, is_closed in (("canceled", True), ("active", False)):
        subscribe(paying.cast.org, status)
        for who in ("owner", "admin"):
            shown = text(paying.cast.client(who).get(address))
            assert bool(re.search(rf'type="submit" disabled>[^/]*{button}', shown)) is is_closed
            assert ("need an active plan" in shown) is is_closed
    Subscription.objects.update(status="canceled", service_clients=True)
    assert (" disabled" in text(paying.owner().get(address))) is (page not in {"AgentKeyPage", "NewServiceClientPage"})


def test_a_key_can_be_revoked_without_a_plan(paying: Site) -> None:
    address = paying.client_path("agent-key")
    shown = text(paying.owner().get(f"{address}?revoke=1"))
    assert " disabled" not in shown
    assert "need an active plan" not in shown
