"""POST /api/billing/checkout: the provider's page for the owner, and a provider that does not do as it should."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.test import Client as Browser

from audit.models import AdminAuditEntry
from billing import checkout, entitlements, selectors, stripe_client
from billing.errors import AlreadySubscribed, BillingProviderError
from billing.models import Subscription
from gateway.lib import clock
from orgs.models import Membership
from orgs.services.organizations import delete_organization
from tests.factories.api import Api
from tests.factories.billing import checkout_session, deliver, event, subscription, told
from tests.factories.cast import Cast
from tests.factories.races import at_once
from tests.fakes.small_stripe import Asked, SmallStripe

PATH = "/billing/checkout"
SESSIONS = "/v1/checkout/sessions"


def order(api: Api, who: str = "owner", coupon: str | None = None, **body: Any) -> Any:
    """The answer to the first organization's checkout, unless `org_id` is given."""
    members = {"org_id": str(api.cast.org.id), **({} if coupon is None else {"coupon": coupon}), **body}
    return api.send(who, "POST", PATH, members)


def url_of(answer: Any) -> str:
    """The address in a success."""
    assert answer.status_code == 200, answer.content
    (found,) = json.loads(answer.content).items()
    assert found[0] == "url"
    return str(found[1])


def said(answer: Any) -> tuple[int, str]:
    """Status and code of a refusal."""
    return answer.status_code, json.loads(answer.content)["error"]


def row_of(cast: Cast) -> Subscription:
    return Subscription.objects.get(organization_id=cast.org.pk)


def test_the_first_checkout_of_an_organization(api: Api, stripe_api: SmallStripe) -> None:
    url = url_of(order(api))
    (customer,), (session,) = stripe_api.customers.values(), stripe_api.sessions.values()
    assert url == session["url"]
    org_id, base = str(api.cast.org.id), f"http://testserver/orgs/{api.cast.org.id}/billing"
    assert customer["fields"] == {"name": "Acme", "metadata[organization_id]": org_id}
    assert session["fields"] == {
        "mode": "subscription",
        "customer": customer["id"],
        "line_items[0][price]": "price_flat",
        "line_items[0][quantity]": "1",
        "client_reference_id": org_id,
        "metadata[organization_id]": org_id,
        "subscription_data[metadata][organization_id]": org_id,
        "success_url": f"{base}?checkout=done",
        "cancel_url": f"{base}?checkout=canceled",
    }
    row = row_of(api.cast)
    assert (row.customer_id, row.checkout_session_id, row.status) == (customer["id"], session["id"], "none")
    assert selectors.plan_of(api.cast.org).pending_checkout
    # Nothing of the plan has changed.
    assert not entitlements.is_active(api.cast.org)
    assert not AdminAuditEntry.objects.exists()


def test_a_request_to_the_provider(api: Api, stripe_api: SmallStripe) -> None:
    url_of(order(api))
    for asked in stripe_api.asked:
        assert asked.headers["authorization"] == "Bearer sk_test_of_the_suite"
        assert asked.headers["stripe-version"] == "2026-08-26.dahlia"
        assert asked.headers["user-agent"] == "mcp-gateway"
        assert not [name for name in asked.headers if name.startswith("x-stripe")]
        if asked.method == "POST":
            assert asked.headers["idempotency-key"]


def test_an_owner_names_the_organization_or_the_earliest_one_counts(api: Api, stripe_api: SmallStripe) -> None:
    url_of(api.send("owner", "POST", PATH, {}))
    url_of(order(api, "other_owner", org_id=str(api.cast.other_org.id)))
    organizations = [each["fields"]["metadata[organization_id]"] for each in stripe_api.customers.values()]
    assert organizations == [str(api.cast.org.id), str(api.cast.other_org.id)]


@pytest.mark.parametrize(
    ("who", "status"), [("nobody", 401), ("member", 403), ("admin", 403), ("other_owner", 404), ("stranger", 404)]
)
@pytest.mark.parametrize("mode", ["stripe", "manual", "disabled"])
def test_only_an_owner(api: Api, by_provider: None, settings: LazySettings, who: str, status: int, mode: str) -> None:
    settings.BILLING_MODE = mode
    assert order(api, who).status_code == status
    assert order(api, "owner", org_id=str(uuid4())).status_code == 404


@pytest.mark.parametrize("mode", ["manual", "disabled"])
def test_without_a_provider(api: Api, by_provider: None, settings: LazySettings, mode: str) -> None:
    settings.BILLING_MODE = mode
    assert said(order(api)) == (503, "billing_unavailable")
    assert said(order(api, coupon="SAVE\u0000")) == (400, "invalid_json")


def test_the_way_back_is_ours(api: Api, stripe_api: SmallStripe) -> None:
    evil = {"success_url": "https://evil.example", "return_url": "https://evil.example", "price": "price_free"}
    url_of(order(api, **evil))
    assert "evil" not in repr(stripe_api.asked)
    assert stripe_api.sessions["cs_1"]["fields"]["line_items[0][price]"] == "price_flat"


def test_a_second_click_gets_the_same_page(api: Api, stripe_api: SmallStripe) -> None:
    assert url_of(order(api)) == url_of(order(api)) == url_of(order(api, coupon=""))
    assert len(stripe_api.sessions) == len(stripe_api.customers) == 1


def test_another_owner_gets_the_same_page(api: Api, stripe_api: SmallStripe) -> None:
    Membership.objects.filter(user=api.cast.user("admin")).update(role="owner")
    assert url_of(order(api)) == url_of(order(api, "admin"))


@pytest.mark.parametrize("status", ["expired", "complete"])
def test_a_session_that_is_over_is_followed_by_another(api: Api, stripe_api: SmallStripe, status: str) -> None:
    """A completed one too, when its subscription has ended since."""
    first = url_of(order(api))
    stripe_api.sessions["cs_1"].update(status=status, url=None)
    assert url_of(order(api)) != first
    assert row_of(api.cast).checkout_session_id == "cs_2"


def test_a_session_that_the_provider_has_forgotten(api: Api, stripe_api: SmallStripe) -> None:
    url_of(order(api))
    del stripe_api.sessions["cs_1"]
    stripe_api.sessions["cs_0"] = {"id": "cs_0", "customer": "cus_0"}
    assert url_of(order(api)).endswith("/pay/cs_2")


def test_other_terms_close_the_open_session(api: Api, stripe_api: SmallStripe, settings: LazySettings) -> None:
    """Of two open ones both could be paid."""
    url_of(order(api))
    stripe_api.coupons["HALF"] = {"id": "HALF", "valid": True}
    url_of(order(api, coupon="HALF"))
    settings.STRIPE_PRICE_ID = "price_other"
    url_of(order(api, coupon="HALF"))
    assert [each["status"] for each in stripe_api.sessions.values()] == ["expired", "expired", "open"]


def test_a_completed_checkout_is_over(api: Api, stripe_api: SmallStripe) -> None:
    url_of(order(api))
    row = row_of(api.cast)
    assert row.customer_id
    session = checkout_session(str(api.cast.org.id), key=row.checkout_session_id, customer=row.customer_id)
    deliver(event("checkout.session.completed", session))
    deliver(told("active", customer=row.customer_id))
    plan = selectors.plan_of(api.cast.org)
    assert (plan.pending_checkout, plan.state, plan.has_customer) == (False, "active", True)
    assert said(order(api)) == (409, "already_subscribed")


@pytest.mark.parametrize("status", ["active", "trialing", "past_due", "unpaid"])
def test_a_second_subscription_is_refused(api: Api, stripe_api: SmallStripe, status: str) -> None:
    Subscription.objects.create(organization_id=api.cast.org.pk, customer_id="cus_1")
    deliver(told(status))
    assert said(order(api)) == (409, "already_subscribed")
    assert stripe_api.asked == []


@pytest.mark.parametrize("status", ["active", "trialing", "past_due", "unpaid"])
def test_a_second_subscription_is_refused_before_its_event_has_arrived(
    api: Api, stripe_api: SmallStripe, status: str
) -> None:
    """A second click does not pay twice, while the event is on its way or after it was lost."""
    url_of(order(api))
    stripe_api.subscriptions["sub_1"] = subscription(status)
    stripe_api.sessions["cs_1"].update(status="complete", url=None)
    assert said(order(api)) == (409, "already_subscribed")
    # The state is the events' alone.
    assert not entitlements.is_active(api.cast.org)
    assert len(stripe_api.sessions) == 1


@pytest.mark.parametrize("status", ["canceled", "incomplete", "paused"])
def test_who_does_not_pay_can_come_back(api: Api, stripe_api: SmallStripe, status: str) -> None:
    stripe_api.customers["cus_1"] = {"id": "cus_1"}
    stripe_api.subscriptions["sub_1"] = subscription(status)
    Subscription.objects.create(organization_id=api.cast.org.pk, customer_id="cus_1")
    deliver(told(status))
    assert url_of(order(api)).endswith("/pay/cs_1")
    assert stripe_api.sessions["cs_1"]["fields"]["customer"] == "cus_1"


def test_a_plan_that_was_given_by_hand_is_no_subscription(api: Api, stripe_api: SmallStripe) -> None:
    """The deployment billed by hand before."""
    Subscription.objects.create(organization_id=api.cast.org.pk, status="active")
    url_of(order(api))


def test_a_customer_that_the_provider_has_deleted(api: Api, stripe_api: SmallStripe) -> None:
    url_of(order(api))
    del stripe_api.customers["cus_1"]
    stripe_api.customers["cus_9"] = {"id": "cus_9"}
    stripe_api.sessions.clear()
    url_of(order(api))
    assert row_of(api.cast).customer_id == "cus_2"
    assert said(api.send("other_owner", "POST", "/billing/portal", {})) == (409, "no_billing_account")


def test_coupons_and_promotion_codes(api: Api, stripe_api: SmallStripe) -> None:
    stripe_api.coupons |= {"HALF": {"id": "HALF", "valid": True}, "a b/ü": {"id": "a b/ü", "valid": True}}
    stripe_api.promotion_codes["WELCOME"] = "promo_1"
    url_of(order(api, coupon="WELCOME"))
    url_of(order(api, coupon=" HALF "))
    url_of(order(api, coupon="a b/ü"))
    discounts = [
        {name: value for name, value in each["fields"].items() if name.startswith("discounts")}
        for each in stripe_api.sessions.values()
    ]
    assert discounts == [
        {"discounts[0][promotion_code]": "promo_1"},
        {"discounts[0][coupon]": "HALF"},
        {"discounts[0][coupon]": "a b/ü"},
    ]


@pytest.mark.parametrize("coupon", ["NOPE", "GONE", ".", "..", "../customers", "half", "used-up", "?x=1", "%2e"])
def test_coupons_that_are_none(api: Api, stripe_api: SmallStripe, coupon: str) -> None:
    """Unknown, no longer valid, refused for this customer, or another address."""
    stripe_api.coupons |= {"HALF": {"id": "HALF", "valid": True}, "GONE": {"id": "GONE", "valid": False}}
    stripe_api.coupons["used-up"] = {"id": "used-up", "valid": True}
    assert said(order(api, coupon=coupon)) == (422, "invalid_coupon")
    assert not stripe_api.sessions


@pytest.mark.parametrize(
    "coupon", ["SAVE\n10", "SAVE\u0000", "\u202eEVAS", "SAVE\u200b", "x" * 101, 7, ["A"], {"a": 1}, True]
)
def test_coupons_that_are_malformed(api: Api, stripe_api: SmallStripe, coupon: object) -> None:
    answer = api.send("owner", "POST", PATH, {"org_id": str(api.cast.org.id), "coupon": coupon})
    assert answer.status_code == 400
    assert stripe_api.asked == []


def test_no_coupon_has_several_spellings(api: Api, stripe_api: SmallStripe) -> None:
    for body in ({}, {"coupon": None}, {"coupon": ""}, {"coupon": "  "}):
        assert api.send("owner", "POST", PATH, body).status_code == 200
    assert len(stripe_api.sessions) == 1


GARBAGE: dict[str, tuple[int, dict[str, str], bytes]] = {
    "a page": (200, {"Content-Type": "text/html"}, b"<html>secret-word</html>"),
    "nothing": (200, {}, b""),
    "half an object": (200, {}, b'{"id": "cus_1"'),
    "an array": (200, {}, b"[]"),
    "null": (200, {}, b"null"),
    "no UTF-8": (200, {}, b"\xff\xfe"),
    "deep": (200, {}, b'{"a":' * 2_000 + b"1" + b"}" * 2_000),
    "another object": (200, {}, b'{"object": "list"}'),
    "an id that is none": (200, {}, b'{"id": {"id": 7}, "data": {}}'),
    "large": (200, {}, b'{"id": "' + b"x" * 2_000_000 + b'"}'),
    "a redirect": (302, {"Location": "http://127.0.0.1:1/elsewhere"}, b""),
    "a redirect with a body": (307, {"Location": "https://example.com/"}, b'{"id": "cus_1", "url": "https://x"}'),
    "an error without words": (500, {}, b""),
    "an error page": (503, {}, b"<html>"),
    "an error that is none": (400, {}, b'{"error": []}'),
    "an error of odd types": (400, {}, b'{"error": {"code": [], "param": {}, "type": 7, "message": {}}}'),
    "a refused key": (
        401,
        {},
        b'{"error": {"type": "invalid_request_error", "message": "Invalid API Key: secret-word"}}',
    ),
    "no right": (403, {}, b'{"error": {"type": "invalid_request_error"}}'),
    "too often": (429, {}, b'{"error": {"type": "rate_limit"}}'),
    "teapot": (418, {}, b"{}"),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_a_provider_that_answers_garbage(
    api: Api, stripe_api: SmallStripe, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    stripe_api.respond = lambda asked: GARBAGE[name]
    answer = order(api)
    assert said(answer) == (502, "billing_provider_error")
    assert "secret-word" not in answer.content.decode() + caplog.text
    assert "of_the_suite" not in answer.content.decode() + caplog.text
    row = Subscription.objects.filter(organization_id=api.cast.org.pk).first()
    assert row is None or (row.customer_id, row.checkout_session_id) == (None, "")


@pytest.mark.parametrize(
    "url",
    [
        None,
        "",
        7,
        "javascript:alert(1)",
        "ftp://pay.example/",
        "//pay.example",
        "/pay",
        "https://",
        "https://pay.example/\r\nX: y",
        "https://pay example/",
        "https://[",
        "https://checkout.stripe.com@pay.example/",
        "https://pay.example\\@checkout.stripe.com/",
        "https:\\\\pay.example/",
        "https://pay.example/" + "x" * 5_000,
    ],
)
def test_a_page_that_no_browser_is_sent_to(api: Api, stripe_api: SmallStripe, url: object) -> None:
    def respond(asked: Asked) -> tuple[int, dict[str, str], bytes] | None:
        if (asked.method, asked.path) != ("POST", SESSIONS):
            return None
        return 200, {}, json.dumps({"id": "cs_1", "status": "open", "url": url}).encode()

    stripe_api.respond = respond
    assert said(order(api)) == (502, "billing_provider_error")
    assert row_of(api.cast).checkout_session_id == ""


def test_a_provider_that_is_away(api: Api, by_provider: None) -> None:
    assert said(order(api)) == (502, "billing_provider_error")
    assert said(order(api, coupon="HALF")) == (502, "billing_provider_error")


def test_a_provider_that_is_slow(api: Api, stripe_api: SmallStripe, monkeypatch: pytest.MonkeyPatch) -> None:
    """One request has its time, and all together have theirs."""
    answered = threading.Event()
    monkeypatch.setattr(stripe_client, "TIMEOUT_S", 0.2)

    def respond(asked: Asked) -> None:
        answered.wait(60)

    stripe_api.respond = respond
    try:
        assert said(order(api)) == (502, "billing_provider_error")
        monkeypatch.setattr(checkout, "SECONDS", 0.0)
        asked_before = len(stripe_api.asked)
        assert said(order(api)) == (502, "billing_provider_error")
        assert len(stripe_api.asked) == asked_before
    finally:
        answered.set()


def test_what_was_made_before_a_failure_is_used_again(api: Api, stripe_api: SmallStripe) -> None:
    """The customer was made and its answer lost: the same request gets the same customer."""
    lost = True

    def respond(asked: Asked) -> tuple[int, dict[str, str], bytes] | None:
        nonlocal lost
        if asked.path == "/v1/customers" and lost:
            lost = False
            stripe_api.answer(asked)
            return 500, {}, b""
        return None

    stripe_api.respond = respond
    assert said(order(api)) == (502, "billing_provider_error")
    url_of(order(api))
    assert list(stripe_api.customers) == ["cus_1"]


def test_a_private_address_needs_leave(api: Api, stripe_api: SmallStripe, settings: LazySettings) -> None:
    settings.STRIPE_API_IS_PRIVATE = False
    assert said(order(api)) == (502, "billing_provider_error")
    assert stripe_api.asked == []


def test_a_slow_provider_holds_few_threads(api: Api, stripe_api: SmallStripe, settings: LazySettings) -> None:
    org_id = api.cast.org.pk
    taken = [checkout.slots.take(org_id) for _ in range(settings.CONCURRENT_PROVIDER_REQUESTS_OF_ORGANIZATION)]
    try:
        answer = order(api)
        assert said(answer) == (503, "overloaded")
        assert answer["Retry-After"] == "2"
        assert order(api, "other_owner", org_id=str(api.cast.other_org.id)).status_code == 200
    finally:
        for _ in taken:
            checkout.slots.give_back(org_id)
    url_of(order(api))


def test_two_owners_at_once_get_one_page(committed_api: Api, stripe_api: SmallStripe) -> None:
    cast = committed_api.cast
    Membership.objects.filter(user=cast.user("admin")).update(role="owner")
    for _ in range(3):
        answers = at_once(*(lambda who=who: order(committed_api, who) for who in ("owner", "admin", "owner", "admin")))  # type: ignore[misc]
        assert len({url_of(answer) for answer in answers}) == 1
        assert [each["status"] for each in stripe_api.sessions.values()].count("open") == 1
        for each in stripe_api.sessions.values():
            each.update(status="expired", url=None)
    assert len(stripe_api.customers) == 1


def test_two_owners_at_once_while_the_customer_is_made(
    committed_api: Api, stripe_api: SmallStripe, monkeypatch: pytest.MonkeyPatch
) -> None:
    Membership.objects.filter(user=committed_api.cast.user("admin")).update(role="owner")
    is_making, go_on, is_through = threading.Event(), threading.Event(), threading.Event()

    def before(asked: Asked) -> None:
        if asked.path == "/v1/customers":
            is_making.set()
            assert go_on.wait(60)

    def pause(seconds: float) -> None:
        go_on.set()
        assert is_through.wait(60)

    def second() -> Any:
        assert is_making.wait(60)
        try:
            return order(committed_api, "admin")
        finally:
            go_on.set()

    def first() -> Any:
        try:
            return order(committed_api, "owner")
        finally:
            is_through.set()

    monkeypatch.setattr(checkout, "pause", pause)
    stripe_api.before = before
    assert len({url_of(answer) for answer in at_once(first, second)}) == 1
    assert len(stripe_api.customers) == 1


def test_two_owners_at_once_with_different_coupons(committed_api: Api, stripe_api: SmallStripe) -> None:
    cast = committed_api.cast
    Membership.objects.filter(user=cast.user("admin")).update(role="owner")
    stripe_api.coupons |= {name: {"id": name, "valid": True} for name in ("HALF", "THIRD")}
    answers = at_once(
        lambda: order(committed_api, "owner", coupon="HALF"), lambda: order(committed_api, "admin", coupon="THIRD")
    )
    assert all(url_of(answer) for answer in answers)
    (last,) = [each for each in stripe_api.sessions.values() if each["status"] == "open"]
    assert row_of(cast).checkout_session_id == last["id"]
    assert last["url"] in {url_of(answer) for answer in answers}


def test_no_lock_is_held_while_the_provider_is_asked(committed_api: Api, stripe_api: SmallStripe) -> None:
    """Another checkout and a webhook of the organization go through while its first request waits."""
    waiting, go_on = threading.Event(), threading.Event()

    def before(asked: Asked) -> None:
        if asked.path == "/v1/customers":
            waiting.set()
            go_on.wait(60)

    stripe_api.before = before
    stripe_api.customers["cus_7"] = {"id": "cus_7"}

    def meanwhile() -> int:
        assert waiting.wait(60)
        try:
            session = checkout_session(str(committed_api.cast.org.id), customer="cus_7")
            return deliver(event("checkout.session.completed", session)).status_code
        finally:
            go_on.set()

    answer, status = at_once(lambda: order(committed_api), meanwhile)
    assert status == 200
    # The customer that became known meanwhile stays.
    assert row_of(committed_api.cast).customer_id == "cus_7"
    assert stripe_api.sessions["cs_1"]["fields"]["customer"] == "cus_7"
    assert url_of(answer) == stripe_api.sessions["cs_1"]["url"]


def test_an_organization_that_is_deleted_meanwhile_leaves_no_open_page(
    committed_api: Api, stripe_api: SmallStripe
) -> None:
    cast = committed_api.cast

    def respond(asked: Asked) -> None:
        # After the last look at the row, and before the session is kept.
        if (asked.method, asked.path) == ("POST", SESSIONS):
            at_once(lambda: delete_organization(actor=cast.user("owner"), organization=cast.org))

    stripe_api.respond = respond
    assert said(order(committed_api)) == (404, "not_found")
    assert [each["status"] for each in stripe_api.sessions.values()] == ["expired"]


def test_an_owner_who_is_one_no_more_leaves_no_open_page(committed_api: Api, stripe_api: SmallStripe) -> None:
    cast = committed_api.cast

    def respond(asked: Asked) -> None:
        if (asked.method, asked.path) == ("POST", SESSIONS):
            rows = Membership.objects.filter(user=cast.user("owner"))
            at_once(lambda: rows.update(role="member"))

    stripe_api.respond = respond
    assert said(order(committed_api)) == (403, "forbidden")
    assert [each["status"] for each in stripe_api.sessions.values()] == ["expired"]


def test_a_checkout_that_always_finds_another_one_under_way(
    api: Api, stripe_api: SmallStripe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider is at the same request of another process."""
    pauses: list[float] = []
    monkeypatch.setattr(checkout, "pause", pauses.append)
    refused = {"error": {"type": "idempotency_error", "code": "idempotency_key_in_use", "message": "x"}}

    def respond(asked: Asked) -> tuple[int, dict[str, str], bytes] | None:
        return (409, {}, json.dumps(refused).encode()) if (asked.method, asked.path) == ("POST", SESSIONS) else None

    stripe_api.respond = respond
    assert said(order(api)) == (502, "billing_provider_error")
    assert len(pauses) == stripe_api.count("POST", SESSIONS) > 1


def test_an_open_checkout_is_pending_for_a_day(api: Api, stripe_api: SmallStripe) -> None:
    url_of(order(api))
    assert selectors.plan_of(api.cast.org, clock.now() + timedelta(hours=23)).pending_checkout
    assert not selectors.plan_of(api.cast.org, clock.now() + timedelta(hours=25)).pending_checkout


def test_services_refuse_as_the_api_does(cast: Cast, stripe_api: SmallStripe) -> None:
    Subscription.objects.create(organization_id=cast.org.pk, customer_id="cus_1")
    deliver(told("active"))
    with pytest.raises(AlreadySubscribed):
        checkout.start_checkout(actor=cast.user("owner"), organization=cast.org)
    stripe_api.respond = lambda asked: (500, {}, b"")
    with pytest.raises(BillingProviderError):
        checkout.start_checkout(actor=cast.user("other_owner"), organization=cast.other_org)


@pytest.mark.parametrize("who", ["owner", "nobody"])
def test_a_foreign_page_cannot_begin_a_checkout(api: Api, stripe_api: SmallStripe, who: str) -> None:
    browser: Browser = api.cast.client(who)
    headers = {"Sec-Fetch-Site": "cross-site"}
    answer = browser.generic("POST", "/api" + PATH, b"{}", content_type="application/json", headers=headers)
    assert answer.status_code == 403
    assert stripe_api.asked == []
