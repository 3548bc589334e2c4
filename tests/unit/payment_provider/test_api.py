"""The stand-in's HTTP API, asked by the provider's own SDK and by hand."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import stripe

from tests.fakes.payment_provider.running import PRICE_ID, SECRET_KEY, PaymentProvider
from tests.unit.payment_provider.conftest import Customer

AUTHORIZED = {"Authorization": f"Bearer {SECRET_KEY}"}


def test_the_account_and_the_price(client: stripe.StripeClient) -> None:
    assert client.v1.accounts.retrieve_current().id.startswith("acct_")
    price = client.v1.prices.retrieve(PRICE_ID, {"expand": ["product"]})
    assert (price.recurring.interval, price.unit_amount, price.product.name) == ("month", 9_900, "Gateway")


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer sk_test_another"}, {"Authorization": "Digest x"}])
def test_a_wrong_key_is_refused(provider: PaymentProvider, headers: dict[str, str]) -> None:
    answer = provider.http.get("/v1/account", headers=headers)
    assert answer.status_code == 401
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert "sk_test_another" not in answer.text


def test_the_key_as_a_user_name(provider: PaymentProvider) -> None:
    assert provider.http.get("/v1/account", auth=(SECRET_KEY, "")).status_code == 200


def test_an_api_version(provider: PaymentProvider) -> None:
    good = provider.http.get("/v1/account", headers={**AUTHORIZED, "Stripe-Version": "2026-05-27.dahlia"})
    assert good.headers["Stripe-Version"] == "2026-05-27.dahlia"
    bad = provider.http.get("/v1/account", headers={**AUTHORIZED, "Stripe-Version": "newest"})
    assert (bad.status_code, bad.json()["error"]["message"]) == (400, "Invalid Stripe API version: newest")


def test_a_customer_is_made_changed_and_deleted(client: stripe.StripeClient, customer: Customer) -> None:
    changed = client.v1.customers.update(customer.id, {"name": "Acme", "metadata": {"plan": "flat"}})
    assert (changed.name, changed.metadata.to_dict()) == ("Acme", {"organization": "one", "plan": "flat"})
    subscription = customer.subscribe()
    assert client.v1.customers.delete(customer.id).deleted is True
    assert client.v1.customers.retrieve(customer.id).deleted is True
    assert customer.status(subscription) == "canceled"
    with pytest.raises(stripe.InvalidRequestError) as refused:
        customer.checkout()
    assert (refused.value.code, refused.value.param) == ("resource_missing", "customer")


@pytest.mark.parametrize(
    ("change", "code", "param"),
    [
        ({"nonsense": "1"}, "parameter_unknown", "nonsense"),
        ({"mode": None}, "parameter_missing", "mode"),
        ({"success_url": None}, "parameter_missing", "success_url"),
        ({"success_url": "not an address"}, "url_invalid", "success_url"),
        ({"line_items": None}, "parameter_missing", "line_items"),
        ({"line_items": [{"price": "price_none", "quantity": 1}]}, "resource_missing", "line_items[0][price]"),
        ({"line_items": [{"price": PRICE_ID}]}, "parameter_missing", "line_items[0][quantity]"),
        ({"customer": "cus_none"}, "resource_missing", "customer"),
        ({"customer": ""}, "parameter_invalid_empty", "customer"),
        ({"customer_email": "a@example.com"}, None, "customer"),
        ({"customer_creation": "always"}, None, "customer_creation"),
        ({"client_reference_id": "x" * 201}, "parameter_invalid_string_length", "client_reference_id"),
        ({"discounts": [{"coupon": "none"}]}, "resource_missing", "discounts[0][coupon]"),
        ({"discounts": [{"promotion_code": "WELCOME"}]}, "resource_missing", "discounts[0][promotion_code]"),
        ({"discounts": [], "allow_promotion_codes": True, "expires_at": 5}, None, "expires_at"),
        ({"subscription_data": {"trial_period_days": 0}}, None, "subscription_data[trial_period_days]"),
        ({"subscription_data": {"coupon": "x"}}, "parameter_unknown", "subscription_data[coupon]"),
    ],
)
def test_checkout_parameters_are_refused(
    customer: Customer, change: dict[str, Any], code: str | None, param: str
) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        customer.checkout(**change)
    assert (refused.value.http_status, refused.value.code, refused.value.param) == (400, code, param)


def test_a_discount_and_a_field_for_codes_exclude_each_other(client: stripe.StripeClient, customer: Customer) -> None:
    coupon = client.v1.coupons.create({"percent_off": 10, "duration": "forever"})
    with pytest.raises(stripe.InvalidRequestError, match="only specify one of these parameters"):
        customer.checkout(discounts=[{"coupon": coupon.id}], allow_promotion_codes=True)


def test_an_unknown_path_and_an_unknown_object(client: stripe.StripeClient, provider: PaymentProvider) -> None:
    assert provider.http.get("/v1/moon", headers=AUTHORIZED).status_code == 404
    assert provider.http.put("/v1/customers", headers=AUTHORIZED).status_code == 404
    with pytest.raises(stripe.InvalidRequestError) as refused:
        client.v1.subscriptions.retrieve("sub_none")
    assert (refused.value.http_status, refused.value.code, refused.value.param) == (404, "resource_missing", "id")


def test_a_quoted_identifier_is_one_part_of_the_path(provider: PaymentProvider) -> None:
    answer = provider.http.get("/v1/coupons/..%2Fcustomers", headers=AUTHORIZED)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "resource_missing")


@pytest.mark.parametrize("path", ["subscriptions", "invoices", "checkout/sessions"])
def test_lists_of_a_customer(provider: PaymentProvider, customer: Customer, path: str) -> None:
    subscription = customer.subscribe()
    customer.client.v1.customers.delete(customer.id)
    own = provider.http.get(f"/v1/{path}", params={"customer": customer.id, "limit": 3}, headers=AUTHORIZED)
    assert own.status_code == 200, "a deleted customer still has its past"
    assert (subscription in own.text) is (path != "subscriptions"), "those that have ended are shown on demand"
    unknown = provider.http.get(f"/v1/{path}", params={"customer": "cus_none"}, headers=AUTHORIZED)
    refusal = unknown.json()["error"]
    assert (unknown.status_code, refusal["code"], refusal["param"]) == (400, "resource_missing", "customer")


def test_bodies_that_are_no_form(provider: PaymentProvider) -> None:
    as_json = provider.http.post("/v1/customers", json={"email": "a@example.com"}, headers=AUTHORIZED)
    assert (as_json.status_code, as_json.json()["error"]["type"]) == (400, "invalid_request_error")
    form = {**AUTHORIZED, "Content-Type": "application/x-www-form-urlencoded"}
    assert provider.http.post("/v1/customers", content=b"\xff", headers=form).status_code == 400
    assert provider.http.post("/v1/customers", content=b"a[b=1", headers=form).status_code == 400


def test_an_idempotency_key_gets_the_first_answer_again(client: stripe.StripeClient, provider: PaymentProvider) -> None:
    options: Any = {"idempotency_key": "the-same"}
    first = client.v1.customers.create({"email": "once@example.com"}, options)
    again = client.v1.customers.create({"email": "once@example.com"}, options)
    assert first.id == again.id
    assert again.last_response.headers["Idempotent-Replayed"] == "true"
    with pytest.raises(stripe.IdempotencyError) as refused:
        client.v1.customers.create({"email": "other@example.com"}, options)
    assert refused.value.http_status == 400
    assert len(client.v1.customers.list({"email": "once@example.com"}).data) == 1
    provider.advance(days=1)
    assert client.v1.customers.create({"email": "other@example.com"}, options).id != first.id


def test_a_refusal_by_execution_is_kept_and_one_of_the_parameters_is_not(client: stripe.StripeClient) -> None:
    session = {
        "mode": "subscription",
        "line_items": [{"price": PRICE_ID, "quantity": 1}],
        "success_url": "http://127.0.0.1:1/done",
        "discounts": [{"coupon": "later"}],
    }
    for key, expected in (("kept", True), ("not-kept", False)):
        given: Any = session if expected else {**session, "nonsense": "1"}
        options: Any = {"idempotency_key": key}
        with pytest.raises(stripe.InvalidRequestError):
            client.v1.checkout.sessions.create(given, options)
        with pytest.raises(stripe.InvalidRequestError) as again:
            client.v1.checkout.sessions.create(given, options)
        assert ("Idempotent-Replayed" in again.value.headers) is expected


def test_a_key_in_use_is_refused(provider: PaymentProvider) -> None:
    headers = {**AUTHORIZED, "Idempotency-Key": "in-use"}
    provider.control("fault", kind="slow", seconds=3_600.0)
    with pytest.raises(httpx.ReadTimeout):
        provider.http.post("/v1/customers", headers=headers, timeout=0.2)
    answer = provider.http.post("/v1/customers", headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "idempotency_key_in_use")


def test_lists_have_pages(client: stripe.StripeClient) -> None:
    made = [client.v1.customers.create({"email": "pages@example.com"}).id for _ in range(5)]
    first = client.v1.customers.list({"email": "pages@example.com", "limit": 2})
    assert ([each.id for each in first.data], first.has_more, first.url) == (made[:2:-1], True, "/v1/customers")
    assert [each.id for each in first.auto_paging_iter()] == made[::-1]
    back = client.v1.customers.list({"email": "pages@example.com", "limit": 2, "ending_before": made[0]})
    assert ([each.id for each in back.data], back.has_more) == ([made[2], made[1]], True)
    for bad in ({"limit": 0}, {"limit": 101}, {"starting_after": "cus_none"}):
        with pytest.raises(stripe.InvalidRequestError):
            client.v1.customers.list(bad)  # type: ignore[arg-type]


def test_a_promotion_code_is_found_by_its_code(client: stripe.StripeClient, customer: Customer) -> None:
    coupon = client.v1.coupons.create({"id": "HALF", "percent_off": 50, "duration": "once", "max_redemptions": 1})
    code = client.v1.promotion_codes.create({"promotion": {"type": "coupon", "coupon": coupon.id}, "code": "Welcome"})
    (found,) = client.v1.promotion_codes.list({"code": "WELCOME", "active": True}).data
    assert (found.id, found.promotion.coupon) == (code.id, "HALF")
    session = customer.checkout(discounts=[{"promotion_code": code.id}])
    assert (session.amount_subtotal, session.amount_total) == (9_900, 4_950)
    assert customer.provider.pay(session.url or "").status_code == 303
    assert client.v1.coupons.retrieve("HALF").valid is False
    with pytest.raises(stripe.InvalidRequestError) as refused:
        customer.checkout(discounts=[{"coupon": "HALF"}])
    assert refused.value.code == "coupon_expired"
    client.v1.promotion_codes.update(code.id, {"active": False})
    assert client.v1.promotion_codes.list({"code": "WELCOME", "active": True}).data == []


def test_an_older_version_has_periods_on_top(client: stripe.StripeClient, customer: Customer) -> None:
    subscription = customer.subscribe()
    old: Any = {"stripe_version": "2024-06-20"}
    aged = client.v1.subscriptions.retrieve(subscription, None, old).to_dict()
    current = client.v1.subscriptions.retrieve(subscription).to_dict()
    assert "current_period_end" not in current
    assert aged["current_period_end"] == current["items"]["data"][0]["current_period_end"]
    invoice = client.v1.invoices.retrieve(current["latest_invoice"], None, old).to_dict()
    assert invoice["subscription"] == subscription


@pytest.mark.parametrize("kind", ["status", "garbage", "redirect", "cut", "list", "null", "huge"])
def test_faults_are_played_once_and_the_operation_is_not_carried_out(
    provider: PaymentProvider, client: stripe.StripeClient, kind: str
) -> None:
    provider.control("fault", kind=kind, path="/v1/customers")
    email = f"{kind}@example.com"
    try:
        answer = provider.http.post("/v1/customers", data={"email": email}, headers=AUTHORIZED)
        assert answer.status_code in (200, 307, 503)
    except httpx.RemoteProtocolError:
        assert kind == "cut"
    assert client.v1.customers.list({"email": email}).data == []


def test_an_answer_that_is_lost(provider: PaymentProvider, client: stripe.StripeClient) -> None:
    provider.control("fault", kind="cut", works=True)
    options: Any = {"idempotency_key": "lost-answer"}
    with pytest.raises(stripe.APIConnectionError):
        client.v1.customers.create({"email": "lost@example.com"}, options)
    again = client.v1.customers.create({"email": "lost@example.com"}, options)
    assert [each.id for each in client.v1.customers.list({"email": "lost@example.com"}).data] == [again.id]
    seen = provider.control("requests")["requests"][-2]
    assert (seen["idempotency_key"], seen["replayed"], seen["parameters"]) == (
        "lost-answer",
        True,
        {"email": "lost@example.com"},
    )
    assert SECRET_KEY not in str(provider.control("requests"))
