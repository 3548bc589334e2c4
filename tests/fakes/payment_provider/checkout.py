"""Checkout sessions: what a request may ask for, and what the hosted page does with a card."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fakes.payment_provider import prices, shapes
from tests.fakes.payment_provider.billing import (
    ASKING_CARD,
    CARDS,
    DAY_S,
    FAILING_LATER_CARD,
    GOOD_CARD,
    REFUSED_CARD,
    Billing,
)
from tests.fakes.payment_provider.errors import Refusal, declined, exclusive, invalid, missing, no_such
from tests.fakes.payment_provider.form import Fields
from tests.fakes.payment_provider.store import Json, new_id

LONGEST_S, SHORTEST_S = DAY_S, 30 * 60
_KNOWN = (
    *("adaptive_pricing", "after_expiration", "allow_promotion_codes", "automatic_tax", "billing_address_collection"),
    *("branding_settings", "cancel_url", "client_reference_id", "consent_collection", "currency", "custom_fields"),
    *("custom_text", "customer", "customer_creation", "customer_email", "customer_update", "discounts", "expand"),
    *("expires_at", "invoice_creation", "line_items", "locale", "metadata", "mode", "name_collection"),
    *("optional_items", "origin_context", "payment_intent_data", "payment_method_collection"),
    *("payment_method_configuration", "payment_method_data", "payment_method_options", "payment_method_types"),
    *("permissions", "phone_number_collection", "redirect_on_completion", "return_url", "setup_intent_data"),
    *("saved_payment_method_options", "shipping_address_collection", "shipping_options", "submit_type"),
    *("subscription_data", "success_url", "tax_id_collection", "ui_mode", "wallet_options"),
)
_SUBSCRIPTION_DATA = (
    *("application_fee_percent", "billing_cycle_anchor", "billing_mode", "default_tax_rates", "description"),
    *("invoice_settings", "metadata", "on_behalf_of", "proration_behavior", "transfer_data", "trial_end"),
    *("trial_period_days", "trial_settings"),
)


@dataclass
class Checkout:
    """`wishes` are what a session's subscription will be like, by the session's id."""

    billing: Billing
    origin: str
    wishes: dict[str, Json] = field(default_factory=dict)

    def create(self, fields: Fields) -> Json:
        """Raises: Refusal."""
        fields.only(*_KNOWN)
        _refuse_contradictions(fields)
        store, now = self.billing.store, self.billing.store.clock.now()
        customer = self._customer(fields)
        wish = self._wish(fields)
        given = self._discounts(fields, customer)
        subtotal = wish["price"]["unit_amount"] * wish["quantity"]
        total = prices.reduced(subtotal, self._coupon_of(given))
        session = shapes.checkout_session(
            now,
            self.billing.livemode,
            allow_promotion_codes=fields.flag("allow_promotion_codes"),
            amount_subtotal=subtotal,
            amount_total=0 if wish["trial_end"] else total,
            cancel_url=fields.url("cancel_url"),
            client_reference_id=fields.text("client_reference_id", limit=200),
            currency=wish["price"]["currency"],
            customer=customer,
            customer_details=None,
            customer_email=fields.text("customer_email"),
            discounts=given,
            expires_at=self._expiry(fields, now),
            locale=fields.text("locale"),
            metadata=fields.metadata(),
            mode=fields.values["mode"],
            payment_method_collection=fields.choice("payment_method_collection", "always", "if_required") or "always",
            success_url=fields.url("success_url"),
            total_details={"amount_discount": subtotal - total, "amount_shipping": 0, "amount_tax": 0},
        )
        session["url"] = f"{self.origin}/c/pay/{session['id']}"
        self.wishes[session["id"]] = wish
        return store.add(session)

    def line_items(self, session: Json) -> Json:
        """The list that an expanded session and its own address show."""
        wish = self.wishes[session["id"]]
        item = {
            "id": new_id("li"),
            "object": "item",
            "amount_discount": session["total_details"]["amount_discount"],
            "amount_subtotal": session["amount_subtotal"],
            "amount_tax": 0,
            "amount_total": session["amount_total"],
            "currency": session["currency"],
            "description": wish["price"]["nickname"],
            "price": wish["price"],
            "quantity": wish["quantity"],
        }
        return shapes.listed([item], f"/v1/checkout/sessions/{session['id']}/line_items")

    def expire(self, session: Json) -> Json:
        """Raises: Refusal unless the session is open."""
        if session["status"] != "open":
            message = 'Only Checkout Sessions with a status in ["open"] can be expired. This one has a status of'
            raise Refusal(400, f"{message} `{session['status']}`.")
        session.update(status="expired", url=None)
        self.billing.events.announce("checkout.session.expired", session)
        return session

    def pay(self, session: Json, card: str | None) -> None:
        """The page's button: the session is complete, or its subscription waits for `answer`. Raises: Refusal."""
        self._refuse_unless_open(session)
        self._check_card(session, card)
        customer = session["customer"] or self._new_customer(session)
        if card:
            self.billing.cards[customer] = card
        if session["subscription"] is None:
            subscription = self.billing.subscribe(session, self.wishes[session["id"]])
            session.update(subscription=subscription["id"])
            session.update(invoice=self.billing.start(subscription)["id"])
        invoice = self._invoice(session)
        if card == ASKING_CARD and invoice["amount_due"]:
            self.billing.events.announce("invoice.payment_action_required", invoice)
            return
        self._complete(session)

    def answer(self, session: Json, *, agrees: bool) -> None:
        """The card's owner was asked by the bank. Raises: Refusal."""
        self._refuse_unless_open(session)
        if session["subscription"] is None:
            raise Refusal(400, "Nothing waits for an answer.")
        if not agrees:
            self.billing.collect(self._invoice(session))
            raise declined()
        self.billing.cards[session["customer"]] = GOOD_CARD
        self._complete(session)

    def _complete(self, session: Json) -> None:
        invoice = self._invoice(session)
        self.billing.collect(invoice)
        customer = self.billing.store.get("customer", session["customer"])
        details = {"email": customer["email"], "name": customer["name"], "tax_exempt": "none", "tax_ids": []}
        session.update(status="complete", url=None, customer_details={"address": None, "phone": None, **details})
        session["payment_status"] = "paid" if invoice["amount_due"] else "no_payment_required"
        self.billing.events.announce("checkout.session.completed", session)

    def _invoice(self, session: Json) -> Json:
        return self.billing.store.get("invoice", session["invoice"])

    def _refuse_unless_open(self, session: Json) -> None:
        if session["status"] == "open" and self.billing.store.clock.now() >= session["expires_at"]:
            self.expire(session)
        if session["status"] != "open":
            raise Refusal(400, f"This Checkout Session is {session['status']}.")

    def _check_card(self, session: Json, card: str | None) -> None:
        is_free = session["amount_total"] == 0
        if not card:
            if is_free and session["payment_method_collection"] == "if_required":
                return
            raise Refusal(402, "Your card number is incomplete.", "incomplete_number", "number", "card_error")
        if card not in CARDS:
            raise Refusal(402, "Your card number is incorrect.", "incorrect_number", "number", "card_error")
        if card == REFUSED_CARD or (card == FAILING_LATER_CARD and not is_free):
            raise declined()

    def _customer(self, fields: Fields) -> str | None:
        id_ = fields.text("customer")
        if id_ is not None and self.billing.store.get("customer", id_, "customer", status=400).get("deleted"):
            raise no_such("customer", id_, "customer")
        return id_

    def _new_customer(self, session: Json) -> str:
        now = self.billing.store.clock.now()
        given = {"description": None, "email": session["customer_email"], "metadata": {}, "name": None}
        customer = self.billing.store.add(shapes.customer(now, self.billing.livemode, **given))
        self.billing.events.announce("customer.created", customer)
        session["customer"] = customer["id"]
        return str(customer["id"])

    def _wish(self, fields: Fields) -> Json:
        lines = fields.many("line_items")
        if not lines:
            raise missing("line_items")
        if len(lines) > 1:
            raise invalid("line_items", "This stand-in sells one price in a session.")
        line = lines[0]
        line.only(
            "adjustable_quantity", "dynamic_tax_rates", "metadata", "price", "price_data", "quantity", "tax_rates"
        )
        price = self.billing.store.get("price", line.needed("price"), line.path("price"), status=400)
        if not price["active"]:
            raise invalid(
                line.path("price"),
                f"The price specified is inactive. This field only accepts active prices: {price['id']}",
            )
        if price["recurring"] is None:
            message = "You must provide at least one recurring price in `subscription` mode when using prices."
            raise invalid(line.path("price"), message)
        quantity = line.number("quantity")
        if quantity is None:
            raise missing(line.path("quantity"))
        data = fields.inner("subscription_data")
        data.only(*_SUBSCRIPTION_DATA)
        return {"price": price, "quantity": quantity, "metadata": data.metadata(), **self._trial(data)}

    def _trial(self, data: Fields) -> Json:
        now, days, end = self.billing.store.clock.now(), data.number("trial_period_days"), data.number("trial_end")
        if days is not None and end is not None:
            raise exclusive(data.path("trial_end"), data.path("trial_period_days"))
        if days is not None and days < 1:
            raise invalid(data.path("trial_period_days"), "The minimum number of trial period days is 1.")
        behaviour = data.inner("trial_settings").inner("end_behavior")
        ends = behaviour.choice("missing_payment_method", "cancel", "create_invoice", "pause") or "create_invoice"
        return {"trial_end": now + days * DAY_S if days is not None else end, "missing_payment_method": ends}

    def _discounts(self, fields: Fields, customer: str | None) -> list[Json]:
        given = fields.many("discounts")
        if len(given) > 1:
            raise invalid("discounts", "You can only pass up to 1 discounts.")
        found = []
        for each in given:
            each.only("coupon", "promotion_code")
            coupon, promotion = each.text("coupon"), each.text("promotion_code")
            if (coupon is None) == (promotion is None):
                raise exclusive(each.path("coupon"), each.path("promotion_code"))
            self._check_discount(each, coupon, promotion, customer)
            found.append({"coupon": coupon, "promotion_code": promotion})
        return found

    def _check_discount(self, each: Fields, coupon_id: str | None, code_id: str | None, customer: str | None) -> None:
        store, now = self.billing.store, self.billing.store.clock.now()
        if code_id is not None:
            param = each.path("promotion_code")
            code = store.get("promotion_code", code_id, param, status=400)
            of_another = code["customer"] is not None and code["customer"] != customer
            if not code["active"] or of_another or not prices.is_valid({**code, "redeem_by": code["expires_at"]}, now):
                raise Refusal(400, f"This promotion code cannot be redeemed: '{code_id}'", None, param)
            coupon_id = code["promotion"]["coupon"]
        coupon = store.get("coupon", coupon_id or "", each.path("coupon"), status=400)
        if not prices.is_valid(coupon, now):
            raise Refusal(400, f"Coupon expired: {coupon_id}", "coupon_expired", each.path("coupon"))

    def _coupon_of(self, given: list[Json]) -> Json | None:
        for each in given:
            promotion = each["promotion_code"] and self.billing.store.get("promotion_code", each["promotion_code"])
            return self.billing.store.get("coupon", promotion["promotion"]["coupon"] if promotion else each["coupon"])
        return None

    @staticmethod
    def _expiry(fields: Fields, now: int) -> int:
        expiry = fields.number("expires_at")
        if expiry is None:
            return now + LONGEST_S
        if not now + SHORTEST_S - 60 <= expiry <= now + LONGEST_S + 60:
            message = (
                "The `expires_at` timestamp must be between 30 minutes and 24 hours from Checkout Session creation."
            )
            raise invalid("expires_at", message)
        return expiry


def _refuse_contradictions(fields: Fields) -> None:
    if fields.choice("mode", "payment", "setup", "subscription") is None:
        raise missing("mode")
    if fields.values["mode"] != "subscription":
        raise invalid("mode", "This stand-in sells subscriptions only.")
    if (fields.choice("ui_mode", "hosted_page", "embedded_page", "elements") or "hosted_page") != "hosted_page":
        raise invalid("ui_mode", "This stand-in has a hosted page only.")
    if not fields.has("success_url"):
        raise missing("success_url")
    for one, other in (("allow_promotion_codes", "discounts"), ("customer", "customer_email")):
        if fields.has(one) and fields.has(other):
            raise exclusive(one, other)
    if fields.has("customer_creation"):
        raise invalid("customer_creation", "`customer_creation` can only be used in `payment` mode.")
    if fields.has("payment_intent_data"):
        raise invalid("payment_intent_data", "You can not pass `payment_intent_data` in `subscription` mode.")
