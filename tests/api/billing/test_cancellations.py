"""A deleted organization is charged no more, however long the provider is away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.conf import LazySettings

from billing import tasks
from billing.cancellations import cancel_due
from billing.models import ProviderCancellation, ProviderEvent, Subscription
from orgs.services.organizations import delete_organization
from tests.factories.billing import deliver, subscription, told
from tests.factories.cast import Cast
from tests.factories.races import at_once
from tests.fakes.small_stripe import SmallStripe


@pytest.fixture
def traveller() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(datetime(2026, 11, 23, 12, tzinfo=UTC), tick=False) as moving:
        yield moving


@pytest.fixture
def charged(cast: Cast, stripe_api: SmallStripe) -> SmallStripe:
    """Both organizations have a customer with a subscription and an open checkout session."""
    for number, organization in enumerate((cast.org, cast.other_org), 1):
        customer = f"cus_{number}"
        Subscription.objects.create(organization_id=organization.pk, customer_id=customer, status="active")
        stripe_api.customers[customer] = {"id": customer}
        stripe_api.subscriptions[f"sub_{number}"] = subscription("active", key=f"sub_{number}", customer=customer)
        stripe_api.sessions[f"cs_{number}"] = {"id": f"cs_{number}", "customer": customer, "status": "open", "url": "x"}
    return stripe_api


def delete(cast: Cast) -> None:
    delete_organization(actor=cast.user("owner"), organization=cast.org)


def run() -> int:
    return cancel_due(lambda: True)


def test_subscriptions_end_and_open_pages_close(cast: Cast, charged: SmallStripe) -> None:
    charged.subscriptions["sub_0"] = subscription("past_due", key="sub_0")
    org_id = cast.org.pk
    delete(cast)
    waiting = ProviderCancellation.objects.get()
    assert (waiting.customer_id, waiting.organization_id, waiting.done_at) == ("cus_1", org_id, None)
    assert charged.asked == [], "nothing waits for the provider while the organization is deleted"
    assert run() == 1
    assert {key: each["status"] for key, each in charged.subscriptions.items()} == {
        "sub_0": "canceled",
        "sub_1": "canceled",
        "sub_2": "active",
    }
    assert [each["status"] for each in charged.sessions.values()] == ["expired", "open"]
    assert ProviderCancellation.objects.get().done_at
    assert run() == 0


def test_an_organization_without_a_customer_asks_nothing(cast: Cast, stripe_api: SmallStripe) -> None:
    Subscription.objects.create(organization_id=cast.org.pk, status="active")
    delete(cast)
    assert not ProviderCancellation.objects.exists()
    assert run() == 0


def test_a_deletion_that_fails_cancels_nothing(cast: Cast, charged: SmallStripe) -> None:
    with pytest.raises(Exception, match="role"):
        delete_organization(actor=cast.user("admin"), organization=cast.org)
    assert not ProviderCancellation.objects.exists()


def test_the_request_outlives_days_of_absence(
    cast: Cast, charged: SmallStripe, traveller: time_machine.Traveller
) -> None:
    delete(cast)
    charged.respond = lambda asked: (503, {}, b"")
    pauses = []
    for _ in range(14):
        began = ProviderCancellation.objects.get().next_attempt_at
        traveller.move_to(began - timedelta(seconds=1))
        asked = len(charged.asked)
        assert run() == 0
        assert len(charged.asked) == asked, "not before it is due"
        traveller.move_to(began)
        assert run() == 0
        row = ProviderCancellation.objects.get()
        pauses.append(row.next_attempt_at - began)
    assert pauses[:4] == [timedelta(minutes=minutes) for minutes in (1, 2, 4, 8)]
    assert pauses[-1] == timedelta(hours=6)
    assert (row.attempts, row.last_error) == (14, "BillingProviderError")
    charged.respond = lambda asked: None
    traveller.shift(timedelta(hours=6))
    assert run() == 1
    assert charged.subscriptions["sub_1"]["status"] == "canceled"
    assert ProviderCancellation.objects.get().last_error == ""


GONE: dict[str, Callable[[SmallStripe], Any]] = {
    "the customer": lambda stripe: stripe.customers.clear(),
    "the subscription": lambda stripe: stripe.subscriptions.clear(),
    "the session": lambda stripe: stripe.sessions["cs_1"].update(status="complete"),
}


@pytest.mark.parametrize("name", GONE)
def test_what_the_provider_has_ended_itself_is_done(cast: Cast, charged: SmallStripe, name: str) -> None:
    delete(cast)
    GONE[name](charged)
    assert run() == 1


def test_a_subscription_that_ends_between_is_done(cast: Cast, charged: SmallStripe) -> None:
    delete(cast)

    def respond(asked: Any) -> None:
        if asked.method == "DELETE":
            charged.subscriptions["sub_1"]["status"] = "canceled"

    charged.respond = respond
    assert run() == 1


def test_a_subscription_that_begins_afterwards_ends_too(cast: Cast, charged: SmallStripe) -> None:
    """The page was open, and the person paid while the organization was deleted."""
    delete(cast)
    assert run() == 1
    charged.subscriptions["sub_9"] = subscription("active", key="sub_9")
    assert deliver(told("canceled", key="sub_1")).status_code == 200
    assert run() == 0
    assert deliver(told("active", key="sub_9")).status_code == 200
    assert run() == 1
    assert charged.subscriptions["sub_9"]["status"] == "canceled"


def test_a_subscription_that_begins_during_the_last_look_ends_too(
    committed_cast: Cast, stripe_api: SmallStripe
) -> None:
    """The provider's answer was on its way when the person paid."""
    stripe_api.customers["cus_1"] = {"id": "cus_1"}
    ProviderCancellation.objects.create(customer_id="cus_1", organization_id=committed_cast.org.pk)

    def respond(asked: Any) -> Any:
        if asked.path != "/v1/subscriptions" or "sub_9" in stripe_api.subscriptions:
            return None
        stripe_api.subscriptions["sub_9"] = subscription("active", key="sub_9")
        (answer,) = at_once(lambda: deliver(told("active", key="sub_9")))
        assert not isinstance(answer, Exception)
        assert answer.status_code == 200
        return 200, {}, b'{"data": []}'

    stripe_api.respond = respond
    assert run() == 1
    assert stripe_api.subscriptions["sub_9"]["status"] == "canceled"
    assert ProviderCancellation.objects.get().done_at


def test_subscriptions_of_an_earlier_customer_end_too(cast: Cast, charged: SmallStripe) -> None:
    """The provider said for a moment that it has no such customer, and the organization got another one."""
    assert deliver(told("canceled", key="sub_8", customer="cus_1")).status_code == 200
    Subscription.objects.filter(organization_id=cast.org.pk).update(customer_id="cus_3")
    charged.customers["cus_3"] = {"id": "cus_3"}
    assert ProviderEvent.objects.get().organization_id == cast.org.pk
    delete(cast)
    assert run() == 2
    assert {key: each["status"] for key, each in charged.subscriptions.items()} == {
        "sub_1": "canceled",
        "sub_2": "active",
    }


@pytest.mark.parametrize("mode", ["disabled", "manual"])
def test_a_mode_that_was_changed_loses_no_request(
    cast: Cast, charged: SmallStripe, settings: LazySettings, mode: str
) -> None:
    settings.BILLING_MODE = mode
    delete(cast)
    settings.BILLING_MODE = "stripe"
    assert tasks.cancel_subscriptions() == 1


def test_two_workers_do_it_once(committed_cast: Cast, stripe_api: SmallStripe) -> None:
    for number in range(4):
        customer = f"cus_{number}"
        stripe_api.customers[customer] = {"id": customer}
        stripe_api.subscriptions[f"sub_{number}"] = subscription("active", key=f"sub_{number}", customer=customer)
        ProviderCancellation.objects.create(customer_id=customer, organization_id=committed_cast.org.pk)
    done = at_once(run, run, run)
    assert sum(each for each in done if isinstance(each, int)) == 4
    assert len([each for each in stripe_api.asked if each.method == "DELETE"]) == 4


def test_a_worker_stops_when_its_time_is_up(cast: Cast, charged: SmallStripe) -> None:
    delete(cast)
    assert cancel_due(lambda: False) == 0
    assert charged.asked == []
