"""The plan's page: the plan in words, what stops and what goes on, the wait after a checkout, and who may see it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import LazySettings

from billing.models import Subscription
from billing.states import SubscriptionStatus
from gateway.lib import clock
from gateway.web.gate import ENTITLEMENT_WORDS, PlanFunction
from gateway.web.log_reads import reads
from orgs.models import Organization
from tests.api.audit.usage.rows import log_row, store
from tests.api.pages.conftest import SCRIPT, Site, text

PLAN = "billing_pages:plan"
HTMX = {"HX-Request": "true"}
AGENT_KEYS = ENTITLEMENT_WORDS["serviceClients"]


@pytest.fixture
def paying(site: Site, settings: LazySettings) -> Site:
    """The provider decides and does not answer; no organization has a plan yet."""
    settings.BILLING_MODE = "stripe"
    settings.STRIPE_API_BASE = "http://127.0.0.1:9"
    settings.STRIPE_SECRET_KEY, settings.STRIPE_PRICE_ID = "sk_test_of_the_suite", "price_1"
    return site


def subscribe(organization: Organization, status: str, **columns: Any) -> None:
    values = {"status": status, "customer_id": f"cus_{organization.name}", **columns}
    Subscription.objects.update_or_create(organization=organization, defaults=values)


def plan_page(site: Site, query: str = "", who: str = "owner") -> str:
    answer = site.cast.client(who).get(f"{site.path(PLAN)}{query}")
    assert answer.status_code == 200
    return text(answer)


def lists(page: str) -> tuple[set[str], set[str]]:
    """The functions that stop, and those that go on."""
    stops, goes_on = re.findall(r"<ul>((?:<li>[^<]+</li>)+)</ul>", page)
    return set(re.findall("<li>([^<]+)", stops)), set(re.findall("<li>([^<]+)", goes_on))


def on(moment: datetime) -> str:
    return f"{moment:%-d %b %Y}"


@pytest.mark.parametrize("mode", ["disabled", "manual", "stripe"])
@pytest.mark.parametrize(
    ("who", "status"),
    [("owner", 200), ("admin", 403), ("member", 403), ("other_owner", 404), ("stranger", 404), ("nobody", 302)],
)
def test_who_opens_the_page(paying: Site, settings: LazySettings, mode: str, who: str, status: int) -> None:
    settings.BILLING_MODE = mode
    browser = paying.cast.client(who)
    assert browser.get(paying.path(PLAN)).status_code == status
    for action in ("subscribe", "manage"):
        posted = browser.post(paying.path(PLAN), {"action": action}).status_code
        assert posted == status or (who == "owner" and posted in {409, 502, 503})


def test_owners_alone_find_it_in_the_navigation(site: Site) -> None:
    link = f'href="{site.path(PLAN)}"'
    assert link in text(site.owner().get(site.path("orgs:settings")))
    admins = site.cast.client("admin").get(site.path("proxy_pages:home")).context["nav"]
    assert site.path(PLAN) not in {item["url"] for section in admins for item in section["items"]}


SOON = clock.now() + timedelta(days=12)
YESTERDAY, LONG_AGO = clock.now() - timedelta(days=1), clock.now() - timedelta(days=30)
SUBSCRIBE, MANAGE, PAY = (
    f"{text}</span></button>" for text in ("Subscribe", "Manage plan and invoices", "Update the payment method")
)
STATES: list[tuple[str, dict[str, Any], list[str], set[str]]] = [
    (
        "active",
        {"period_end": SOON},
        [" active</span>", f"Everything works. The next payment is due on {on(SOON)}."],
        {MANAGE},
    ),
    (
        "active",
        {"period_end": SOON, "cancel_at_period_end": True},
        [" ends soon</span>", f"The plan is canceled. Everything works until {on(SOON)}."],
        {MANAGE},
    ),
    (
        "trialing",
        {"period_end": SOON},
        [" trial</span>", f"The trial ends and the first payment is due on {on(SOON)}."],
        {MANAGE},
    ),
    (
        "past_due",
        {"past_due_since": YESTERDAY},
        [" payment failed</span>", f"Everything works until {on(YESTERDAY + timedelta(days=7))}."],
        {PAY},
    ),
    (
        "past_due",
        {"past_due_since": LONG_AGO},
        [" payment failed</span>", f"Everything worked until {on(LONG_AGO + timedelta(days=7))}."],
        {PAY},
    ),
    ("unpaid", {}, [" unpaid</span>", "The last invoice is unpaid."], {PAY}),
    ("paused", {}, [" paused</span>"], {SUBSCRIBE, MANAGE}),
    ("active", {"customer_id": None}, [" active</span>"], {SUBSCRIBE}),
    ("incomplete", {}, [" not paid yet</span>"], {SUBSCRIBE, MANAGE}),
    ("canceled", {}, [" ended</span>", "The plan has ended."], {SUBSCRIBE, MANAGE}),
    ("canceled", {"customer_id": None}, [" ended</span>"], {SUBSCRIBE}),
    ("none", {"customer_id": None}, [" no plan</span>", "There is no plan yet."], {SUBSCRIBE}),
]


@pytest.mark.parametrize(("status", "columns", "words", "buttons"), STATES)
def test_each_state_in_words_with_the_buttons_that_help(
    paying: Site, status: str, columns: dict[str, Any], words: list[str], buttons: set[str]
) -> None:
    subscribe(paying.cast.org, status, **columns)
    subscribe(paying.cast.other_org, "active", period_end=clock.now() + timedelta(days=300))
    page = plan_page(paying)
    for each in words:
        assert each in page
    assert {each for each in (SUBSCRIBE, MANAGE, PAY) if each in page} == buttons
    assert on(clock.now() + timedelta(days=300)) not in page


def test_each_state_has_words() -> None:
    assert {status for status, *_ in STATES} == set(SubscriptionStatus)


def test_a_checkout_that_is_open_is_continued(paying: Site) -> None:
    subscribe(paying.cast.org, "none", checkout_session_id="cs_1", checkout_began_at=clock.now())
    assert "Continue the checkout</span></button>" in plan_page(paying)
    subscribe(paying.cast.org, "none", checkout_session_id="cs_1", checkout_began_at=LONG_AGO)
    assert SUBSCRIBE in plan_page(paying)


@pytest.mark.parametrize("mode", ["manual", "disabled"])
def test_where_no_provider_is_the_page_says_who_sets_the_plan(site: Site, settings: LazySettings, mode: str) -> None:
    settings.BILLING_MODE = mode
    for status in ("active", "canceled", "past_due"):
        subscribe(site.cast.org, status, past_due_since=YESTERDAY)
        page = plan_page(site)
        assert SUBSCRIBE not in page
        assert MANAGE not in page
        assert "payment provider" not in plan_page(site, "?checkout=done")
        said = (
            "The operators of this service set the plan"
            if mode == "manual"
            else "Payments are turned off on this service."
        )
        assert said in page
        assert ('id="covers"' in page) is (mode == "manual")
    for action in ("subscribe", "manage"):
        refused = site.owner().post(site.path(PLAN), {"action": action})
        assert refused.status_code == 503
        assert "This service takes no payments. Its operators set the plan." in text(refused)
    settings.BILLING_PORTAL_URL = "https://pay.example/portal"
    assert ('href="https://pay.example/portal"' in plan_page(site)) is (mode == "manual")


def test_the_functions_that_stop_are_those_of_the_gates(paying: Site) -> None:
    stops, goes_on = lists(plan_page(paying))
    assert stops == {*PlanFunction, AGENT_KEYS}
    assert not stops & goes_on
    assert '<h2 id="covers">Without a plan</h2>' in plan_page(paying)
    subscribe(paying.cast.org, "canceled", service_clients=True)
    subscribe(paying.cast.other_org, "canceled")
    stops, goes_on = lists(plan_page(paying))
    assert (AGENT_KEYS in stops, AGENT_KEYS in goes_on) == (False, True)
    subscribe(paying.cast.org, "active", service_clients=None)
    page = plan_page(paying)
    assert lists(page)[0] == {*PlanFunction, AGENT_KEYS}
    assert '<h2 id="covers">If the plan ends</h2>' in page


@pytest.mark.usefixtures("stopped_clock")
def test_members_and_calls_of_the_organization_alone(site: Site) -> None:
    now, ours = clock.now().replace(microsecond=0), site.cast.org.id
    store(
        *(log_row(now, org_id=ours, user_id="one") for _ in range(3)),
        log_row(now - timedelta(days=2), org_id=ours, user_id="two"),
        log_row(now - timedelta(days=40), org_id=ours),
        *(log_row(now, org_id=site.cast.other_org.id) for _ in range(7)),
    )
    page = plan_page(site)
    assert re.findall(r'tile-value">(\d+)', page) == ["3", "4"]
    assert "by 2 people and agents" in page
    assert page.count('<tr><th scope="row">') == 30
    assert f'<tr><th scope="row">{now:%-d %b}</th><td class="num">3</td></tr>' in page


def test_the_plan_is_shown_while_the_figures_have_to_wait(site: Site) -> None:
    held = 0
    try:
        while reads.take(site.cast.org.id).name == "TAKEN":
            held += 1
        page = plan_page(site)
    finally:
        for _ in range(held):
            reads.give_back(site.cast.org.id)
    assert "are in progress. Reload the page in a moment." in page
    assert "Calls in 30 days" not in page
    assert "Calls in 30 days" in plan_page(site)


# ---- back from the checkout ----


def waiting_address(page: str) -> str:
    found = re.search(r'hx-get="([^"]+)" hx-trigger="every 2s" hx-swap="outerHTML"', page)
    assert found is not None
    return found[1].replace("&amp;", "&")


def test_the_page_waits_for_the_provider_and_asks_for_a_minute(paying: Site) -> None:
    subscribe(paying.cast.org, "none")
    subscribe(paying.cast.other_org, "active")
    page, browser = plan_page(paying, "?checkout=done"), paying.owner()
    assert "Waiting for the payment provider’s confirmation." in page
    assert f'href="{paying.path(PLAN)}?checkout=done">Check again</a>' in page
    assert "htmx-2.min.js" in page
    assert SUBSCRIBE not in page, "a second payment"
    for number in range(30):
        address = waiting_address(page)
        assert address == f"{paying.path(PLAN)}?checkout=done&asked={number}"
        part = browser.get(address, headers=HTMX)
        page = text(part)
        assert page.startswith('<div id="waiting"')
    assert "hx-get" not in page
    assert "The provider hasn’t confirmed the payment yet." in page
    assert 'hx-swap-oob="true"' in page


def test_the_provider_s_word_ends_the_wait(paying: Site) -> None:
    subscribe(paying.cast.org, "none")
    address, browser = waiting_address(plan_page(paying, "?checkout=done")), paying.owner()
    assert browser.get(address, headers=HTMX).status_code == 200
    assert Subscription.objects.get(organization=paying.cast.org).status == "none", "coming back changes nothing"
    subscribe(paying.cast.org, "active", period_end=SOON)
    answer = browser.get(address, headers=HTMX)
    assert (answer.status_code, answer["HX-Refresh"], answer.content) == (204, "true", b"")
    page = plan_page(paying, "?checkout=done")
    assert "The payment provider confirmed the subscription. The plan is active." in page
    assert "hx-get" not in page
    assert "htmx-2.min.js" not in page


@pytest.mark.parametrize("asked", ["", "-1", "x", "1" * 40, "²", "٣", "1e3", SCRIPT])
def test_a_wait_that_was_typed_by_hand_is_no_error(paying: Site, asked: str) -> None:
    answer = paying.owner().get(paying.path(PLAN), {"checkout": "done", "asked": asked})
    assert answer.status_code == 200
    assert waiting_address(text(answer)).endswith("asked=0")
    assert SCRIPT not in text(answer)


def test_a_checkout_that_was_left(paying: Site) -> None:
    page = plan_page(paying, "?checkout=canceled")
    assert "You left the checkout. Nothing was paid." in page
    assert "hx-get" not in page


def test_the_wait_is_refused_as_the_page_is(paying: Site) -> None:
    address = f"{paying.path(PLAN)}?checkout=done&asked=0"
    gone = paying.cast.client("nobody").get(address, headers=HTMX)
    assert (gone.status_code, gone["HX-Refresh"]) == (204, "true")
    assert paying.cast.client("admin").get(address, headers=HTMX).status_code == 403
    assert paying.cast.client("other_owner").get(address, headers=HTMX).status_code == 404


# ---- the way to the provider ----


@pytest.mark.parametrize(
    ("mode", "api_base", "origins"),
    [
        ("stripe", "https://api.stripe.com", "'self' https://checkout.stripe.com https://billing.stripe.com"),
        ("stripe", "http://127.0.0.1:9470", "'self' http://127.0.0.1:9470"),
        ("manual", "https://api.stripe.com", "'self'"),
        ("disabled", "", "'self'"),
    ],
)
def test_the_policy_lets_forms_reach_the_provider_from_this_page_alone(
    site: Site, settings: LazySettings, mode: str, api_base: str, origins: str
) -> None:
    settings.BILLING_MODE, settings.STRIPE_API_BASE = mode, api_base
    browser = site.owner()
    here = browser.get(site.path(PLAN))["Content-Security-Policy"]
    elsewhere = browser.get(site.path("orgs:settings"))["Content-Security-Policy"]
    assert f"form-action {origins};" in f"{here};"
    assert "form-action 'self';" in f"{elsewhere};"
    assert here.replace(origins, "'self'", 1) == elsewhere


@pytest.mark.parametrize("coupon", ["x" * 201, "\x00", "a\x1bb"])
def test_a_coupon_that_cannot_be_one_is_shown_beside_its_field(paying: Site, coupon: str) -> None:
    answer = paying.owner().post(paying.path(PLAN), {"action": "subscribe", "coupon": coupon})
    assert answer.status_code in {400, 422}
    assert 'id="id_coupon_error"' in text(answer)
    assert '<details class="coupon" open>' in text(answer)
