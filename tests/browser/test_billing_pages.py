"""Billing as people use it, with a stand-in of the payment provider: from no plan to a plan that ends, for each role.

The stand-in serves its hosted pages itself, so forms of ours really lead to another origin under our policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Visitor, stop_clock, visitors
from tests.browser.every_page import colleagues, paths_of_nothing
from tests.browser.looking import DARK_PHONE, LIGHT_NARROW, PHONE, SCREENS, Looker, faults_in, press
from tests.browser.test_every_page import look_at_all
from tests.e2e.started import Started, started
from tests.fakes.payment_provider.billing import FAILING_LATER_CARD
from tests.fakes.payment_provider.running import PRICE_ID, SECRET_KEY, PaymentProvider, payment_provider

NewVisitor = Callable[..., Visitor]
WEBHOOK_SECRET = "whsec_of_the_browser_tests"


@dataclass
class Market:
    """The service in the mode `stripe`, and the provider that tells it everything."""

    service: Started
    provider: PaymentProvider


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Market]:
    with payment_provider() as provider:
        variables = {
            "BILLING_MODE": "stripe",
            "STRIPE_API_BASE": provider.url,
            "STRIPE_SECRET_KEY": SECRET_KEY,
            "STRIPE_PRICE_ID": PRICE_ID,
            "STRIPE_WEBHOOK_SECRET": WEBHOOK_SECRET,
        }
        with started(tmp_path_factory.mktemp("billing"), variables) as service:
            service.wait_ready()
            address = f"{service.ready()['base_url']}/api/webhooks/stripe"
            provider.control("endpoints", endpoints=[{"url": address, "secrets": [WEBHOOK_SECRET]}])
            yield Market(service, provider)


@pytest.fixture
def visitor(market: Market, chromium: Browser) -> Iterator[NewVisitor]:
    """In place of the visitors of the service that bills nobody."""
    with visitors(market.service, chromium) as make:
        yield make


def notice(page: Page, text: str) -> None:
    expect(page.get_by_role("region", name="Plan", exact=True).filter(has_text=text)).to_be_visible()


def subscribe(someone: Visitor, market: Market, org: str) -> None:
    """At the provider and back; its events have arrived."""
    page = someone.open(f"{org}/billing")
    page.get_by_role("button", name="Subscribe").click()
    page.wait_for_url(f"{market.provider.url}/c/pay/*")
    page.get_by_role("button", name="Pay").click()
    page.wait_for_url(f"{someone.base}{org}/billing?checkout=done")
    market.provider.settle()


@pytest.mark.parametrize("scripts", [True, False])
def test_from_no_plan_to_the_provider_and_back(market: Market, visitor: NewVisitor, scripts: bool) -> None:
    someone = visitor(java_script_enabled=scripts)
    org = someone.found_organization("Nordwind")
    page = someone.open(org)
    notice(page, "Nordwind has no plan yet.")
    page.get_by_role("region", name="Plan", exact=True).get_by_role("link", name="Subscribe").click()
    expect(page.get_by_role("heading", name="Plan no plan")).to_be_visible()
    if scripts:  # the last link of a long navigation
        expect(page.get_by_role("link", name="Billing", exact=True)).to_be_in_viewport()

    if scripts:
        press(page.get_by_text("I have a coupon"))
        page.get_by_label("Coupon").fill("no-such-coupon")
        press(page.get_by_role("button", name="Subscribe"))
        expect(page.get_by_role("alert")).to_contain_text("This coupon isn’t valid. Check it, or subscribe without it.")
        page.get_by_label("Coupon").fill("")
    page.get_by_role("button", name="Subscribe").click()
    page.wait_for_url(f"{market.provider.url}/c/pay/*")
    page.get_by_role("link", name="Back").click()
    expect(page.get_by_text("You left the checkout. Nothing was paid.")).to_be_visible()

    market.provider.control("delivery", hold=True)
    try:
        page.get_by_role("button", name="Continue the checkout").click()
        page.get_by_role("button", name="Pay").click()
        expect(page.get_by_text("Waiting for the payment provider’s confirmation.")).to_be_visible()
    finally:
        market.provider.control("delivery", hold=False)
        market.provider.control("release")
    market.provider.settle()
    if not scripts:
        page.get_by_role("link", name="Check again").click()
    expect(page.get_by_text("The payment provider confirmed the subscription. The plan is active.")).to_be_visible()
    expect(page.get_by_text("The next payment is due on")).to_be_visible()
    expect(page.get_by_role("heading", name="If the plan ends")).to_be_visible()

    page.get_by_role("button", name="Manage plan and invoices").click()
    page.wait_for_url(f"{market.provider.url}/p/session/*")
    page.get_by_role("button", name="Cancel at the end of the period").click()
    market.provider.settle()
    page.get_by_role("link", name="Return").click()
    expect(page.get_by_text("The plan is canceled. Everything works until")).to_be_visible()


def test_a_minute_without_a_confirmation_ends_in_words(market: Market, visitor: NewVisitor) -> None:
    someone = visitor()
    org = someone.found_organization()
    stop_clock(someone.page)
    page = someone.open(f"{org}/billing?checkout=done")
    for number in range(1, 31):
        expect(page.locator(f"#waiting[hx-get$='asked={number - 1}']")).to_be_visible()
        with page.expect_response(lambda answer: "asked=" in answer.url):
            page.clock.run_for(2_100)  # htmx takes 20 ms before it counts
    expect(page.get_by_text("The provider hasn’t confirmed the payment yet.").first).to_be_visible()
    expect(page.locator("[hx-get]")).to_have_count(0)


def test_every_page_of_a_plan_in_trouble_is_accessible_and_fits(
    market: Market, visitor: NewVisitor, tmp_path: Path
) -> None:
    owner = visitor(viewport={"width": PHONE, "height": 760})
    org = owner.found_organization("Nordwind Handelsgesellschaft")
    views = (*SCREENS, LIGHT_NARROW)
    found = faults_in(owner.open(org), views)
    for query in ("", "?checkout=done", "?checkout=canceled"):
        found += faults_in(owner.open(f"{org}/billing{query}"), views)
    page = owner.open(f"{org}/billing")
    page.get_by_text("I have a coupon").click()
    page.get_by_label("Coupon").fill("no-such-coupon")
    page.get_by_role("button", name="Subscribe").click()
    expect(page.get_by_role("alert")).to_be_visible()
    found += faults_in(page, views)
    for path in ("/vendors/acme/settings", "/teams", "/activity"):
        found += faults_in(owner.open(f"{org}{path}"), views)

    subscribe(owner, market, org)
    people = {"owner": owner, **colleagues(visitor, owner, org)}
    found += faults_in(owner.open(f"{org}/billing"), views)
    page.get_by_role("button", name="Manage plan and invoices").click()
    page.get_by_label("Card number").fill(FAILING_LATER_CARD)
    page.get_by_role("button", name="Use this card").click()
    market.provider.advance(days=32)
    market.provider.settle()
    notice(owner.open(org), "The last payment of Nordwind Handelsgesellschaft failed. Everything works until")
    member = people["member"]
    notice(member.open(org), "An owner can update the payment method: Nina Novak.")
    for each in (owner, member):
        found += faults_in(each.open(org), views)
    found += faults_in(owner.open(f"{org}/billing"), views)

    market.provider.advance(days=32)
    market.provider.settle()
    notice(owner.open(org), "The plan of Nordwind Handelsgesellschaft is not active.")
    looker = Looker((*SCREENS, DARK_PHONE), tmp_path)
    look_at_all(people, paths_of_nothing(owner, org), looker)
    found += looker.found
    assert not found, "\n".join(found)
