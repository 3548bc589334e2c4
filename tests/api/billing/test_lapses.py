"""A grace period that runs out without an event: at once for the gates, and once for the admin log."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from audit.models import AdminAuditEntry
from billing import entitlements, selectors
from billing.models import Subscription
from billing.tasks import record_lapses
from gateway.lib import clock
from tests.factories.billing import deliver, told
from tests.factories.cast import Cast

pytestmark = pytest.mark.usefixtures("by_provider")
SINCE = datetime(2026, 11, 1, 12, tzinfo=UTC)


@pytest.fixture
def traveller() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(SINCE, tick=False) as moving:
        yield moving


@pytest.fixture
def owing(cast: Cast, traveller: time_machine.Traveller) -> Cast:
    """The first organization's payment failed at SINCE; the other one pays."""
    for number, organization in enumerate((cast.org, cast.other_org), 1):
        Subscription.objects.create(organization_id=organization.pk, customer_id=f"cus_{number}")
        deliver(told("active", customer=f"cus_{number}", key=f"sub_{number}", created=int(SINCE.timestamp()) - 60))
    deliver(told("past_due", previous={"status": "active"}))
    return cast


def events(cast: Cast) -> list[str]:
    rows = AdminAuditEntry.objects.filter(org_id=cast.org.pk).order_by("timestamp", "id")
    return list(rows.values_list("event_type", flat=True))


def test_the_grace_period_runs_out_by_the_clock(owing: Cast, traveller: time_machine.Traveller) -> None:
    plan = selectors.plan_of(owing.org)
    assert (plan.state, plan.status, plan.grace_ends) == ("active", "past_due", SINCE + timedelta(days=7))
    traveller.move_to(SINCE + timedelta(days=7))
    assert entitlements.is_active(owing.org)
    assert record_lapses() == 0
    traveller.shift(1)
    assert not entitlements.is_active(owing.org)
    assert entitlements.is_active(owing.other_org)
    assert events(owing) == ["billing.activated", "billing.updated"]
    assert [record_lapses(), record_lapses()] == [1, 0]
    assert events(owing) == ["billing.activated", "billing.updated", "billing.lapsed"]
    assert AdminAuditEntry.objects.filter(event_type="billing.lapsed").get().actor_label == "System (grace period)"
    assert selectors.plan_of(owing.org).state == "lapsed"


def test_a_payment_after_the_lapse_is_an_activation(owing: Cast, traveller: time_machine.Traveller) -> None:
    traveller.move_to(SINCE + timedelta(days=8))
    record_lapses()
    deliver(told("active", previous={"status": "past_due"}))
    assert events(owing)[-2:] == ["billing.lapsed", "billing.activated"]
    assert entitlements.is_active(owing.org)


def test_a_lapse_that_no_task_recorded_is_told_by_the_next_event(
    owing: Cast, traveller: time_machine.Traveller
) -> None:
    traveller.move_to(SINCE + timedelta(days=8))
    deliver(told("unpaid", previous={"status": "past_due"}))
    assert events(owing)[-1] == "billing.lapsed"
    assert record_lapses() == 0


def test_who_pays_in_time_never_lapses(owing: Cast, traveller: time_machine.Traveller) -> None:
    traveller.move_to(SINCE + timedelta(days=6))
    deliver(told("active", previous={"status": "past_due"}))
    traveller.move_to(SINCE + timedelta(days=30))
    assert record_lapses() == 0
    assert entitlements.is_active(owing.org)


def test_the_words_of_a_plan(owing: Cast, traveller: time_machine.Traveller) -> None:
    end = clock.now() + timedelta(days=30)
    traveller.shift(5)
    deliver(told("active", is_ending=True, end=int(end.timestamp()), previous={"status": "past_due"}))
    plan = selectors.plan_of(owing.org)
    assert (plan.next_date, plan.cancel_at_period_end, plan.grace_ends) == (end, True, None)
    assert (plan.mode, plan.has_customer, plan.pending_checkout) == ("stripe", True, False)
    assert [each.kind for each in selectors.story(owing.org)] == ["customer.subscription.updated"] * 3
    assert [each.facts["snapshot"]["status"] for each in selectors.story(owing.org)] == ["active", "past_due", "active"]


def test_the_plan_of_an_organization_without_a_row(cast: Cast) -> None:
    plan = selectors.plan_of(cast.org)
    assert (plan.state, plan.status, plan.next_date, plan.has_customer) == ("lapsed", "none", None, False)
    assert list(selectors.story(cast.org)) == []
