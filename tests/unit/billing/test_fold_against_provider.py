"""The fold of a life's events is what the provider itself says at its end, whatever the life and the order.

The stand-in of the provider is written from the provider's documentation alone and shares no code with the fold.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from billing.facts import Event, parse_event, read_subscription
from billing.fold import State, fold_each
from tests.fakes.payment_provider.billing import FAILING_LATER_CARD, GOOD_CARD, Billing
from tests.fakes.payment_provider.checkout import Checkout
from tests.fakes.payment_provider.errors import Refusal
from tests.fakes.payment_provider.events import Events
from tests.fakes.payment_provider.form import Fields
from tests.fakes.payment_provider.passing_time import advance
from tests.fakes.payment_provider.shapes import customer, price
from tests.fakes.payment_provider.store import Clock, Json, Store
from tests.fakes.payment_provider.versions import as_of

DAY_S = 86_400
BEGINNING = 1_750_000_000
VERSIONS = ("2026-08-26.dahlia", "2024-06-20")


class StoppedClock(Clock):
    """Moves only when a step says so: many steps fall into one second."""

    def now(self) -> int:
        return self.frozen_at if self.frozen_at is not None else BEGINNING + int(self.offset_s)


@dataclass
class Life:
    """A customer of the provider, and all events so far."""

    sent: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = Store(StoppedClock())
        self.billing = Billing(self.store, Events(self.store, False, self._take), False)
        self.checkout = Checkout(self.billing, "http://127.0.0.1:1")
        now = self.store.clock.now()
        given = {"active": True, "currency": "usd", "lookup_key": None, "metadata": {}, "nickname": None}
        self.store.add(
            price(now, False, interval="month", count=1, id_="price_flat", product="prod_1", unit_amount=9_900, **given)
        )
        nobody = {"description": None, "email": None, "metadata": {}, "name": None}
        self.customer = self.store.add(customer(now, False, **nobody))["id"]

    def _take(self, event: Json) -> int:
        self.sent.append(event)
        return 1

    def running(self) -> list[Json]:
        return [
            each for each in self.store.all("subscription") if each["status"] not in ("canceled", "incomplete_expired")
        ]

    def subscribe(self, **data: Any) -> None:
        """Only a customer without a subscription does."""
        if self.running():
            return
        form = {
            "mode": "subscription",
            "customer": self.customer,
            "success_url": "http://127.0.0.1:1/",
            "line_items": [{"price": "price_flat", "quantity": "1"}],
            **data,
        }
        self.checkout.pay(self.checkout.create(Fields(form)), GOOD_CARD)

    def pays(self, card: str) -> None:
        self.billing.cards[self.customer] = card

    def pay_debts(self) -> None:
        for invoice in self.store.all("invoice"):
            if invoice["status"] == "open":
                self.billing.pay(invoice)

    def pay_latest(self) -> None:
        for each in self.running():
            invoice = self.store.get("invoice", each["latest_invoice"])
            if invoice["status"] == "open":
                self.billing.pay(invoice)

    def end_later(self, *, ends: bool) -> None:
        for each in self.running():
            self.billing.schedule_end(each, at_period_end=ends, by_portal=True)

    def end(self) -> None:
        for each in self.running():
            self.billing.end(each, None)

    def wait(self, seconds: float) -> None:
        advance(self.billing, self.checkout, seconds)


TRIAL = {"subscription_data": {"trial_period_days": "7"}}
STEPS: dict[str, Callable[[Life], None]] = {
    "subscribes": lambda life: life.subscribe(),
    "tries": lambda life: life.subscribe(**TRIAL),
    "card fails": lambda life: life.pays(FAILING_LATER_CARD),
    "card is good": lambda life: life.pays(GOOD_CARD),
    "pays all": lambda life: life.pay_debts(),
    "pays the latest": lambda life: life.pay_latest(),
    "ends later": lambda life: life.end_later(ends=True),
    "goes on": lambda life: life.end_later(ends=False),
    "ends": lambda life: life.end(),
    "a second": lambda life: life.wait(1),
    "an hour": lambda life: life.wait(3_601),
    "days": lambda life: life.wait(4 * DAY_S),
    "a month": lambda life: life.wait(31 * DAY_S),
}
lives = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=14)


def lived(steps: list[str], *, policy: str, begins: str, mode: str) -> Life:
    """A life with these steps, each of which the provider may refuse."""
    life = Life()
    life.billing.policy.after_retries, life.billing.policy.begins = policy, begins
    life.billing.policy.billing_mode = mode
    life.subscribe()
    go_on(life, steps)
    return life


def go_on(life: Life, steps: list[str]) -> None:
    for step in steps:
        with contextlib.suppress(Refusal):
            STEPS[step](life)


def read(sent: list[Json], version: str) -> list[Event]:
    found = (parse_event(as_of(version, event)) for event in sent)
    return [event for event in found if event is not None]


def words(state: State) -> tuple[object, ...]:
    """Of an ended one only that it has ended."""
    if state.status.value == "canceled":
        return ("canceled",)
    end = state.period_end
    return state.status.value, state.is_ending, int(end.timestamp()) if end else None


def provider_words(subscription: Json) -> tuple[object, ...]:
    """The same, said by the provider itself."""
    if subscription["status"] in ("canceled", "incomplete_expired"):
        return ("canceled",)
    is_ending = subscription["cancel_at"] is not None
    end = subscription["cancel_at"] or subscription["items"]["data"][0]["current_period_end"]
    return subscription["status"], is_ending, end


policies = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(["cancel", "unpaid", "past_due"]),
        "begins": st.sampled_from(["active", "incomplete"]),
        "mode": st.sampled_from(["flexible", "classic"]),
    }
)
versions = st.sampled_from(VERSIONS)


def as_told(events: list[Event]) -> dict[str, tuple[object, ...]]:
    return {id_: words(state) for id_, state in fold_each(events).items()}


def as_it_is(life: Life) -> dict[str, tuple[object, ...]]:
    return {each["id"]: provider_words(each) for each in life.store.all("subscription")}


@settings(max_examples=200)
@given(steps=lives, policy=policies, version=versions, seed=st.integers(0, 2**32))
def test_the_fold_says_what_the_provider_says(steps: list[str], policy: Any, version: str, seed: int) -> None:
    life = lived(steps, **policy)
    events = read(life.sent, version)
    assert as_told([*shuffled(events, seed), *events]) == as_it_is(life)


@settings(max_examples=200)
@given(steps=lives, more=lives, policy=policies, version=versions, seed=st.integers(0, 2**32), all_stored=st.booleans())
def test_a_reading_mends_what_lost_events_left(
    steps: list[str], more: list[str], policy: Any, version: str, seed: int, all_stored: bool
) -> None:
    life = lived(steps, **policy)
    chances = random.Random(seed)
    arrived = [event for event in read(life.sent, version) if chances.random() < 0.5]
    life.wait(1)
    read_at = life.store.clock.now()
    told, before = as_told(arrived), len(life.sent)
    readings = [read_subscription(as_of(version, each), read_at=read_at) for each in life.store.all("subscription")]
    differing = [each for each in readings if told.get(each.subscription_id) != as_it_is(life)[each.subscription_id]]
    arrived += readings if all_stored else differing
    assert as_told(arrived) == as_it_is(life)
    life.wait(1)
    go_on(life, more)
    arrived += read(life.sent[before:], version)
    assert as_told(shuffled(arrived, seed)) == as_it_is(life)


def shuffled(events: list[Event], seed: int) -> list[Event]:
    return random.Random(seed).sample(events, len(events))
