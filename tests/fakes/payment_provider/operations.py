"""Operations on accounts, customers, hosted sessions, subscriptions, invoices and events."""

from __future__ import annotations

from tests.fakes.payment_provider import shapes
from tests.fakes.payment_provider.billing import ENDED
from tests.fakes.payment_provider.errors import no_such
from tests.fakes.payment_provider.form import Fields
from tests.fakes.payment_provider.routing import PAGE, Call, listed, retrieved, route
from tests.fakes.payment_provider.store import Json

_CUSTOMER = (
    *("address", "balance", "business_name", "description", "email", "expand", "individual_name", "invoice_prefix"),
    *("invoice_settings", "metadata", "name", "payment_method", "phone", "preferred_locales", "shipping", "source"),
    *("tax", "tax_exempt", "tax_id_data"),
)

# --- account, customers -----------------------------------------------------------------------------------------------


@route("GET", "/v1/account")
def account(call: Call) -> Json:
    call.fields.only("expand")
    return call.api.account


@route("POST", "/v1/customers")
def create_customer(call: Call) -> Json:
    call.fields.only(*_CUSTOMER)
    given = {name: call.fields.optional(name) for name in ("description", "email", "name")}
    customer = shapes.customer(*call.made, metadata=call.fields.metadata(), **given)
    return call.announce("customer.created", call.store.add(customer))


@route("GET", "/v1/customers")
def list_customers(call: Call) -> Json:
    return listed(call, "customer", ("email",), lambda each: not each.get("deleted"))


@route("GET", "/v1/customers/{id}")
def customer(call: Call) -> Json:
    """A deleted one is found, and says so."""
    return retrieved(call, "customer")


@route("POST", "/v1/customers/{id}")
def update_customer(call: Call) -> Json:
    call.fields.only(*_CUSTOMER, "default_source")
    customer = _living_customer(call, call.id, "id", 404)
    with call.api.billing.events.changing(customer, "customer.updated"):
        for name in ("description", "email", "name"):
            if call.fields.has(name):
                customer[name] = call.fields.optional(name)
        customer["metadata"] = call.fields.metadata(customer["metadata"])
    return customer


@route("DELETE", "/v1/customers/{id}")
def delete_customer(call: Call) -> Json:
    """The subscriptions end at once."""
    call.fields.only()
    customer = _living_customer(call, call.id, "id", 404)
    for subscription in call.store.all("subscription"):
        if subscription["customer"] == call.id and subscription["status"] not in ENDED:
            call.api.billing.end(subscription, None)
    call.announce("customer.deleted", customer)
    return call.store.add({"id": call.id, "object": "customer", "deleted": True})


def _living_customer(call: Call, id_: str, param: str, status: int = 400) -> Json:
    customer = call.store.get("customer", id_, param, status=status)
    if customer.get("deleted"):
        raise no_such("customer", id_, param, status)
    return customer


# --- hosted pages -----------------------------------------------------------------------------------------------------


@route("POST", "/v1/checkout/sessions")
def create_checkout_session(call: Call) -> Json:
    return call.api.checkout.create(call.fields)


@route("GET", "/v1/checkout/sessions")
def list_checkout_sessions(call: Call) -> Json:
    return listed(call, "checkout.session", ("customer", "status", "subscription"))


@route("GET", "/v1/checkout/sessions/{id}")
def checkout_session(call: Call) -> Json:
    return retrieved(call, "checkout.session")


@route("GET", "/v1/checkout/sessions/{id}/line_items")
def checkout_line_items(call: Call) -> Json:
    call.fields.only(*PAGE)
    return call.api.checkout.line_items(call.store.get("checkout.session", call.id))


@route("POST", "/v1/checkout/sessions/{id}/expire")
def expire_checkout_session(call: Call) -> Json:
    call.fields.only("expand")
    return call.api.checkout.expire(call.store.get("checkout.session", call.id))


@route("POST", "/v1/billing_portal/sessions")
def create_portal_session(call: Call) -> Json:
    call.fields.only("configuration", "customer", "expand", "flow_data", "locale", "on_behalf_of", "return_url")
    customer_id = call.fields.needed("customer")
    _living_customer(call, customer_id, "customer")
    session = shapes.portal_session(*call.made, customer=customer_id, return_url=call.fields.url("return_url"))
    session["url"] = f"{call.api.checkout.origin}/p/session/{session['id']}"
    return call.store.add(session)


# --- subscriptions, invoices, events ----------------------------------------------------------------------------------


@route("GET", "/v1/subscriptions")
def list_subscriptions(call: Call) -> Json:
    """Those that are canceled only for who asks for them by `status`."""
    status, price_id = call.fields.text("status"), call.fields.text("price")
    rest = {name: value for name, value in call.fields.values.items() if name not in ("status", "price")}

    def keeps(each: Json) -> bool:
        if price_id is not None and each["items"]["data"][0]["price"]["id"] != price_id:
            return False
        if status == "ended":
            return each["status"] in ENDED
        if status is None:
            return each["status"] not in ENDED
        return status in ("all", each["status"])

    return listed(Call(call.api, call.path, Fields(rest)), "subscription", ("collection_method", "customer"), keeps)


@route("GET", "/v1/subscriptions/{id}")
def subscription(call: Call) -> Json:
    return retrieved(call, "subscription")


@route("POST", "/v1/subscriptions/{id}")
def update_subscription(call: Call) -> Json:
    call.fields.only("cancel_at_period_end", "cancellation_details", "expand", "metadata")
    made = call.store.get("subscription", call.id)
    if call.fields.has("metadata"):
        with call.api.billing.events.changing(made, "customer.subscription.updated"):
            made["metadata"] = call.fields.metadata(made["metadata"])
    ends = call.fields.flag("cancel_at_period_end")
    if ends is not None:
        call.api.billing.schedule_end(made, at_period_end=ends)
    return made


@route("DELETE", "/v1/subscriptions/{id}")
def cancel_subscription(call: Call) -> Json:
    call.fields.only("cancellation_details", "expand", "invoice_now", "prorate")
    made = call.store.get("subscription", call.id)
    call.api.billing.end(made, "cancellation_requested")
    return made


@route("POST", "/v1/subscriptions/{id}/resume")
def resume_subscription(call: Call) -> Json:
    call.fields.only("billing_cycle_anchor", "expand", "proration_behavior", "proration_date")
    made = call.store.get("subscription", call.id)
    call.api.billing.resume(made)
    return made


@route("GET", "/v1/subscription_items")
def list_subscription_items(call: Call) -> Json:
    call.fields.only(*PAGE, "subscription")
    return call.store.get("subscription", call.fields.needed("subscription"), "subscription", status=400)["items"]


@route("GET", "/v1/invoices")
def list_invoices(call: Call) -> Json:
    id_ = call.fields.text("subscription")
    return listed(
        call,
        "invoice",
        ("collection_method", "customer", "status", "subscription"),
        lambda each: id_ is None or each["parent"]["subscription_details"]["subscription"] == id_,
    )


@route("GET", "/v1/invoices/{id}")
def invoice(call: Call) -> Json:
    return retrieved(call, "invoice")


@route("POST", "/v1/invoices/{id}/pay")
def pay_invoice(call: Call) -> Json:
    call.fields.only("expand", "forgive", "off_session", "paid_out_of_band", "payment_method", "source")
    return call.api.billing.pay(call.store.get("invoice", call.id))


@route("GET", "/v1/events")
def list_events(call: Call) -> Json:
    call.fields.only(*PAGE, "delivery_success", "type", "types")
    kind, kinds = call.fields.text("type"), call.fields.texts("types")
    wanted = [kind] if kind else kinds
    rest = {name: value for name, value in call.fields.values.items() if name in PAGE}
    return listed(
        Call(call.api, call.path, Fields(rest)), "event", (), lambda each: not wanted or each["type"] in wanted
    )


@route("GET", "/v1/events/{id}")
def event(call: Call) -> Json:
    return retrieved(call, "event")
