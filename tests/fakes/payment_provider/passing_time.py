"""Lets time pass: all that becomes due happens, each at its own moment and in the order of the moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.fakes.payment_provider.billing import INCOMPLETE_S, RUNNING, Billing
from tests.fakes.payment_provider.checkout import Checkout
from tests.fakes.payment_provider.store import Json

Due = tuple[int, Callable[[], None]]


def advance(billing: Billing, checkout: Checkout, seconds: float) -> None:
    """The clock is so much later."""
    clock = billing.store.clock
    end = clock.now() + int(seconds)
    try:
        while dues := [due for due in _dues(billing, checkout) if due[0] <= end]:
            moment, happens = min(dues, key=lambda due: due[0])
            clock.frozen_at = max(moment, clock.now())
            happens()
    finally:
        clock.frozen_at = None
    clock.offset_s += int(seconds)


def _dues(billing: Billing, checkout: Checkout) -> Iterator[Due]:
    for subscription in billing.store.all("subscription"):
        yield from _of_subscription(billing, subscription)
    for invoice in billing.store.all("invoice"):
        if invoice["status"] == "draft" and invoice["automatically_finalizes_at"] is not None:
            yield invoice["automatically_finalizes_at"], lambda each=invoice: billing.finalize_and_collect(each)
        if invoice["status"] == "open" and invoice["next_payment_attempt"] is not None:
            yield invoice["next_payment_attempt"], lambda each=invoice: billing.collect(each)
    for session in billing.store.all("checkout.session"):
        if session["status"] == "open":
            yield session["expires_at"], lambda each=session: checkout.expire(each)


def _of_subscription(billing: Billing, subscription: Json) -> Iterator[Due]:
    if subscription["status"] == "incomplete":
        yield subscription["created"] + INCOMPLETE_S, lambda: billing.expire_incomplete(subscription)
    if subscription["status"] in RUNNING:
        if subscription["cancel_at"] is not None:
            yield subscription["cancel_at"], lambda: billing.end(subscription, None)
        yield subscription["items"]["data"][0]["current_period_end"], lambda: billing.renew(subscription)
