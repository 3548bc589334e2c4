"""Copies of customers, subscriptions and events."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.core.management import call_command
from djstripe.models import Account, APIKey, Customer, Event, Price, Product, Subscription, SubscriptionItem

from billing.mirror import copies
from tests.stripe_mode import provider as objects
from tests.stripe_mode.provider import Provider

pytestmark = pytest.mark.django_db


def test_a_customer_is_copied_with_its_subscriptions_and_no_other_is(provider: Provider) -> None:
    copies.copy_customer("cus_1")
    (customer,) = Customer.objects.all()
    assert (customer.id, customer.email, customer.name) == ("cus_1", "cus_1@example.com", "Owner of cus_1")
    (subscription,) = Subscription.objects.all()
    assert (subscription.id, subscription.status, subscription.customer) == ("sub_1", "active", customer)
    assert SubscriptionItem.objects.get().price == Price.objects.get(product=Product.objects.get(id="prod_1"))


def test_a_copy_follows_its_original(provider: Provider) -> None:
    copies.copy_customer("cus_1")
    provider.add(objects.customer("cus_1", email="new@example.com"))
    provider.add(objects.subscription("sub_1", "cus_1", "past_due"))
    provider.add(objects.subscription("sub_1b", "cus_1", "active"))
    copies.copy_customer("cus_1")
    assert Customer.objects.get().email == "new@example.com"
    assert {each.id: each.status for each in Subscription.objects.all()} == {"sub_1": "past_due", "sub_1b": "active"}


def test_the_copy_of_a_deleted_customer_keeps_no_personal_data(provider: Provider) -> None:
    copies.copy_customer("cus_1")
    provider.answers["/v1/customers/cus_1"] = {"id": "cus_1", "object": "customer", "deleted": True}
    copies.copy_customer("cus_1")
    customer = Customer.objects.get()
    assert (customer.deleted, customer.email, customer.name) == (True, "", None)
    assert "example.com" not in str(customer.stripe_data)


def test_an_event_is_copied(provider: Provider) -> None:
    copies.copy_event("evt_1")
    event = Event.objects.get()
    assert (event.id, event.type, event.request_id) == ("evt_1", "customer.subscription.updated", "req_1")
    assert event.data["object"]["id"] == "sub_1"


def test_all_requests_are_reads_with_the_key_and_the_version(provider: Provider) -> None:
    copies.copy_customer("cus_1")
    copies.copy_event("evt_1")
    assert {each.method for each in provider.asked} == {"GET"}
    assert {each.headers["authorization"] for each in provider.asked} == {f"Bearer {settings.STRIPE_SECRET_KEY}"}
    assert provider.paths()[:2] == ["/v1/customers/cus_1", "/v1/subscriptions"]
    # The library would ask for the account of the key, once for each object.
    assert "/v1/account" not in provider.paths()
    assert not Account.objects.exists()
    assert not APIKey.objects.exists()


def test_an_operator_copies_everything_with_the_librarys_command(provider: Provider) -> None:
    call_command("djstripe_sync_models", "Customer", "Subscription", "Event", fail_on_error=True)
    assert {each.id for each in Customer.objects.all()} == {"cus_1", "cus_2"}
    assert {each.id for each in Subscription.objects.all()} == {"sub_1", "sub_2"}
    assert {each.id for each in Event.objects.all()} == {"evt_1", "evt_2"}
    assert {each.method for each in provider.asked} == {"GET"}
    assert not [path for path in provider.paths() if "account" in path or "sources" in path]
