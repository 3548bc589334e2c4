"""Comparison with the provider: differences are told, and only its objects mend them."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from io import StringIO

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from audit.models import AdminAuditEntry
from billing import entitlements, reconciliation, tasks
from billing.models import ProviderEvent, Subscription
from gateway.lib import clock
from orgs.models import Organization
from tests.api.billing.test_webhook_at_once import life
from tests.factories.billing import deliver, subscription, told
from tests.factories.cast import Cast
from tests.factories.races import at_once
from tests.fakes.small_stripe import Asked, SmallStripe


@pytest.fixture
def both(cast: Cast, stripe_api: SmallStripe) -> SmallStripe:
    """Two organizations with a customer each, whose subscriptions are active at the provider."""
    for number, organization in enumerate((cast.org, cast.other_org), 1):
        customer = f"cus_{number}"
        Subscription.objects.create(organization_id=organization.pk, customer_id=customer)
        stripe_api.customers[customer] = {"id": customer}
        stripe_api.subscriptions[f"sub_{number}"] = subscription("active", key=f"sub_{number}", customer=customer)
    return stripe_api


def run(*options: str) -> tuple[int, list[str]]:
    """Exit code and printed lines."""
    out = StringIO()
    try:
        call_command("billing_reconcile", *options, stdout=out)
    except CommandError as refusal:
        return refusal.returncode, out.getvalue().splitlines()
    return 0, out.getvalue().splitlines()


def status_of(organization: Organization) -> str:
    return Subscription.objects.get(organization_id=organization.pk).status


def test_lost_events_are_mended_and_told(cast: Cast, both: SmallStripe) -> None:
    code, lines = run()
    assert code == 0
    assert len(lines) == 3
    assert lines[0].startswith(f"{cast.org.id} sub_1: ours none, the provider's active 19")
    assert lines[0].endswith(": mended")
    assert lines[2] == "2 compared, 2 differences, 0 left."
    assert entitlements.is_active(cast.org)
    assert entitlements.is_active(cast.other_org)
    rows = AdminAuditEntry.objects.values_list("event_type", "actor_label")
    assert set(rows) == {("billing.activated", "System (billing_reconcile)")}
    assert set(ProviderEvent.objects.values_list("source", flat=True)) == {"reconciliation"}
    assert run() == (0, ["2 compared, 0 differences, 0 left."])
    assert ProviderEvent.objects.count() == 2


def test_a_dry_run_changes_nothing(cast: Cast, both: SmallStripe) -> None:
    code, lines = run("--dry-run")
    assert code == 1
    assert [line.rpartition(": ")[2] for line in lines[:2]] == ["left as it is"] * 2
    assert lines[2] == "2 compared, 2 differences, 2 left."
    assert not ProviderEvent.objects.exists()
    assert not AdminAuditEntry.objects.exists()
    assert set(Subscription.objects.values_list("status", "reconciled_at")) == {("none", None)}
    run()
    assert run("--dry-run")[0] == 0


def test_what_is_equal_costs_one_question_each(cast: Cast, both: SmallStripe) -> None:
    run()
    both.asked.clear()
    run()
    assert [(each.method, each.path, each.fields["status"]) for each in both.asked] == [
        ("GET", "/v1/subscriptions", "all")
    ] * 2


@pytest.mark.parametrize(
    ("ours", "theirs", "is_active"),
    [
        ("active", "canceled", False),
        ("past_due", "active", True),
        ("canceled", "canceled", False),
        ("active", "unpaid", False),
    ],
)
def test_the_providers_word_counts(cast: Cast, both: SmallStripe, ours: str, theirs: str, is_active: bool) -> None:
    """Also in the second in which the last event was made."""
    deliver(told(ours))
    both.subscriptions["sub_1"] = subscription(theirs)
    run()
    assert (status_of(cast.org), entitlements.is_active(cast.org)) == (theirs, is_active)


def test_an_event_that_comes_after_the_reading_counts(cast: Cast, both: SmallStripe) -> None:
    run()
    deliver(told("unpaid", created=int(clock.now().timestamp()) + 5))
    assert status_of(cast.org) == "unpaid"


def test_half_of_the_events_are_lost(cast: Cast, both: SmallStripe) -> None:
    """Whichever half arrives, in whatever order: the reading ends in the provider's state."""
    dice = random.Random(13)
    for length in range(1, 14):
        ProviderEvent.objects.all().delete()
        events = life(str(cast.org.id))[:length]
        last = [each for each in events if each["data"]["object"]["object"] == "subscription"][-1]["data"]["object"]
        both.subscriptions["sub_1"] = last
        kept = dice.sample(events, k=length // 2)
        for each in kept:
            deliver(each)
        run()
        row = Subscription.objects.get(organization_id=cast.org.pk)
        assert (row.status, row.cancel_at_period_end or row.status == "canceled") == (
            last["status"],
            last["cancel_at_period_end"] or last["status"] == "canceled",
        )


def test_a_subscription_that_the_provider_does_not_know_is_for_a_person(cast: Cast, both: SmallStripe) -> None:
    deliver(told("active"))
    del both.subscriptions["sub_1"]
    code, lines = run()
    assert code == 1
    assert lines[0].endswith("the provider's none: left as it is")
    assert entitlements.is_active(cast.org)


def test_a_subscription_that_lives_again_is_for_a_person(cast: Cast, both: SmallStripe) -> None:
    """The provider ends one for good, and its word of the end stays."""
    deliver(told("canceled"))
    for _ in range(2):
        code, lines = run()
        assert code == 1
        assert lines[0].endswith(": left as it is")
    assert status_of(cast.org) == "canceled"
    assert not ProviderEvent.objects.filter(source="reconciliation", organization=cast.org).exists()


def test_two_that_are_paid_are_for_a_person(cast: Cast, both: SmallStripe) -> None:
    both.subscriptions["sub_9"] = subscription("trialing", key="sub_9")
    code, lines = run()
    assert code == 1
    (told_twice,) = [line for line in lines if "sub_1, sub_9" in line]
    assert told_twice.endswith("ours one subscription, the provider's 2 subscriptions: left as it is")
    assert Subscription.objects.get(organization_id=cast.org.pk).subscription_id == "sub_1"


def test_a_subscription_that_ended_before_it_was_known_is_no_difference(cast: Cast, both: SmallStripe) -> None:
    both.subscriptions["sub_0"] = subscription("incomplete_expired", key="sub_0")
    run()
    assert run("--dry-run")[0] == 0


def test_many_subscriptions_are_read_page_by_page(cast: Cast, both: SmallStripe) -> None:
    for number in range(250):
        both.subscriptions[f"sub_old_{number}"] = subscription("canceled", key=f"sub_old_{number}")
    assert run()[0] == 0
    assert both.count("GET", "/v1/subscriptions") == 4
    assert entitlements.is_active(cast.org)


def test_a_list_without_end(cast: Cast, both: SmallStripe) -> None:
    page = json.dumps({"data": [subscription("active")], "has_more": True}).encode()
    both.respond = lambda asked: (200, {}, page)
    assert run()[0] == 2


GARBAGE: dict[str, tuple[int, dict[str, str], bytes]] = {
    "away": (503, {}, b""),
    "a page": (200, {}, b"<html>"),
    "no list": (200, {}, b'{"data": {}}'),
    "no objects": (200, {}, b'{"data": [7]}'),
    "an unknown state": (200, {}, json.dumps({"data": [subscription("suspended")]}).encode()),
    "of another customer": (200, {}, json.dumps({"data": [subscription("active", customer="cus_2")]}).encode()),
    "no such customer": (400, {}, b'{"error": {"type": "invalid_request_error", "code": "resource_missing"}}'),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_an_answer_that_cannot_be_used_changes_nothing(cast: Cast, both: SmallStripe, name: str) -> None:
    def respond(asked: Asked) -> tuple[int, dict[str, str], bytes] | None:
        return GARBAGE[name] if asked.fields["customer"] == "cus_1" else None

    both.respond = respond
    code, lines = run()
    assert code == 2
    assert lines[-1] == "1 compared, 1 differences, 0 left."
    assert (status_of(cast.org), status_of(cast.other_org)) == ("none", "active")


def test_a_provider_that_is_away_is_not_asked_for_everybody(cast: Cast, stripe_api: SmallStripe) -> None:
    for number in range(9):
        organization = Organization.objects.create(name=f"Org {number}")
        Subscription.objects.create(organization=organization, customer_id=f"cus_{number}")
    stripe_api.respond = lambda asked: (418, {}, b"")
    assert run()[0] == 2
    assert len(stripe_api.asked) == 5


def test_others_write_during_a_long_run(committed_cast: Cast, stripe_api: SmallStripe) -> None:
    """More customers than one reading of rows holds."""
    rows = [Organization(name=f"Org {number}") for number in range(102)]
    Organization.objects.bulk_create(rows)
    Subscription.objects.bulk_create(
        Subscription(organization=row, customer_id=f"cus_{number}") for number, row in enumerate(rows)
    )
    stripe_api.customers |= {f"cus_{number}": {"id": f"cus_{number}"} for number in range(102)}

    def write() -> None:
        Organization.objects.filter(pk=committed_cast.org.pk).update(name="Another name")

    def respond(asked: Asked) -> None:
        if len(stripe_api.asked) == 1:
            assert at_once(write) == [None]

    stripe_api.respond = respond
    assert run() == (0, ["102 compared, 0 differences, 0 left."])


@pytest.mark.parametrize("date", ["", "yesterday", "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_clock_that_is_none(cast: Cast, both: SmallStripe, settings: LazySettings, date: str) -> None:
    """With a live key a reading is of about now, so that it outranks nothing that follows."""
    settings.STRIPE_SECRET_KEY = "sk_live_1"
    page = json.dumps({"data": [subscription("active")]}).encode()
    both.respond = lambda asked: (200, {"Date": date}, page) if asked.fields["customer"] == "cus_1" else None
    run()
    assert status_of(cast.org) == "active"
    made = ProviderEvent.objects.get(customer_id="cus_1")
    assert abs(made.created - clock.now()) < timedelta(minutes=10)


def test_the_nightly_task_asks_each_once(cast: Cast, both: SmallStripe) -> None:
    assert tasks.reconcile() == 2
    assert tasks.reconcile() == 0
    Subscription.objects.filter(organization_id=cast.org.pk).update(reconciled_at=clock.now() - timedelta(hours=21))
    assert tasks.reconcile() == 1


def test_the_nightly_task_goes_on_where_it_stopped(cast: Cast, both: SmallStripe) -> None:
    left = iter([True, False])
    rows = reconciliation.due_customers(clock.now())
    assert reconciliation.reconcile_all(rows, is_dry_run=False, is_time_left=lambda: next(left)).asked == 1
    assert tasks.reconcile() == 1


def test_an_organization_that_is_deleted_meanwhile(cast: Cast, both: SmallStripe) -> None:
    row = Subscription.objects.select_related("organization").get(organization_id=cast.org.pk)
    Organization.objects.filter(pk=cast.org.pk).delete()
    with pytest.raises(Exception, match="Not found"):
        reconciliation.reconcile(row, is_dry_run=False)
    assert run()[0] == 0


@pytest.mark.parametrize("mode", ["disabled", "manual"])
def test_without_a_provider(cast: Cast, by_provider: None, settings: LazySettings, mode: str) -> None:
    settings.BILLING_MODE = mode
    with pytest.raises(CommandError, match="BILLING_MODE is not stripe"):
        call_command("billing_reconcile")


def test_the_key_is_in_no_line(cast: Cast, both: SmallStripe, caplog: pytest.LogCaptureFixture) -> None:
    both.respond = lambda asked: (401, {}, b'{"error": {"message": "Invalid API Key: sk_test_of_the_suite"}}')
    code, lines = run()
    assert code == 2
    assert "of_the_suite" not in caplog.text + " ".join(lines)
