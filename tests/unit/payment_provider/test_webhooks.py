"""The stand-in's webhooks: signatures that the SDK accepts, retries, and every disorder that a test may order."""

from __future__ import annotations

from collections import Counter

import pytest
import stripe

from tests.fakes.payment_provider.running import PaymentProvider
from tests.unit.payment_provider.conftest import SECRETS, Customer, Inbox

BEGINNING = [
    "customer.created",
    "invoice.created",
    "customer.subscription.created",
    "invoice.finalized",
    "invoice.paid",
    "invoice.payment_succeeded",
    "checkout.session.completed",
]


def test_events_come_in_the_order_of_their_making(
    provider: PaymentProvider, client: stripe.StripeClient, customer: Customer, inbox: Inbox
) -> None:
    subscription = customer.subscribe()
    provider.settle()
    assert inbox.kinds() == BEGINNING
    created = inbox.events()[2]
    assert (created.data.object.id, created.data.object.status) == (subscription, "active")
    assert (created.api_version, created.livemode, created.object) == ("2026-08-26.dahlia", False, "event")
    listed = client.v1.events.list({"limit": 7}).data
    assert [event.id for event in listed][::-1] == [event.id for event in inbox.events()]
    assert {event.pending_webhooks for event in listed} == {0}
    (only,) = client.v1.events.list({"types": ["customer.subscription.created"], "limit": 1}).data
    assert only.id == created.id


def test_a_subscription_may_begin_incomplete(provider: PaymentProvider, customer: Customer, inbox: Inbox) -> None:
    provider.control("policy", begins="incomplete")
    customer.subscribe()
    provider.settle()
    states = {event.type: event.data.object.status for event in inbox.events() if "subscription" in event.type}
    assert states == {"customer.subscription.created": "incomplete", "customer.subscription.updated": "active"}


def test_an_event_tells_its_request(client: stripe.StripeClient, provider: PaymentProvider, inbox: Inbox) -> None:
    client.v1.customers.create({"email": "cause@example.com"}, {"idempotency_key": "cause-1"})
    provider.settle()
    (event,) = inbox.events()
    assert event["request"].idempotency_key == "cause-1"
    assert event["request"].id.startswith("req_")


def test_signatures(client: stripe.StripeClient, provider: PaymentProvider, inbox: Inbox) -> None:
    client.v1.customers.create({"email": "signed@example.com"})
    provider.settle()
    ((_, signature, body),) = inbox.got
    for damaged, header, secret in (
        (body, signature, SECRETS[1]),
        (body + b" ", signature, SECRETS[0]),
        (body, signature.replace("v1=", "v2="), SECRETS[0]),
    ):
        with pytest.raises(stripe.SignatureVerificationError):
            stripe.Webhook.construct_event(damaged, header, secret)


def test_two_endpoints_have_secrets_and_versions_of_their_own(
    provider: PaymentProvider, customer: Customer, inbox: Inbox
) -> None:
    second = {
        "url": f"{inbox.url}/two",
        "secrets": [SECRETS[1]],
        "kinds": ["customer.subscription.created"],
        "api_version": "2024-06-20",
    }
    provider.control("endpoints", endpoints=[{"url": f"{inbox.url}/one", "secrets": [SECRETS[0]]}, second])
    customer.subscribe()
    provider.settle()
    (event,) = inbox.events("/two", SECRETS[1])
    assert (event.type, event.api_version) == ("customer.subscription.created", "2024-06-20")
    assert "current_period_end" in event.data.object.to_dict()
    twin = next(each for each in inbox.events() if each.id == event.id)
    assert "current_period_end" not in twin.data.object.to_dict()


def test_a_rolled_secret_signs_beside_the_old_one(
    client: stripe.StripeClient, provider: PaymentProvider, inbox: Inbox
) -> None:
    provider.control("endpoints", endpoints=[{"url": f"{inbox.url}/one", "secrets": list(SECRETS)}])
    client.v1.customers.create({"email": "rolled@example.com"})
    provider.settle()
    assert len(inbox.events(secret=SECRETS[0])) == len(inbox.events(secret=SECRETS[1])) == 1


def test_a_failed_delivery_is_tried_again(client: stripe.StripeClient, provider: PaymentProvider, inbox: Inbox) -> None:
    inbox.statuses = [500, 307]
    client.v1.customers.create({"email": "again@example.com"})
    attempts = provider.settle()["deliveries"][-3:]
    assert [(each["attempt"], each["status"]) for each in attempts] == [(1, 500), (2, 307), (3, 200)]
    assert len({event.id for event in inbox.events()}) == 1
    assert len(inbox.got) == 3


def test_retries_end(client: stripe.StripeClient, provider: PaymentProvider, inbox: Inbox) -> None:
    provider.control("endpoints", endpoints=[{"url": "http://127.0.0.1:1/", "secrets": [SECRETS[0]]}])
    client.v1.customers.create({"email": "gone@example.com"})
    attempts = provider.settle()["deliveries"][-4:]
    assert [(each["attempt"], each["error"]) for each in attempts] == [(n, "ConnectError") for n in (1, 2, 3, 4)]


@pytest.mark.parametrize("order", ["created", "reversed", "shuffled"])
def test_events_are_held_and_released(provider: PaymentProvider, customer: Customer, inbox: Inbox, order: str) -> None:
    provider.settle()
    inbox.got.clear()
    provider.control("delivery", hold=True, seed=7)
    customer.subscribe()
    assert len(provider.settle()["held"]) == 6
    assert inbox.got == []
    provider.control("release", order=order)
    provider.settle()
    kinds = inbox.kinds()
    assert (kinds == BEGINNING[1:]) is (order == "created")
    assert (kinds == BEGINNING[:0:-1]) is (order == "reversed")
    assert Counter(kinds) == Counter(BEGINNING[1:])


def test_each_second_event_is_lost(
    client: stripe.StripeClient, provider: PaymentProvider, customer: Customer, inbox: Inbox
) -> None:
    provider.settle()
    inbox.got.clear()
    provider.control("delivery", drop_every=2)
    customer.subscribe()
    lost = provider.settle()["lost"][-3:]
    assert inbox.kinds() == BEGINNING[1::2]
    assert [client.v1.events.retrieve(id_).type for id_ in lost] == BEGINNING[2::2]


def test_each_event_comes_twice(client: stripe.StripeClient, provider: PaymentProvider, inbox: Inbox) -> None:
    provider.control("delivery", copies=2, parallel=4)
    client.v1.customers.create({"email": "twice@example.com"})
    provider.settle()
    one, other = inbox.events()
    assert one.id == other.id


def test_events_are_sent_once_more(provider: PaymentProvider, client: stripe.StripeClient, inbox: Inbox) -> None:
    client.v1.customers.create({"email": "more@example.com"})
    provider.settle()
    (event,) = inbox.events()
    provider.control("resend", events=[event.id])
    provider.settle()
    assert [each.id for each in inbox.events()] == [event.id] * 2
    inbox.got.clear()
    provider.control("resend", events=[event.id], signed_ago_s=400)
    provider.control("resend", events=[event.id], secrets=["whsec_forged"])
    provider.settle()
    for _, signature, body in inbox.got:
        with pytest.raises(stripe.SignatureVerificationError):
            stripe.Webhook.construct_event(body, signature, SECRETS[0])


def test_events_are_late(provider: PaymentProvider, client: stripe.StripeClient, inbox: Inbox) -> None:
    provider.control("delivery", delay_s=0.05)
    client.v1.customers.create({"email": "late@example.com"})
    provider.settle()
    assert inbox.kinds() == ["customer.created"]
