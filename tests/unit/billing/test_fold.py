"""The state of a plan from a set of events: a table, and properties over every order, duplication, delay and loss."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.facts import Event, Kind, Snapshot
from billing.fold import State, fold, fold_each
from billing.states import PlanState, SubscriptionStatus, plan_state

pytestmark = pytest.mark.one_back_end
S = SubscriptionStatus
FAILED, PAID = Kind.INVOICE_PAYMENT_FAILED, Kind.INVOICE_PAID


def at(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def told(
    created: int, status: str, *, was: str | None = None, kind: Kind = Kind.SUBSCRIPTION_UPDATED, **more: Any
) -> Event:
    """The subscription's object at a time."""
    snapshot = Snapshot(
        S(status), **{name: more.pop(name) for name in ("is_ending", "period_start", "period_end") if name in more}
    )
    previous = S(was) if was else None
    return Event(
        **{"id": f"{created} {kind} {status} {was}", "customer_id": "cus_1", "subscription_id": "sub_1", **more},
        kind=kind,
        created=created,
        snapshot=snapshot,
        previous_status=previous,
    )


def billed(created: int, kind: Kind, invoice: str = "in_1", **more: Any) -> Event:
    """An event of an invoice at a time."""
    columns = {"id": f"{created} {kind} {invoice}", "customer_id": "cus_1", "subscription_id": "sub_1", **more}
    return Event(**columns, kind=kind, created=created, invoice_id=invoice)


def created(at_s: int, status: str) -> Event:
    return told(at_s, status, kind=Kind.SUBSCRIPTION_CREATED)


def deleted(at_s: int) -> Event:
    return told(at_s, "canceled", kind=Kind.SUBSCRIPTION_DELETED)


def read(at_s: int, status: str, **more: Any) -> Event:
    return told(at_s, status, kind=Kind.RECONCILED, **more)


# Name: events, then status and start of the grace period.
TABLE: dict[str, tuple[list[Event], str, int | None]] = {
    "nothing": ([], "none", None),
    "begun and not paid": ([created(1, "incomplete")], "incomplete", None),
    "begun and paid": (
        [created(1, "incomplete"), billed(1, PAID), told(1, "active", was="incomplete")],
        "active",
        None,
    ),
    "paid, and the subscription's event is lost": ([created(1, "incomplete"), billed(1, PAID)], "active", None),
    "paid, and everything else is lost": ([billed(1, PAID)], "active", None),
    "the first payment fails": ([created(1, "incomplete"), billed(1, FAILED)], "incomplete", None),
    "in trial": ([created(1, "trialing"), billed(1, PAID)], "trialing", None),
    "a trial without a card": (
        [created(1, "trialing"), told(9, "paused", kind=Kind.SUBSCRIPTION_PAUSED)],
        "paused",
        None,
    ),
    "an invoice does not resume": ([created(1, "trialing"), told(9, "paused"), billed(10, PAID)], "paused", None),
    "resumed": ([told(9, "paused"), told(11, "active", kind=Kind.SUBSCRIPTION_RESUMED)], "active", None),
    "past due": ([created(1, "active"), billed(5, FAILED), told(6, "past_due", was="active")], "past_due", 5),
    "past due, the failure is lost": ([created(1, "active"), told(6, "past_due", was="active")], "past_due", 6),
    "a failure alone lapses nothing": ([created(1, "active"), billed(5, FAILED)], "active", None),
    "past due, tried again": (
        [created(1, "active"), billed(5, FAILED), told(5, "past_due"), billed(8, FAILED), told(8, "past_due")],
        "past_due",
        5,
    ),
    "recovered": (
        [billed(5, FAILED), told(5, "past_due"), billed(7, PAID), told(7, "active", was="past_due")],
        "active",
        None,
    ),
    "recovered, told by the invoice": ([billed(5, FAILED), told(5, "past_due"), billed(7, PAID)], "active", None),
    "another invoice is paid": ([billed(5, FAILED), told(5, "past_due"), billed(7, PAID, "in_0")], "past_due", 5),
    "past due again": (
        [billed(5, FAILED), told(5, "past_due"), told(7, "active"), billed(9, FAILED, "in_2"), told(9, "past_due")],
        "past_due",
        9,
    ),
    "unpaid": ([billed(5, FAILED), told(5, "past_due"), told(9, "unpaid", was="past_due")], "unpaid", None),
    "unpaid, then paid": ([billed(5, FAILED), told(9, "unpaid"), billed(11, PAID)], "active", None),
    "ended": ([created(1, "active"), deleted(9)], "canceled", None),
    "ended, and a late payment": ([created(1, "active"), deleted(9), billed(10, PAID)], "canceled", None),
    "ended, and an older event of the same second": (
        [deleted(9), told(9, "active"), created(9, "active")],
        "canceled",
        None,
    ),
    "ended, and an event of later": ([deleted(9), told(12, "active")], "canceled", None),
    "never paid": ([created(1, "incomplete"), told(9, "canceled", was="incomplete")], "canceled", None),
    "failed and recovered in one second": (
        [
            told(5, "active", was="past_due"),
            told(5, "past_due", was="active"),
            billed(5, PAID),
            billed(5, FAILED),
            created(1, "active"),
        ],
        "active",
        None,
    ),
    "recovered and failed again in one second": (
        [
            created(1, "active"),
            told(3, "past_due"),
            billed(3, FAILED, "in_0"),
            told(5, "active", was="past_due"),
            told(5, "past_due", was="active"),
            billed(5, PAID, "in_0"),
            billed(5, FAILED),
        ],
        "past_due",
        5,
    ),
    "given up, then recovered and failed again in one second": (
        [
            billed(1, FAILED, "in_0"),
            told(2, "unpaid"),
            told(5, "active", was="unpaid"),
            told(5, "past_due", was="active"),
            billed(5, PAID, "in_0"),
            billed(5, FAILED),
        ],
        "past_due",
        5,
    ),
    "a reading mends": ([created(1, "active"), read(9, "canceled")], "canceled", None),
    "a reading finds a failure": ([created(1, "active"), read(9, "past_due", period_start=6)], "past_due", 6),
    "a reading knows no more than the failure": (
        [created(1, "active"), billed(7, FAILED), read(9, "past_due", period_start=6)],
        "past_due",
        7,
    ),
    "an event of the reading's second is newer": ([read(9, "active"), told(9, "past_due")], "past_due", 9),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_state_after(name: str) -> None:
    events, status, since = TABLE[name]
    for order in (events, events[::-1], sorted(events, key=lambda each: each.id), events + events):
        found = fold(order)
        assert (found.status, found.past_due_since) == (status, at(since))


def test_the_states_that_are_paid_for() -> None:
    """Each state by itself; past_due by the clock."""
    active = {
        each for each in S if plan_state(each, at(0), datetime.fromtimestamp(7 * 86_400, UTC)) is PlanState.ACTIVE
    }
    assert active == {S.ACTIVE, S.TRIALING, S.PAST_DUE}
    assert plan_state(S.PAST_DUE, at(0), datetime.fromtimestamp(7 * 86_400 + 1, UTC)) is PlanState.LAPSED


def test_the_end_of_a_period_and_of_the_subscription() -> None:
    found = fold([told(1, "active", period_end=50), told(2, "active", is_ending=True, period_end=60)])
    assert found == State(S.ACTIVE, None, at(60), True, "sub_1")


def test_the_best_of_several_subscriptions_counts() -> None:
    old = [replace(each, id=f"old {each.id}", subscription_id="sub_0") for each in (created(1, "active"), deleted(5))]
    assert fold([*old, created(7, "active")]).subscription_id == "sub_1"
    assert fold([*old, created(7, "incomplete")]).status is S.INCOMPLETE
    both = [*old[:1], told(9, "past_due"), billed(8, FAILED)]
    assert (fold(both).status, fold(both).subscription_id) == (S.ACTIVE, "sub_0")
    assert {name: state.status for name, state in fold_each(both).items()} == {"sub_0": S.ACTIVE, "sub_1": S.PAST_DUE}


def test_of_two_in_their_grace_period_the_later_one_counts() -> None:
    other = replace(told(20, "past_due"), id="other", subscription_id="sub_0")
    assert fold([told(10, "past_due"), other]).past_due_since == at(20)


def test_without_word_of_what_was_before_the_better_state_counts() -> None:
    assert fold([told(5, "past_due"), told(5, "active")]).status is S.ACTIVE
    assert fold([created(1, "past_due"), told(5, "past_due"), told(5, "active")]).status is S.PAST_DUE


statuses = st.sampled_from([each for each in S if each is not S.NONE])
places = st.builds(
    Snapshot,
    status=statuses,
    is_ending=st.booleans(),
    period_start=st.none() | st.integers(1, 3),
    period_end=st.none() | st.integers(4, 9),
)
any_events = st.builds(
    Event,
    id=st.sampled_from([f"evt_{number}" for number in range(30)]),
    kind=st.sampled_from(Kind),
    created=st.integers(1, 5),
    customer_id=st.just("cus_1"),
    subscription_id=st.sampled_from(["", "sub_1", "sub_2"]),
    snapshot=places,
    previous_status=st.none() | statuses,
    previous_is_ending=st.none() | st.booleans(),
    invoice_id=st.sampled_from(["in_1", "in_2"]),
)


@given(events=st.lists(any_events, unique_by=lambda each: each.id, max_size=12), data=st.data())
def test_any_order_and_duplication_of_any_events_ends_alike(events: list[Event], data: st.DataObject) -> None:
    """Also of events that no provider would send."""
    repeated = data.draw(
        st.permutations(events + data.draw(st.lists(st.sampled_from(events), max_size=5) if events else st.just([])))
    )
    assert fold_each(repeated) == fold_each(events)
    assert fold(repeated) == fold(events)


@dataclass
class Life:
    """A subscription at the provider, which sends an event for each change."""

    now: int = 1
    status: SubscriptionStatus = S.ACTIVE
    is_ending: bool = False
    period: int = 0
    unpaid: str = ""
    failed_at: int | None = None
    sent: list[Event] = field(default_factory=list)

    def send(self, kind: Kind, **more: Any) -> None:
        """One event of the present second."""
        columns = {"id": f"evt_{len(self.sent)}", "customer_id": "cus_1", "subscription_id": "sub_1"}
        self.sent.append(Event(**columns, kind=kind, created=self.now, **more))

    def change(self, kind: Kind = Kind.SUBSCRIPTION_UPDATED, **members: Any) -> None:
        """The subscription changes, and its event names what was before."""
        before = (self.status, self.is_ending)
        for name, value in members.items():
            setattr(self, name, value)
        self.send(kind, snapshot=self.snapshot(), previous_status=before[0], previous_is_ending=before[1])

    def snapshot(self) -> Snapshot:
        return Snapshot(self.status, self.is_ending, self.period * 100, self.period * 100 + 100)

    def step(self, action: str) -> None:
        """An action that cannot happen now does nothing."""
        if self.status is S.CANCELED:
            return
        if action == "renew" and self.status is S.ACTIVE:
            self.change(period=self.period + 1)
        elif action == "fail" and self.status is S.ACTIVE:
            self.unpaid, self.failed_at = f"in_{len(self.sent)}", self.now
            self.send(FAILED, invoice_id=self.unpaid)
            self.change(status=S.PAST_DUE)
        elif action == "fail again" and self.status is S.PAST_DUE:
            self.send(FAILED, invoice_id=self.unpaid)
        elif action == "give up" and self.status is S.PAST_DUE:
            self.change(status=S.UNPAID, is_ending=self.is_ending)
        elif action == "pay" and self.status in {S.PAST_DUE, S.UNPAID}:
            self.send(PAID, invoice_id=self.unpaid)
            self.unpaid, self.failed_at = "", None
            self.change(status=S.ACTIVE)
        elif action == "end" and not self.is_ending:
            self.change(is_ending=True)
        elif action == "go on" and self.is_ending:
            self.change(is_ending=False)
        elif action == "delete":
            self.change(Kind.SUBSCRIPTION_DELETED, status=S.CANCELED)

    def state(self) -> State:
        since = self.failed_at if self.status is S.PAST_DUE else None
        return State(self.status, at(since), at(self.snapshot().period_end), self.is_ending, "sub_1")


actions = st.sampled_from(["renew", "fail", "fail again", "give up", "pay", "pay", "end", "go on"])
steps = st.lists(st.tuples(st.sampled_from([0, 0, 0, 1, 5]), actions), max_size=14)


@st.composite
def lives(draw: st.DrawFn) -> Life:
    """A life of many changes, several of them in one second; some are deleted at the end."""
    life = Life()
    life.send(Kind.SUBSCRIPTION_CREATED, snapshot=life.snapshot())
    for pause, action in draw(steps):
        life.now += pause
        life.step(action)
    if draw(st.booleans()):
        life.now += draw(st.sampled_from([0, 1]))
        life.step("delete")
    return life


@given(life=lives(), data=st.data())
def test_every_order_of_a_life_ends_in_its_state(life: Life, data: st.DataObject) -> None:
    """Changes of one second too: what each event says of before puts them in their order."""
    assert fold(data.draw(st.permutations(life.sent))) == life.state()
