"""Objects in the shape of API version 2026-08-26.dahlia: periods on the items, an invoice's parent, a coupon's source.

Members that only other features of the provider fill are None or empty, as in a real answer.
"""

from __future__ import annotations

from typing import Any

from tests.fakes.payment_provider.store import Json, new_id

API_VERSION = "2026-08-26.dahlia"
_NO_TAX = {"disabled_reason": None, "enabled": False, "liability": None, "provider": None, "status": None}


def _made(kind: str, id_: str, now: int, livemode: bool, **members: Any) -> Json:
    return {"id": id_, "object": kind, "created": now, "livemode": livemode, **members}


def _empty(*names: str) -> Json:
    return dict.fromkeys(names)


def listed(data: list[Json], url: str) -> Json:
    """A list inside an object, with its own address."""
    return {"object": "list", "data": data, "has_more": False, "total_count": len(data), "url": url}


def account(id_: str) -> Json:
    return {
        "id": id_,
        "object": "account",
        "business_profile": {"name": "Example Gateway", "url": None},
        "charges_enabled": True,
        "country": "US",
        "created": 1_600_000_000,
        "default_currency": "usd",
        "details_submitted": True,
        "email": "billing@example.com",
        "metadata": {},
        "payouts_enabled": True,
        "settings": {"branding": {}, "dashboard": {"display_name": "Example Gateway", "timezone": "Etc/UTC"}},
        "type": "standard",
    }


def customer(now: int, livemode: bool, *, id_: str | None = None, **given: Any) -> Json:
    settings = {
        "custom_fields": None,
        "default_payment_method": None,
        "footer": None,
        "rendering_options": None,
    }
    nothing = _empty(
        "address", "currency", "customer_account", "default_source", "discount", "phone", "shipping", "test_clock"
    )
    rest = {"balance": 0, "delinquent": False, "invoice_settings": settings, "next_invoice_sequence": 1}
    prefix = new_id("x")[-8:].upper()
    return _made(
        "customer",
        id_ or new_id("cus"),
        now,
        livemode,
        **nothing,
        **rest,
        invoice_prefix=prefix,
        preferred_locales=[],
        tax_exempt="none",
        **given,
    )


def product(now: int, livemode: bool, id_: str | None, **given: Any) -> Json:
    nothing = _empty("default_price", "package_dimensions", "shippable", "statement_descriptor", "tax_code", "url")
    rest = {"images": [], "marketing_features": [], "type": "service", "unit_label": None, "updated": now}
    return _made("product", id_ or new_id("prod"), now, livemode, **nothing, **rest, **given)


def price(now: int, livemode: bool, *, interval: str | None, count: int, id_: str | None = None, **given: Any) -> Json:
    recurring = {
        "interval": interval,
        "interval_count": count,
        "meter": None,
        "trial_period_days": None,
        "usage_type": "licensed",
    }
    nothing = _empty("custom_unit_amount", "tiers_mode", "transform_quantity")
    return _made(
        "price",
        id_ or new_id("price"),
        now,
        livemode,
        **nothing,
        billing_scheme="per_unit",
        recurring=recurring if interval else None,
        tax_behavior="unspecified",
        type="recurring" if interval else "one_time",
        unit_amount_decimal=str(given["unit_amount"]),
        **given,
    )


def _plan(price: Json) -> Json:
    """The price in the words of the older Plans API, which every subscription item still has."""
    kept = ("active", "billing_scheme", "created", "currency", "livemode", "metadata", "nickname", "product")
    return {
        "id": price["id"],
        "object": "plan",
        **{name: price[name] for name in kept},
        **_empty("meter", "tiers_mode", "transform_usage", "trial_period_days"),
        "amount": price["unit_amount"],
        "amount_decimal": price["unit_amount_decimal"],
        "interval": price["recurring"]["interval"],
        "interval_count": price["recurring"]["interval_count"],
        "usage_type": "licensed",
    }


def coupon(now: int, livemode: bool, id_: str | None, **given: Any) -> Json:
    return _made(
        "coupon", id_ or new_id("x")[-8:], now, livemode, applies_to=None, times_redeemed=0, valid=True, **given
    )


def promotion_code(now: int, livemode: bool, coupon_id: str, **given: Any) -> Json:
    limits = {"first_time_transaction": False, "minimum_amount": None, "minimum_amount_currency": None}
    return _made(
        "promotion_code",
        new_id("promo"),
        now,
        livemode,
        customer_account=None,
        promotion={"coupon": coupon_id, "type": "coupon"},
        restrictions=limits,
        times_redeemed=0,
        **given,
    )


def discount(now: int, coupon_id: str, promotion_id: str | None, subscription: Json, end: int | None) -> Json:
    return {
        "id": new_id("di"),
        "object": "discount",
        **_empty("checkout_session", "customer_account", "invoice", "invoice_item", "subscription_item"),
        "customer": subscription["customer"],
        "end": end,
        "promotion_code": promotion_id,
        "source": {"coupon": coupon_id, "type": "coupon"},
        "start": now,
        "subscription": subscription["id"],
    }


def checkout_session(now: int, livemode: bool, **given: Any) -> Json:
    nothing = _empty(
        *("adaptive_pricing", "after_expiration", "billing_address_collection", "branding_settings", "client_secret"),
        *("collected_information", "consent", "consent_collection", "currency_conversion", "customer_account"),
        *("customer_creation", "invoice", "invoice_creation", "origin_context", "payment_intent", "payment_link"),
        *("payment_method_configuration_details", "permissions", "recovered_from", "return_url", "setup_intent"),
        *("shipping_address_collection", "shipping_cost", "submit_type", "subscription", "wallet_options"),
    )
    texts = _empty("after_submit", "shipping_address", "submit", "terms_of_service_acceptance")
    id_ = new_id("cs_live" if livemode else "cs_test")
    return _made(
        "checkout.session",
        id_,
        now,
        livemode,
        **nothing,
        automatic_tax=_NO_TAX,
        custom_fields=[],
        custom_text=texts,
        payment_method_options={"card": {"request_three_d_secure": "automatic"}},
        payment_method_types=["card"],
        payment_status="unpaid",
        phone_number_collection={"enabled": False},
        shipping_options=[],
        status="open",
        ui_mode="hosted_page",
        **given,
    )


def portal_session(now: int, livemode: bool, **given: Any) -> Json:
    nothing = _empty("customer_account", "flow", "locale", "on_behalf_of")
    return _made(
        "billing_portal.session",
        new_id("bps"),
        now,
        livemode,
        **nothing,
        configuration="bpc_default",
        **given,
    )


def subscription(
    now: int, livemode: bool, *, price: Json, quantity: int, period_end: int, id_: str | None = None, **given: Any
) -> Json:
    id_ = id_ or new_id("sub")
    nothing = _empty(
        *("application", "application_fee_percent", "billing_cycle_anchor_config", "billing_thresholds", "cancel_at"),
        *("canceled_at", "customer_account", "days_until_due", "default_payment_method", "default_source"),
        *("description", "ended_at", "latest_invoice", "next_pending_invoice_item_invoice", "on_behalf_of"),
        *("pause_collection", "pending_invoice_item_interval", "pending_setup_intent", "pending_update", "schedule"),
        *("test_clock", "transfer_data"),
    )
    item = {
        "id": new_id("si"),
        "object": "subscription_item",
        "billing_thresholds": None,
        "created": now,
        "current_period_end": period_end,
        "current_period_start": now,
        "discounts": [],
        "metadata": {},
        "plan": _plan(price),
        "price": price,
        "quantity": quantity,
        "subscription": id_,
        "tax_rates": [],
    }
    return _made(
        "subscription",
        id_,
        now,
        livemode,
        **nothing,
        automatic_tax=_NO_TAX,
        billing_cycle_anchor=period_end if given["trial_end"] else now,
        cancel_at_period_end=False,
        cancellation_details=_empty("comment", "feedback", "reason"),
        collection_method="charge_automatically",
        currency=price["currency"],
        default_tax_rates=[],
        discounts=[],
        invoice_settings={"account_tax_ids": None, "issuer": {"type": "self"}},
        items=listed([item], f"/v1/subscription_items?subscription={id_}"),
        payment_settings={"payment_method_types": None, "save_default_payment_method": "off"},
        start_date=now,
        **given,
    )


def invoice(now: int, subscription: Json, *, email: str | None, amounts: tuple[int, int], **given: Any) -> Json:
    """`amounts`: before and after discounts."""
    id_, item = new_id("in"), subscription["items"]["data"][0]
    subtotal, total = amounts
    details = {"metadata": subscription["metadata"], "subscription": subscription["id"]}
    nothing = _empty(
        *("account_tax_ids", "application", "custom_fields", "customer_account", "customer_address", "customer_name"),
        *("customer_phone", "customer_shipping", "default_payment_method", "default_source", "description", "due_date"),
        *("effective_at", "footer", "from_invoice", "hosted_invoice_url", "invoice_pdf", "last_finalization_error"),
        *("latest_revision", "next_payment_attempt", "number", "on_behalf_of", "receipt_number", "rendering"),
        *("shipping_cost", "shipping_details", "statement_descriptor", "test_clock", "threshold_reason"),
    )
    period = {"start": item["current_period_start"], "end": item["current_period_end"]}
    return _made(
        "invoice",
        id_,
        now,
        subscription["livemode"],
        **nothing,
        account_country="US",
        account_name="Example Gateway",
        amount_due=total,
        amount_overpaid=0,
        amount_paid=0,
        amount_remaining=total,
        amount_shipping=0,
        attempt_count=0,
        attempted=False,
        auto_advance=True,
        automatic_tax=_NO_TAX,
        collection_method="charge_automatically",
        currency=subscription["currency"],
        customer=subscription["customer"],
        customer_email=email,
        customer_tax_exempt="none",
        customer_tax_ids=[],
        default_tax_rates=[],
        discounts=list(subscription["discounts"]),
        ending_balance=None,
        issuer={"type": "self"},
        lines=listed([_line(id_, subscription, item, subtotal, period)], f"/v1/invoices/{id_}/lines"),
        metadata={},
        parent={"quote_details": None, "subscription_details": details, "type": "subscription_details"},
        payment_settings=_empty("default_mandate", "payment_method_options", "payment_method_types"),
        period_end=now,
        period_start=now,
        post_payment_credit_notes_amount=0,
        pre_payment_credit_notes_amount=0,
        starting_balance=0,
        status="draft",
        status_transitions=_empty("finalized_at", "marked_uncollectible_at", "paid_at", "voided_at"),
        subtotal=subtotal,
        subtotal_excluding_tax=subtotal,
        total=total,
        total_discount_amounts=[{"amount": subtotal - total, "discount": each} for each in subscription["discounts"]],
        total_excluding_tax=total,
        total_taxes=[],
        webhooks_delivered_at=now,
        **given,
    )


def _line(invoice_id: str, subscription: Json, item: Json, amount: int, period: Json) -> Json:
    details = {"invoice_item": None, "proration": False, "subscription": subscription["id"]}
    prices = {"price": item["price"]["id"], "product": item["price"]["product"]}
    return {
        "id": new_id("il"),
        "object": "line_item",
        "amount": amount,
        "currency": subscription["currency"],
        "description": f"{item['quantity']} × {item['price']['nickname'] or 'subscription'}",
        "discount_amounts": [],
        "discountable": True,
        "discounts": [],
        "invoice": invoice_id,
        "livemode": subscription["livemode"],
        "metadata": {},
        "parent": {
            "invoice_item_details": None,
            "subscription_item_details": {**details, "subscription_item": item["id"]},
            "type": "subscription_item_details",
        },
        "period": period,
        "pretax_credit_amounts": [],
        "pricing": {
            "price_details": prices,
            "type": "price_details",
            "unit_amount_decimal": item["price"]["unit_amount_decimal"],
        },
        "quantity": item["quantity"],
        "subtotal": amount,
        "taxes": [],
    }


def event(
    now: int, livemode: bool, kind: str, made: Json, previous: Json | None, *, id_: str | None = None, **given: Any
) -> Json:
    data = {"object": made} | ({"previous_attributes": previous} if previous else {})
    return _made("event", id_ or new_id("evt"), now, livemode, api_version=API_VERSION, data=data, type=kind, **given)
