"""Events of the provider as facts, in the shapes of several API versions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from billing.facts import Event, Kind, Snapshot, UnreadableEvent, from_json, parse_event, read_subscription, to_json
from billing.states import SubscriptionStatus
from tests.factories.billing import checkout_session, event, invoice, subscription, told

pytestmark = pytest.mark.one_back_end
UPDATED = "customer.subscription.updated"


def parsed(found: dict[str, Any]) -> Event:
    """The facts of an event that decides something."""
    result = parse_event(found)
    assert result is not None
    return result


@pytest.mark.parametrize("is_old", [False, True], ids=["now", "before 2025-03"])
def test_a_subscription_in_both_shapes(is_old: bool) -> None:
    found = parsed(told("past_due", start=10, end=20, is_old=is_old, created=7, event_id="evt_x"))
    assert found == Event(
        id="evt_x",
        kind=Kind.SUBSCRIPTION_UPDATED,
        created=7,
        customer_id="cus_1",
        subscription_id="sub_1",
        snapshot=Snapshot(SubscriptionStatus.PAST_DUE, is_ending=False, period_start=10, period_end=20),
    )


@pytest.mark.parametrize("is_old", [False, True], ids=["now", "before 2025-03"])
@pytest.mark.parametrize("kind", ["invoice.paid", "invoice.payment_failed"])
def test_an_invoice_in_both_shapes(kind: str, is_old: bool) -> None:
    found = parsed(event(kind, invoice("in_7", is_old=is_old)))
    assert (found.kind, found.subscription_id, found.invoice_id, found.snapshot) == (kind, "sub_1", "in_7", None)


def test_an_object_in_the_place_of_its_id() -> None:
    assert parsed(told("active", customer={"id": "cus_9", "object": "customer"})).customer_id == "cus_9"
    assert parsed(event("invoice.paid", invoice(subscription={"id": "sub_9"}))).subscription_id == "sub_9"


@pytest.mark.parametrize(
    ("status", "expected"),
    [(each.value, each) for each in SubscriptionStatus] + [("incomplete_expired", SubscriptionStatus.CANCELED)],
)
def test_the_providers_words(status: str, expected: SubscriptionStatus) -> None:
    found = parsed(told(status))
    assert found.snapshot is not None
    assert found.snapshot.status is expected


def test_a_deleted_subscription_is_canceled_whatever_its_object_says() -> None:
    found = parsed(event("customer.subscription.deleted", subscription("active")))
    assert found.snapshot is not None
    assert found.snapshot.status is SubscriptionStatus.CANCELED


def test_an_end_is_a_flag_or_a_time() -> None:
    for options, end in (({"is_ending": True}, 20), ({"cancel_at": 15}, 15)):
        found = parsed(told("active", start=10, end=20, **options)).snapshot
        assert found is not None
        assert (found.is_ending, found.period_end) == (True, end)


def test_the_longest_period_of_several_items() -> None:
    several = subscription("active", start=10, end=20)
    several["items"]["data"].append({"id": "si_2", "current_period_start": 12, "current_period_end": 30})
    found = parsed(event(UPDATED, several)).snapshot
    assert found is not None
    assert (found.period_start, found.period_end) == (12, 30)


def test_what_was_before() -> None:
    changed = parsed(told("past_due", previous={"status": "active"}))
    assert (changed.previous_status, changed.previous_is_ending) == (SubscriptionStatus.ACTIVE, False)
    ending = parsed(told("active", cancel_at=15, previous={"cancel_at": None}))
    assert (ending.previous_status, ending.previous_is_ending) == (None, False)
    renewed = parsed(told("active", previous={"items": {"data": []}, "latest_invoice": "in_0"}))
    assert (renewed.previous_status, renewed.previous_is_ending) == (None, False)


def test_a_checkout_of_ours_names_its_organization_twice() -> None:
    kind, org = "checkout.session.completed", "7f1c"
    assert parsed(event(kind, checkout_session(org))).organization_id == org
    # A payment link takes the reference from its address, and has no metadata of ours.
    for metadata in ({}, {"organization_id": "other"}):
        assert parsed(event(kind, checkout_session(org, metadata=metadata))).organization_id == ""


@pytest.mark.parametrize(
    "found",
    [
        event("customer.created", {"id": "cus_1"}),
        event("invoice.paid", invoice(subscription=None)),
        event("invoice.paid", invoice(subscription=None, is_old=True)),
        event("checkout.session.completed", {**checkout_session("x"), "mode": "payment"}),
        {"type": "v2.core.event"},
    ],
    ids=["another kind", "an invoice of no subscription", "the same before 2025-03", "a payment", "a thin event"],
)
def test_events_that_decide_nothing(found: dict[str, Any]) -> None:
    assert parse_event(found) is None


@pytest.mark.parametrize(
    "items", [None, 7, True, "x", [], {"data": None}, {"data": 7}, {"data": {"a": 1}}, {"data": [7]}]
)
def test_a_subscription_without_items_has_no_period(items: object) -> None:
    found = parsed(told("active") | {"data": {"object": {**subscription("active"), "items": items}}})
    assert found.snapshot == Snapshot(SubscriptionStatus.ACTIVE)


def broken(path: str, value: object) -> dict[str, Any]:
    """An event with another value at the dotted path; None removes the member."""
    found: dict[str, Any] = told("active")
    *parents, name = path.split(".")
    place = found
    for each in parents:
        place = place[each]
    if value is None:
        del place[name]
    else:
        place[name] = value
    return found


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("id", [None, "", 7, "a b", "é", "x" * 201, "evt\n1"]),
        ("created", [None, 0, -1, "7", 1.5, True, 10**13]),
        ("type", [None, 7]),
        ("data", [None, [], "x"]),
        ("data.object", [None, [], "x"]),
        ("data.object.id", [None, 7]),
        ("data.object.customer", [None, [], {"id": 7}]),
        ("data.object.status", [None, "suspended", 7]),
        ("data.object.cancel_at", ["soon"]),
    ],
)
def test_what_cannot_be_read_is_named_and_not_repeated(path: str, values: list[object]) -> None:
    for value in values:
        with pytest.raises(UnreadableEvent) as refusal:
            parse_event(broken(path, value))
        assert str(refusal.value) == path.rpartition(".")[2]


def test_facts_are_stored_and_read_again() -> None:
    for found in (
        parsed(told("past_due", previous={"status": "active"}, is_ending=True)),
        parsed(event("invoice.paid", invoice())),
        parsed(event("checkout.session.completed", checkout_session("7f1c"))),
        read_subscription(subscription("trialing"), read_at=9),
    ):
        columns = {name: getattr(found, name) for name in ("id", "kind", "created", "customer_id", "subscription_id")}
        assert from_json(json.loads(json.dumps(to_json(found))), **columns) == found


def test_a_reading_is_an_event_of_its_time() -> None:
    one, again = (read_subscription(subscription("active"), read_at=9) for _ in range(2))
    assert (one.kind, one.created, one.id) == (Kind.RECONCILED, 9, again.id)
    assert read_subscription(subscription("active"), read_at=10).id != one.id
