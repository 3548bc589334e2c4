"""Subscriptions of the stand-in from the hosted page to their end, with time that passes at a test's word."""

from __future__ import annotations

import time
from typing import Any

import pytest
import stripe

from tests.fakes.payment_provider.billing import ASKING_CARD, FAILING_LATER_CARD, GOOD_CARD, REFUSED_CARD
from tests.fakes.payment_provider.running import PaymentProvider
from tests.unit.payment_provider.conftest import Customer, Inbox

DAY_S = 86_400


def invoices(client: stripe.StripeClient, subscription: str) -> list[stripe.Invoice]:
    """The newest first."""
    return list(client.v1.invoices.list({"subscription": subscription}).data)


def test_a_paid_checkout(provider: PaymentProvider, client: stripe.StripeClient, customer: Customer) -> None:
    session = customer.checkout(client_reference_id="org-1", subscription_data={"metadata": {"organization": "one"}})
    assert (session.status, session.payment_status, session.amount_total) == ("open", "unpaid", 9_900)
    page = provider.http.get(session.url or "")
    assert (page.status_code, "99.00 USD" in page.text) == (200, True)
    paid = provider.pay(session.url or "")
    assert (paid.status_code, paid.headers["Location"]) == (303, f"http://127.0.0.1:1/done?session={session.id}")
    done = client.v1.checkout.sessions.retrieve(session.id, {"expand": ["subscription", "line_items"]})
    assert (done.status, done.payment_status, done.url, done.client_reference_id) == ("complete", "paid", None, "org-1")
    assert (done.subscription.status, done.subscription.metadata["organization"]) == ("active", "one")
    assert done.line_items.data[0].price.id == done.subscription["items"].data[0].price.id
    (invoice,) = invoices(client, done.subscription.id)
    assert (invoice.status, invoice.amount_paid, invoice.billing_reason) == ("paid", 9_900, "subscription_create")
    assert invoice.parent.subscription_details.subscription == done.subscription.id
    assert provider.pay(session.url or "").status_code == 400, "it is complete"
    with pytest.raises(stripe.InvalidRequestError):
        client.v1.checkout.sessions.expire(session.id)


@pytest.mark.parametrize("card", [REFUSED_CARD, FAILING_LATER_CARD, "1234", ""])
def test_a_card_that_does_not_pay(
    provider: PaymentProvider, client: stripe.StripeClient, customer: Customer, card: str
) -> None:
    session = customer.checkout()
    answer = provider.pay(session.url or "", card)
    assert (answer.status_code, "Your card" in answer.text) == (402, True)
    assert client.v1.checkout.sessions.retrieve(session.id).status == "open"
    assert client.v1.subscriptions.list({"customer": customer.id, "status": "all"}).data == []
    assert provider.pay(session.url or "").status_code == 303, "another card may follow"


def test_a_card_whose_owner_is_asked(
    provider: PaymentProvider, client: stripe.StripeClient, customer: Customer, inbox: Inbox
) -> None:
    session = customer.checkout()
    assert provider.pay(session.url or "", ASKING_CARD).status_code == 200
    (subscription,) = client.v1.subscriptions.list({"customer": customer.id}).data
    assert subscription.status == "incomplete"
    assert provider.act(session.url or "", "refuse").status_code == 402
    assert customer.status(subscription.id) == "incomplete"
    assert provider.act(session.url or "", "agree").status_code == 303
    assert customer.status(subscription.id) == "active"
    provider.settle()
    updated = next(event for event in inbox.events() if event.type == "customer.subscription.updated")
    assert updated.data.previous_attributes.to_dict() == {"status": "incomplete"}
    kinds = inbox.kinds()
    assert kinds.index("invoice.payment_failed") < kinds.index("invoice.paid")
    assert kinds[-1] == "checkout.session.completed"


def test_an_incomplete_subscription_expires(provider: PaymentProvider, customer: Customer) -> None:
    session = customer.checkout()
    provider.pay(session.url or "", ASKING_CARD)
    (subscription,) = customer.client.v1.subscriptions.list({"customer": customer.id}).data
    provider.advance(days=1)
    assert customer.status(subscription.id) == "incomplete_expired"
    assert provider.act(session.url or "", "agree").status_code == 400, "the session has expired too"


def test_a_session_expires(provider: PaymentProvider, client: stripe.StripeClient, customer: Customer) -> None:
    by_request, by_time = customer.checkout(), customer.checkout()
    assert client.v1.checkout.sessions.expire(by_request.id).status == "expired"
    provider.advance(days=1)
    assert client.v1.checkout.sessions.retrieve(by_time.id).status == "expired"
    for session in (by_request, by_time):
        assert provider.pay(session.url or "").status_code == 400


def test_it_is_renewed(
    provider: PaymentProvider, client: stripe.StripeClient, customer: Customer, inbox: Inbox
) -> None:
    subscription = customer.subscribe()
    before = client.v1.subscriptions.retrieve(subscription)["items"].data[0].current_period_end
    provider.settle()
    inbox.got.clear()
    now = provider.advance(days=32)
    item = client.v1.subscriptions.retrieve(subscription)["items"].data[0]
    assert item.current_period_start == before < now < item.current_period_end
    newest, first = invoices(client, subscription)
    assert (newest.status, newest.billing_reason, first.status) == ("paid", "subscription_cycle", "paid")
    provider.settle()
    events = inbox.events()
    assert [event.type for event in events] == [
        "invoice.created",
        "customer.subscription.updated",
        "invoice.finalized",
        "invoice.paid",
        "invoice.payment_succeeded",
    ]
    assert events[1].created == before
    assert events[2].created == before + 3_600, "a renewal is a draft for an hour"
    assert events[1].data.previous_attributes["latest_invoice"] == first.id


@pytest.mark.parametrize(("policy", "status"), [("cancel", "canceled"), ("unpaid", "unpaid"), ("past_due", "past_due")])
def test_payments_that_fail(
    provider: PaymentProvider, client: stripe.StripeClient, customer: Customer, inbox: Inbox, policy: str, status: str
) -> None:
    provider.control("policy", after_retries=policy)
    subscription = customer.subscribe()
    provider.control("card", customer=customer.id, card=FAILING_LATER_CARD)
    provider.advance(days=32)
    assert customer.status(subscription) == "past_due"
    provider.advance(days=15)
    assert customer.status(subscription) == status
    provider.settle()
    kinds = inbox.kinds()
    assert kinds.count("invoice.payment_failed") == 4
    assert kinds.count("customer.subscription.deleted") == (1 if status == "canceled" else 0)
    (latest, _) = invoices(client, subscription)
    assert (latest.status, latest.attempt_count, latest.next_payment_attempt) == ("open", 4, None)
    if status == "canceled":
        ended = client.v1.subscriptions.retrieve(subscription)
        assert ended.cancellation_details.reason == "payment_failed"


@pytest.mark.parametrize("how", ["api", "portal", "retry"])
@pytest.mark.parametrize("days", [32, 47], ids=["past_due", "unpaid"])
def test_a_debt_is_paid(
    provider: PaymentProvider, client: stripe.StripeClient, customer: Customer, how: str, days: int
) -> None:
    provider.control("policy", after_retries="unpaid")
    subscription = customer.subscribe()
    provider.control("card", customer=customer.id, card=FAILING_LATER_CARD)
    provider.advance(days=days)
    assert customer.status(subscription) == ("past_due" if days == 32 else "unpaid")
    latest = invoices(client, subscription)[0].id
    with pytest.raises(stripe.CardError) as refused:
        client.v1.invoices.pay(latest)
    assert (refused.value.code, refused.value.http_status) == ("card_declined", 402)
    if how == "portal":
        portal = client.v1.billing_portal.sessions.create({"customer": customer.id})
        assert provider.act(portal.url, "card", card=GOOD_CARD).status_code == 303
    else:
        provider.control("card", customer=customer.id, card=GOOD_CARD)
        if how == "api" or days == 47:
            client.v1.invoices.pay(latest)
        else:
            provider.advance(days=4)
    assert customer.status(subscription) == "active"
    assert client.v1.invoices.retrieve(latest).status == "paid"


@pytest.mark.parametrize("mode", ["flexible", "classic"])
def test_the_portal_ends_it_with_its_period_and_renews_it(
    provider: PaymentProvider, client: stripe.StripeClient, customer: Customer, inbox: Inbox, mode: str
) -> None:
    provider.control("policy", billing_mode=mode)
    subscription = customer.subscribe()
    portal = client.v1.billing_portal.sessions.create({"customer": customer.id, "return_url": "http://127.0.0.1:1/"})
    assert subscription in provider.http.get(portal.url).text
    end = client.v1.subscriptions.retrieve(subscription)["items"].data[0].current_period_end

    def ending() -> tuple[bool, int | None, str]:
        found = client.v1.subscriptions.retrieve(subscription)
        return found.cancel_at_period_end, found.cancel_at, found.status

    provider.act(portal.url, "cancel_at_period_end")
    assert ending() == (mode == "classic", end, "active")
    provider.act(portal.url, "renew")
    assert ending() == (False, None, "active")
    provider.act(portal.url, "cancel_at_period_end")
    provider.advance(days=32)
    assert ending() == (mode == "classic", end, "canceled")
    provider.settle()
    assert inbox.events()[-1].type == "customer.subscription.deleted"
    assert inbox.events()[-1].created == end
    assert len(invoices(client, subscription)) == 1


def test_the_api_ends_it(client: stripe.StripeClient, provider: PaymentProvider, customer: Customer) -> None:
    subscription = customer.subscribe()
    later = client.v1.subscriptions.update(subscription, {"cancel_at_period_end": True})
    assert (later.cancel_at_period_end, later.cancel_at) == (True, later["items"].data[0].current_period_end)
    now = client.v1.subscriptions.cancel(subscription)
    assert (now.status, now.ended_at is not None) == ("canceled", True)
    with pytest.raises(stripe.InvalidRequestError) as refused:
        client.v1.subscriptions.cancel(subscription)
    assert (refused.value.http_status, refused.value.code) == (404, "resource_missing")
    assert client.v1.subscriptions.list({"customer": customer.id}).data == []
    assert len(client.v1.subscriptions.list({"customer": customer.id, "status": "all"}).data) == 1


def test_the_portal_ends_it_at_once(client: stripe.StripeClient, provider: PaymentProvider, customer: Customer) -> None:
    subscription = customer.subscribe()
    portal = client.v1.billing_portal.sessions.create({"customer": customer.id})
    assert provider.act(portal.url, "cancel_now").status_code == 303
    assert customer.status(subscription) == "canceled"
    assert provider.act(portal.url, "renew").status_code == 303
    assert customer.status(subscription) == "canceled", "an ended one is beyond renewal"


def test_a_portal_of_an_unknown_customer(client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        client.v1.billing_portal.sessions.create({"customer": "cus_none"})
    assert (refused.value.code, refused.value.param) == ("resource_missing", "customer")


@pytest.mark.parametrize(
    ("behaviour", "status", "kind"),
    [
        ("create_invoice", "past_due", "invoice.payment_failed"),
        ("cancel", "canceled", "customer.subscription.deleted"),
        ("pause", "paused", "customer.subscription.paused"),
    ],
)
def test_a_trial_without_a_card_ends(
    provider: PaymentProvider,
    client: stripe.StripeClient,
    customer: Customer,
    inbox: Inbox,
    behaviour: str,
    status: str,
    kind: str,
) -> None:
    ends: Any = {"end_behavior": {"missing_payment_method": behaviour}}
    trial: Any = {"trial_period_days": 7, "trial_settings": ends}
    session = customer.checkout(subscription_data=trial, payment_method_collection="if_required")
    assert provider.pay(session.url or "", "").status_code == 303
    done = client.v1.checkout.sessions.retrieve(session.id)
    subscription = str(done.subscription)
    assert (done.payment_status, customer.status(subscription)) == ("no_payment_required", "trialing")
    provider.advance(days=8)
    assert customer.status(subscription) == status
    provider.settle()
    assert kind in inbox.kinds()
    if status == "paused":
        with pytest.raises(stripe.CardError):
            client.v1.subscriptions.resume(subscription)
        provider.control("card", customer=customer.id, card=GOOD_CARD)
        assert client.v1.subscriptions.resume(subscription).status == "active"
        provider.settle()
        assert "customer.subscription.resumed" in inbox.kinds()


def test_a_trial_with_a_card_becomes_active(provider: PaymentProvider, customer: Customer) -> None:
    subscription = customer.subscribe(subscription_data={"trial_period_days": 7})
    assert customer.status(subscription) == "trialing"
    provider.advance(days=8)
    assert customer.status(subscription) == "active"


def test_a_coupon_for_everything_and_for_ever(
    provider: PaymentProvider, client: stripe.StripeClient, customer: Customer
) -> None:
    coupon = client.v1.coupons.create({"percent_off": 100, "duration": "forever"})
    given: Any = [{"coupon": coupon.id}]
    session = customer.checkout(discounts=given, payment_method_collection="if_required")
    assert provider.pay(session.url or "", "").status_code == 303
    subscription = str(client.v1.checkout.sessions.retrieve(session.id).subscription)
    provider.advance(days=32)
    assert customer.status(subscription) == "active"
    assert [invoice.amount_due for invoice in invoices(client, subscription)] == [0, 0]
    expanded = client.v1.subscriptions.retrieve(subscription, {"expand": ["discounts"]})
    assert expanded.discounts[0].source.coupon == coupon.id


def test_a_coupon_that_holds_once(provider: PaymentProvider, client: stripe.StripeClient, customer: Customer) -> None:
    coupon = client.v1.coupons.create({"amount_off": 900, "currency": "usd", "duration": "once"})
    subscription = customer.subscribe(discounts=[{"coupon": coupon.id}])
    provider.advance(days=32)
    assert [invoice.amount_due for invoice in invoices(client, subscription)] == [9_900, 9_000]


def test_the_clock_may_be_set(provider: PaymentProvider, client: stripe.StripeClient, customer: Customer) -> None:
    past = provider.control("clock", offset_s=-40 * DAY_S)["now"]
    assert abs(past + 40 * DAY_S - time.time()) < 600
    listed = client.v1.customers.list({"created": {"gte": past}})
    assert customer.id in [each.id for each in listed.data]
    assert client.v1.customers.list({"created": {"lt": past - DAY_S, "gt": past - 2 * DAY_S}}).data == []
