"""Events of the provider in parallel, in any order and several times."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connections
from django.test import Client as Browser
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from audit.models import AdminAuditEntry
from billing.models import ProviderEvent, Subscription
from tests.factories.billing import (
    PATH,
    SETTINGS,
    checkout_session,
    deliver,
    event,
    invoice,
    signature,
    subscription,
    told,
)
from tests.factories.cast import Cast, make_cast
from tests.factories.races import at_once

DAY = 86_400


def life(
    organization: str, customer: str = "cus_1", key: str = "sub_1", began: int = 1_700_000_000
) -> list[dict[str, Any]]:
    """Begun, renewed, failed, recovered, set to end and ended: an event of each kind, some in one second."""

    def now(status: str, at: int, previous: dict[str, Any], **options: Any) -> dict[str, Any]:
        return told(status, customer=customer, key=key, created=began + at, previous=previous, **options)

    def bill(kind: str, number: int, at: int) -> dict[str, Any]:
        return event(kind, invoice(f"in_{key}_{number}", subscription=key, customer=customer), created=began + at)

    def whole(kind: str, status: str, at: int, **options: Any) -> dict[str, Any]:
        return event(kind, subscription(status, customer=customer, key=key, **options), created=began + at)

    session = checkout_session(organization, key=f"cs_{key}", customer=customer)
    return [
        whole("customer.subscription.created", "incomplete", 0),
        bill("invoice.paid", 1, 0),
        now("active", 0, {"status": "incomplete"}),
        event("checkout.session.completed", session, created=began),
        bill("invoice.payment_failed", 2, 30 * DAY),
        now("past_due", 30 * DAY, {"status": "active"}),
        bill("invoice.payment_failed", 2, 33 * DAY),
        bill("invoice.paid", 2, 34 * DAY),
        now("active", 34 * DAY, {"status": "past_due"}),
        now("active", 40 * DAY, {"cancel_at_period_end": False}, is_ending=True),
        now("active", 40 * DAY, {"cancel_at_period_end": True}),
        now("active", 41 * DAY, {"cancel_at_period_end": False}, is_ending=True),
        whole("customer.subscription.deleted", "canceled", 60 * DAY, is_ending=True),
    ]


def ends(row: Subscription) -> tuple[object, ...]:
    """Everything that the events decide."""
    return (
        row.status,
        row.past_due_since,
        row.period_end,
        row.cancel_at_period_end,
        row.subscription_id,
        row.customer_id,
        row.checkout_session_id,
    )


class AnyOrder(TestCase):
    """Rolled back after each example."""

    def setUp(self) -> None:
        self.cast: Cast = make_cast()

    @hypothesis_settings(max_examples=25)
    @given(data=st.data())
    def test_any_order_duplication_and_delay_end_in_the_same_row(self, data: st.DataObject) -> None:
        """Also when the events of the first months are known only at the very end."""
        with self.settings(**SETTINGS):
            events = life(str(self.cast.org.id))[: data.draw(st.integers(1, 13))]
            order = data.draw(st.permutations(events + data.draw(st.lists(st.sampled_from(events), max_size=5))))
            found = []
            for sequence in (events, order):
                ProviderEvent.objects.all().delete()
                Subscription.objects.all().delete()
                Subscription.objects.create(organization_id=self.cast.org.pk, customer_id="cus_1")
                for each in sequence:
                    assert deliver(each).status_code == 200
                assert ProviderEvent.objects.count() == len(events)
                found.append(ends(Subscription.objects.get()))
            assert found[0] == found[1]


def deliver_in_threads(events: list[dict[str, Any]], threads: int) -> list[int]:
    """The statuses; each thread has connections of its own."""

    def one(found: dict[str, Any]) -> int:
        try:
            body = json.dumps(found).encode()
            headers = {"Stripe-Signature": signature(body)}
            browser = Browser(raise_request_exception=False)
            return browser.generic("POST", PATH, body, content_type="application/json", headers=headers).status_code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(one, events))


@pytest.mark.usefixtures("by_provider")
def test_500_events_at_once(committed_cast: Cast) -> None:
    """Of two organizations and a customer whose organization is known only by one of the events; every other one twice.

    Events that did not come through at the first attempt are sent again, as the provider does.
    """
    Subscription.objects.create(organization_id=committed_cast.org.pk, customer_id="cus_1")
    events: list[dict[str, Any]] = []
    for number in range(21):
        began = 1_600_000_000 + number * 100 * DAY
        is_first = number % 2 == 0
        organization, customer = (committed_cast.org, "cus_1") if is_first else (committed_cast.other_org, "cus_2")
        events += life(str(organization.id), customer, f"sub_{number}", began)
    # The last subscription of the first organization goes on.
    events = [each for each in events if each["data"]["object"]["id"] != "sub_20" or "deleted" not in each["type"]]
    mixed = events + events[::2] + events[:100]
    random.Random(7).shuffle(mixed)
    assert len(mixed) >= 500
    left = mixed
    for _ in range(10):
        statuses = deliver_in_threads(left, 16)
        left = [each for each, status in zip(left, statuses, strict=True) if status != 200]
        assert set(statuses) <= {200, 503}
        if not left:
            break
    assert not left
    assert ProviderEvent.objects.count() == len(events)
    first, second = (
        Subscription.objects.get(organization=each) for each in (committed_cast.org, committed_cast.other_org)
    )
    assert (first.status, first.subscription_id, first.cancel_at_period_end) == ("active", "sub_20", True)
    assert (second.status, second.customer_id) == ("canceled", "cus_2")
    assert set(ProviderEvent.objects.values_list("organization", flat=True)) == {
        committed_cast.org.pk,
        committed_cast.other_org.pk,
    }


@pytest.mark.usefixtures("by_provider")
def test_the_same_event_at_once_is_one_event(committed_cast: Cast) -> None:
    Subscription.objects.create(organization_id=committed_cast.org.pk, customer_id="cus_1")
    body = told("active")
    statuses = deliver_in_threads([body] * 8, 8)
    assert set(statuses) == {200}
    assert ProviderEvent.objects.count() == AdminAuditEntry.objects.count() == 1


@pytest.mark.usefixtures("by_provider")
def test_an_event_and_the_one_that_says_whose_it_is(committed_cast: Cast) -> None:
    """Neither misses the other, however they meet."""
    for number in range(6):
        customer, organization = f"cus_{number}", committed_cast.org
        Subscription.objects.all().delete()
        ProviderEvent.objects.all().delete()
        state = told("active", customer=customer)
        whose = event("checkout.session.completed", checkout_session(str(organization.id), customer=customer))
        answers = at_once(lambda found=state: deliver(found), lambda found=whose: deliver(found))  # type: ignore[misc]
        assert [getattr(answer, "status_code", answer) for answer in answers] == [200, 200]
        assert Subscription.objects.get().status == "active"


@pytest.mark.usefixtures("by_provider")
def test_an_event_while_its_organization_is_deleted(committed_cast: Cast, settings: LazySettings) -> None:
    from orgs.services.organizations import delete_organization

    Subscription.objects.create(organization_id=committed_cast.org.pk, customer_id="cus_1")
    owner = committed_cast.user("owner")
    results = at_once(
        lambda: deliver(told("active")).status_code,
        lambda: delete_organization(actor=owner, organization=committed_cast.org),
    )
    assert results == [200, None]
    assert not Subscription.objects.filter(customer_id="cus_1").exists()
    assert ProviderEvent.objects.get().organization is None
