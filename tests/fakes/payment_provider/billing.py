"""The life of subscriptions and their invoices, each step with the events that the provider sends for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fakes.payment_provider import prices, shapes
from tests.fakes.payment_provider.errors import Refusal, declined
from tests.fakes.payment_provider.events import Events
from tests.fakes.payment_provider.store import Json, Store, new_id

HOUR_S, DAY_S = 3_600, 86_400
DRAFT_S = HOUR_S  # a renewal's invoice waits that long before it is collected
INCOMPLETE_S = 23 * HOUR_S
RETRY_DELAYS_S = (3 * DAY_S, 5 * DAY_S, 7 * DAY_S)
RUNNING = ("trialing", "active", "past_due", "unpaid")
ENDED = ("canceled", "incomplete_expired")

# The provider's numbers for tests: pays, is refused, can be kept but never charged, asks its owner first.
GOOD_CARD = "4242424242424242"
REFUSED_CARD = "4000000000000002"
FAILING_LATER_CARD = "4000000000000341"
ASKING_CARD = "4000002500003155"
CARDS = (GOOD_CARD, REFUSED_CARD, FAILING_LATER_CARD, ASKING_CARD)


@dataclass
class Policy:
    """Settings of the provider's dashboard. `after_retries`: cancel, unpaid or past_due."""

    after_retries: str = "cancel"
    billing_mode: str = "flexible"  # or classic; how the portal writes down a coming end depends on it
    begins: str = "active"  # or incomplete: the state in the first event of a subscription that is paid at once


@dataclass
class Billing:
    store: Store
    events: Events
    livemode: bool
    policy: Policy = field(default_factory=Policy)
    cards: dict[str, str] = field(default_factory=dict)  # by customer

    def subscribe(self, session: Json, wishes: Json) -> Json:
        """The subscription of a checkout session, not yet paid. `wishes`: its `subscription_data` and line."""
        now = self.store.clock.now()
        price = wishes["price"]
        trial_end = wishes["trial_end"]
        subscription = shapes.subscription(
            now,
            self.livemode,
            price=price,
            quantity=wishes["quantity"],
            period_end=trial_end or prices.period_end(now, price["recurring"]),
            customer=session["customer"],
            metadata=wishes["metadata"],
            billing_mode={"flexible": None, "type": self.policy.billing_mode, "updated_at": now},
            status="trialing" if trial_end else "incomplete",
            trial_end=trial_end,
            trial_start=now if trial_end else None,
            trial_settings={"end_behavior": {"missing_payment_method": wishes["missing_payment_method"]}},
        )
        self.store.add(subscription)
        self._redeem(session, subscription)
        return subscription

    def start(self, subscription: Json) -> Json:
        """The first invoice is there and the first events are out; returns the invoice, open or paid with nothing."""
        invoice = self._bill(subscription, "subscription_create", is_free=subscription["status"] == "trialing")
        subscription["latest_invoice"] = invoice["id"]
        is_paid = invoice["amount_due"] == 0 or self._pays(subscription)
        if subscription["status"] == "incomplete" and self.policy.begins == "active" and is_paid:
            subscription["status"] = "active"
        self.events.announce("customer.subscription.created", subscription)
        self._finalize(invoice)
        return invoice

    def collect(self, invoice: Json, *, by_hand: bool = False) -> bool:
        """An attempt to be paid from the customer's card, with all that follows from its outcome.

        A further attempt by hand leaves the plan of attempts as it is.
        """
        subscription = self._of(invoice)
        if invoice["amount_due"] and self.cards.get(invoice["customer"]) != GOOD_CARD:
            if by_hand and invoice["attempt_count"]:
                self.events.announce("invoice.payment_failed", invoice)
            else:
                self._failed(invoice, subscription)
            return False
        self._paid(invoice, subscription)
        return True

    def pay(self, invoice: Json) -> Json:
        """The customer pays now. Raises: Refusal of the card."""
        if invoice["status"] == "draft":
            self._finalize(invoice)
        if invoice["status"] != "open":
            message = f"Invoice is already {invoice['status']}"
            raise Refusal(400, message, "invoice_not_editable")
        if not self.collect(invoice, by_hand=True):
            raise declined()
        return invoice

    def schedule_end(self, subscription: Json, *, at_period_end: bool, by_portal: bool = False) -> None:
        """It ends with its period, or no longer does.

        In flexible billing mode the portal notes only the moment; the API notes that it is the period's end as well.
        """
        self._refuse_if_ended(subscription)
        with self.events.changing(subscription, "customer.subscription.updated"):
            flexible = by_portal and subscription["billing_mode"]["type"] == "flexible"
            subscription["cancel_at_period_end"] = at_period_end and not flexible
            subscription["cancel_at"] = _item(subscription)["current_period_end"] if at_period_end else None
            subscription["canceled_at"] = self.store.clock.now() if at_period_end else None
            reason = "cancellation_requested" if at_period_end else None
            subscription["cancellation_details"] = {**subscription["cancellation_details"], "reason": reason}

    def end(self, subscription: Json, reason: str | None) -> None:
        """Canceled now; its invoices are no longer collected."""
        self._refuse_if_ended(subscription)
        now = self.store.clock.now()
        subscription.update(status="canceled", ended_at=now, canceled_at=subscription["canceled_at"] or now)
        if reason is not None:
            subscription["cancellation_details"] = {**subscription["cancellation_details"], "reason": reason}
        for invoice in self.store.all("invoice"):
            if self._of(invoice) is subscription:
                self._stop_collecting(invoice)
        self.events.announce("customer.subscription.deleted", subscription)

    def resume(self, subscription: Json) -> None:
        """A paused subscription runs again, in a period that begins now. Raises: Refusal."""
        if subscription["status"] != "paused":
            raise Refusal(400, "The subscription must be paused to resume it.")
        invoice = self._next_period(subscription, self.store.clock.now(), "subscription_update")
        if not self._pays(subscription):
            self._finalize(invoice)
            self.collect(invoice)
            raise declined()
        with self.events.changing(subscription, "customer.subscription.updated"):
            subscription["status"] = "active"
        self.events.announce("customer.subscription.resumed", subscription)
        self._finalize(invoice)
        self.collect(invoice)

    def renew(self, subscription: Json) -> None:
        """The period or the trial is over: the next one begins and its invoice is drafted."""
        was_trial = subscription["status"] == "trialing"
        if was_trial and subscription["customer"] not in self.cards:
            behaviour = subscription["trial_settings"]["end_behavior"]["missing_payment_method"]
            if behaviour == "cancel":
                self.end(subscription, None)
                return
            if behaviour == "pause":
                subscription["status"] = "paused"
                self.events.announce("customer.subscription.paused", subscription)
                return
        with self.events.changing(subscription, "customer.subscription.updated"):
            invoice = self._next_period(subscription, _item(subscription)["current_period_end"], "subscription_cycle")
            if was_trial:
                subscription["status"] = "active"
        if subscription["status"] == "unpaid":
            self._stop_collecting(invoice)

    def expire_incomplete(self, subscription: Json) -> None:
        """The first invoice was not paid in time."""
        with self.events.changing(subscription, "customer.subscription.updated"):
            subscription.update(status="incomplete_expired", ended_at=self.store.clock.now())
        invoice = self.store.get("invoice", subscription["latest_invoice"])
        invoice.update(status="void", next_payment_attempt=None)
        self.events.announce("invoice.voided", invoice)

    def finalize_and_collect(self, invoice: Json) -> None:
        """A draft's hour is over."""
        self._finalize(invoice)
        self.collect(invoice)

    def _pays(self, subscription: Json) -> bool:
        return self.cards.get(subscription["customer"]) == GOOD_CARD

    def _next_period(self, subscription: Json, start: int, reason: str) -> Json:
        item = _item(subscription)
        item["current_period_start"] = start
        item["current_period_end"] = prices.period_end(start, item["price"]["recurring"])
        invoice = self._bill(subscription, reason)
        invoice["automatically_finalizes_at"] = self.store.clock.now() + DRAFT_S
        subscription["latest_invoice"] = invoice["id"]
        return invoice

    def _bill(self, subscription: Json, reason: str, *, is_free: bool = False) -> Json:
        now, item = self.store.clock.now(), _item(subscription)
        subtotal = 0 if is_free else item["price"]["unit_amount"] * item["quantity"]
        customer = self.store.get("customer", subscription["customer"])
        invoice = shapes.invoice(
            now,
            subscription,
            email=customer["email"],
            amounts=(subtotal, prices.reduced(subtotal, self._coupon(subscription, now))),
            billing_reason=reason,
            automatically_finalizes_at=None,
        )
        self.store.add(invoice)
        self.events.announce("invoice.created", invoice)
        return invoice

    def _coupon(self, subscription: Json, now: int) -> Json | None:
        """That of the discount that holds now. One that holds once holds for the first invoice."""
        for id_ in subscription["discounts"]:
            discount = self.store.get("discount", id_)
            coupon = self.store.get("coupon", discount["source"]["coupon"])
            if coupon["duration"] == "once" and subscription["latest_invoice"] is not None:
                continue
            if discount["end"] is None or now < discount["end"]:
                return coupon
        return None

    def _redeem(self, session: Json, subscription: Json) -> None:
        now = self.store.clock.now()
        for given in session["discounts"]:
            promotion = given["promotion_code"] and self.store.get("promotion_code", given["promotion_code"])
            coupon = self.store.get("coupon", promotion["promotion"]["coupon"] if promotion else given["coupon"])
            for redeemed in (coupon, promotion):
                if redeemed:
                    redeemed["times_redeemed"] += 1
            end = prices.months_later(now, coupon["duration_in_months"]) if coupon["duration_in_months"] else None
            discount = shapes.discount(now, coupon["id"], given["promotion_code"], subscription, end)
            subscription["discounts"].append(self.store.add(discount)["id"])

    def _finalize(self, invoice: Json) -> None:
        now = self.store.clock.now()
        invoice.update(status="open", automatically_finalizes_at=None, effective_at=now, ending_balance=0)
        invoice["status_transitions"]["finalized_at"] = now
        invoice["number"] = new_id("x")[-8:].upper()
        self.events.announce("invoice.finalized", invoice)

    def _paid(self, invoice: Json, subscription: Json) -> None:
        now = self.store.clock.now()
        invoice.update(status="paid", amount_paid=invoice["amount_due"], amount_remaining=0, attempted=True)
        invoice.update(auto_advance=False, next_payment_attempt=None)
        invoice["attempt_count"] += 1 if invoice["amount_due"] else 0
        invoice["status_transitions"]["paid_at"] = now
        self.events.announce("invoice.paid", invoice)
        self.events.announce("invoice.payment_succeeded", invoice)
        if self._is_newest(invoice, subscription) and subscription["status"] in ("incomplete", "past_due", "unpaid"):
            with self.events.changing(subscription, "customer.subscription.updated"):
                subscription["status"] = "active"

    def _is_newest(self, invoice: Json, subscription: Json) -> bool:
        """Of those that are final: an older one that is paid leaves the newest unpaid."""
        final = [each for each in self.store.all("invoice") if each["status"] != "draft"]
        return next(each for each in reversed(final) if self._of(each) is subscription) is invoice

    def _failed(self, invoice: Json, subscription: Json) -> None:
        now = self.store.clock.now()
        invoice["attempted"] = True
        invoice["attempt_count"] += 1
        tries = invoice["attempt_count"]
        is_first = invoice["billing_reason"] == "subscription_create"
        retries = not is_first and subscription["status"] not in ENDED and tries <= len(RETRY_DELAYS_S)
        invoice["next_payment_attempt"] = now + RETRY_DELAYS_S[tries - 1] if retries else None
        self.events.announce("invoice.payment_failed", invoice)
        if subscription["status"] == "active":
            with self.events.changing(subscription, "customer.subscription.updated"):
                subscription["status"] = "past_due"
        if not retries and subscription["status"] == "past_due":
            self._give_up(subscription)

    def _give_up(self, subscription: Json) -> None:
        if self.policy.after_retries == "cancel":
            self.end(subscription, "payment_failed")
        if self.policy.after_retries == "unpaid":
            with self.events.changing(subscription, "customer.subscription.updated"):
                subscription["status"] = "unpaid"

    @staticmethod
    def _stop_collecting(invoice: Json) -> None:
        invoice.update(auto_advance=False, automatically_finalizes_at=None, next_payment_attempt=None)

    def _of(self, invoice: Json) -> Json:
        return self.store.get("subscription", invoice["parent"]["subscription_details"]["subscription"])

    @staticmethod
    def _refuse_if_ended(subscription: Json) -> None:
        if subscription["status"] in ENDED:
            raise Refusal(404, f"No such subscription: '{subscription['id']}'", "resource_missing", "id")


def _item(subscription: Json) -> Json:
    item: Json = subscription["items"]["data"][0]
    return item
