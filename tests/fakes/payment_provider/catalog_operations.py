"""Operations on the things that are sold: products, prices, coupons and promotion codes."""

from __future__ import annotations

import re

from tests.fakes.payment_provider import prices, shapes
from tests.fakes.payment_provider.errors import Refusal, exclusive, invalid, missing
from tests.fakes.payment_provider.form import Fields
from tests.fakes.payment_provider.routing import Call, listed, retrieved, route
from tests.fakes.payment_provider.store import Json

_CODE = re.compile(r"[A-Za-z0-9_-]{1,500}")


@route("GET", "/v1/products/{id}")
def product(call: Call) -> Json:
    return retrieved(call, "product")


@route("GET", "/v1/products/{id}/features")
def product_features(call: Call) -> Json:
    """There are none."""
    call.store.get("product", call.id)
    return listed(call, "product_feature", ())


@route("GET", "/v1/prices/{id}")
def price(call: Call) -> Json:
    return retrieved(call, "price")


@route("POST", "/v1/coupons")
def create_coupon(call: Call) -> Json:
    call.fields.only(
        *("amount_off", "currency", "duration", "duration_in_months", "expand", "id", "max_redemptions", "metadata"),
        *("name", "percent_off", "redeem_by"),
    )
    percent, amount = call.fields.text("percent_off"), call.fields.number("amount_off")
    if (percent is None) == (amount is None):
        raise exclusive("amount_off", "percent_off")
    duration = call.fields.choice("duration", "forever", "once", "repeating") or "once"
    coupon = shapes.coupon(
        *call.made,
        call.fields.text("id"),
        amount_off=amount,
        currency=call.fields.needed("currency") if amount is not None else None,
        duration=duration,
        duration_in_months=call.fields.number("duration_in_months") if duration == "repeating" else None,
        max_redemptions=call.fields.number("max_redemptions"),
        metadata=call.fields.metadata(),
        name=call.fields.text("name"),
        percent_off=None if percent is None else float(percent),
        redeem_by=call.fields.number("redeem_by"),
    )
    if coupon["id"] in call.store.tables.get("coupon", {}):
        raise Refusal(400, "Coupon already exists.", "resource_already_exists", "id")
    return call.announce("coupon.created", call.store.add(coupon))


@route("GET", "/v1/coupons/{id}")
def coupon(call: Call) -> Json:
    return _judge(call, retrieved(call, "coupon"))


def _judge(call: Call, coupon: Json) -> Json:
    coupon["valid"] = prices.is_valid(coupon, call.store.clock.now())
    return coupon


@route("POST", "/v1/promotion_codes")
def create_promotion_code(call: Call) -> Json:
    call.fields.only(
        *("active", "code", "customer", "expand", "expires_at", "max_redemptions", "metadata", "promotion"),
        "restrictions",
    )
    promotion = call.fields.inner("promotion")
    promotion.only("coupon", "type")
    if promotion.choice("type", "coupon") is None:
        raise missing("promotion[type]")
    coupon_id = promotion.needed("coupon")
    call.store.get("coupon", coupon_id, "promotion[coupon]", status=400)
    code = call.fields.needed("code")
    if not _CODE.fullmatch(code):
        raise invalid("code", "Promotion codes can only contain letters, digits, dashes and underscores.")
    if any(each["active"] and each["code"].lower() == code.lower() for each in call.store.all("promotion_code")):
        raise invalid("code", "An active promotion code with `code: " + code + "` already exists.")
    made = shapes.promotion_code(
        *call.made,
        coupon_id,
        active=call.fields.flag("active") is not False,
        code=code,
        customer=call.fields.text("customer"),
        expires_at=call.fields.number("expires_at"),
        max_redemptions=call.fields.number("max_redemptions"),
        metadata=call.fields.metadata(),
    )
    return call.announce("promotion_code.created", call.store.add(made))


@route("GET", "/v1/promotion_codes")
def list_promotion_codes(call: Call) -> Json:
    """Codes are the same in capitals and small letters."""
    code, coupon_id = call.fields.text("code"), call.fields.text("coupon")
    rest = {name: value for name, value in call.fields.values.items() if name not in ("code", "coupon")}
    return listed(
        Call(call.api, call.path, Fields(rest)),
        "promotion_code",
        ("active", "customer"),
        lambda each: (
            (code is None or each["code"].lower() == code.lower())
            and (coupon_id is None or each["promotion"]["coupon"] == coupon_id)
        ),
    )


@route("POST", "/v1/promotion_codes/{id}")
def update_promotion_code(call: Call) -> Json:
    call.fields.only("active", "expand", "metadata")
    made = call.store.get("promotion_code", call.id)
    with call.api.billing.events.changing(made, "promotion_code.updated"):
        if call.fields.has("active"):
            made["active"] = call.fields.flag("active")
        made["metadata"] = call.fields.metadata(made["metadata"])
    return made
