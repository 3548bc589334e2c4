"""Admin pages of the copies: to read, without a request to the provider."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.urls import reverse
from djstripe.models import Customer, Event, Subscription

from billing.mirror import copies
from tests.factories.cast import Cast
from tests.stripe_mode.provider import Provider

pytestmark = pytest.mark.django_db
SHOWN = {"customer": Customer, "subscription": Subscription, "event": Event}


@pytest.fixture
def copied(customers: Cast, provider: Provider) -> Cast:
    """Both customers with their subscriptions, and an event of each; a superuser among the people."""
    for name in ("1", "2"):
        copies.copy_customer(f"cus_{name}")
        copies.copy_event(f"evt_{name}")
    provider.asked.clear()
    person = customers.user("stranger")
    person.is_staff = person.is_superuser = True
    person.save()
    return customers


def test_three_kinds_of_copies_are_shown() -> None:
    shown = {model._meta.model_name for model in admin.site._registry if model._meta.app_label == "djstripe"}
    assert shown == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_staff_read_lists_and_rows(copied: Cast, provider: Provider, name: str) -> None:
    browser = copied.client("stranger")
    page = browser.get(reverse(f"admin:djstripe_{name}_changelist"))
    first, second = SHOWN[name].objects.order_by("id")
    assert page.status_code == 200
    assert first.id in page.text
    assert second.id in page.text
    found = browser.get(reverse(f"admin:djstripe_{name}_changelist"), {"q": first.id})
    assert (first.id in found.text, second.id in found.text) == (True, False)
    row = browser.get(reverse(f"admin:djstripe_{name}_change", args=[first.pk]))
    assert row.status_code == 200
    assert first.id in row.text
    assert provider.asked == []


def test_a_customer_is_shown_with_its_organization(copied: Cast) -> None:
    customer = Customer.objects.get(id="cus_2")
    page = copied.client("stranger").get(reverse("admin:djstripe_customer_change", args=[customer.pk]))
    assert copied.other_org.name in page.text


@pytest.mark.parametrize("name", SHOWN)
def test_nobody_changes_a_copy(copied: Cast, provider: Provider, name: str) -> None:
    browser, row = copied.client("stranger"), SHOWN[name].objects.earliest("pk")
    before = list(SHOWN[name].objects.order_by("pk").values())
    for action in ("delete_selected", "_resync_instances", "_sync_all_instances"):
        browser.post(reverse(f"admin:djstripe_{name}_changelist"), {"action": action, "_selected_action": row.pk})
    addresses = [
        reverse(f"admin:djstripe_{name}_change", args=[row.pk]),
        reverse(f"admin:djstripe_{name}_delete", args=[row.pk]),
        reverse(f"admin:djstripe_{name}_add"),
    ]
    assert [browser.post(address, {"id": "x"}).status_code for address in addresses] == [403, 403, 403]
    assert list(SHOWN[name].objects.order_by("pk").values()) == before
    assert provider.asked == []


@pytest.mark.parametrize("name", SHOWN)
def test_members_see_no_copy(copied: Cast, name: str) -> None:
    for who in ("owner", "nobody"):
        answer = copied.client(who).get(reverse(f"admin:djstripe_{name}_changelist"))
        assert answer.status_code in {302, 403}
        assert "cus_1" not in answer.text
