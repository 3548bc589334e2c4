"""The forms of the plan's page: they lead to the provider, and show its refusals where they were sent."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import LazySettings
from django.urls import reverse

from billing.models import Subscription
from billing.pages import plan
from tests.factories.cast import Cast
from tests.fakes.small_stripe import SmallStripe

SUBSCRIBE, MANAGE = {"action": "subscribe"}, {"action": "manage"}


def send(cast: Cast, form: dict[str, str], who: str = "owner") -> Any:
    return cast.client(who).post(reverse("billing_pages:plan", args=[cast.org.id]), form)


def text(answer: Any) -> str:
    return str(answer.content.decode())


def test_the_forms_lead_to_the_provider(cast: Cast, stripe_api: SmallStripe) -> None:
    Subscription.objects.create(organization=cast.other_org, customer_id="cus_of_others")
    answer = send(cast, SUBSCRIBE)
    (session,) = stripe_api.sessions.values()
    assert (answer.status_code, answer["Location"]) == (302, session["url"])
    assert send(cast, SUBSCRIBE)["Location"] == session["url"], "a second click"
    portal = send(cast, MANAGE)
    assert (portal.status_code, portal["Location"]) == (302, f"{stripe_api.url}/portal/bps_1")
    assert {each.fields["customer"] for each in stripe_api.asked if "portal" in each.path} == {session["customer"]}


def test_an_address_of_another_origin_is_a_link(
    cast: Cast, stripe_api: SmallStripe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider serves its pages at the operators' own domain."""
    monkeypatch.setattr(plan, "provider_origins", lambda: ("https://checkout.stripe.com",))
    answer = send(cast, SUBSCRIBE)
    (session,) = stripe_api.sessions.values()
    assert answer.status_code == 200
    assert f'href="{session["url"]}"' in text(answer)
    assert f"<strong>{stripe_api.url.removeprefix('http://')}</strong>" in text(answer)


def test_a_coupon_is_passed_on_and_a_wrong_one_is_shown(cast: Cast, stripe_api: SmallStripe) -> None:
    stripe_api.promotion_codes["SPRING"] = "promo_1"
    wrong = send(cast, {**SUBSCRIBE, "coupon": "WINTER"})
    assert wrong.status_code == 422
    assert 'value="WINTER"' in text(wrong)
    assert 'id="id_coupon_error"' in text(wrong)
    assert "This coupon isn’t valid. Check it, or subscribe without it." in text(wrong)
    assert not stripe_api.sessions
    assert send(cast, {**SUBSCRIBE, "coupon": " SPRING "}).status_code == 302
    (session,) = stripe_api.sessions.values()
    assert session["fields"]["discounts[0][promotion_code]"] == "promo_1"


def test_what_stands_against_it_is_shown(cast: Cast, stripe_api: SmallStripe) -> None:
    refused = send(cast, MANAGE)
    assert refused.status_code == 409
    assert "no account at the payment provider yet" in text(refused)
    Subscription.objects.create(organization=cast.org, status="active", customer_id="cus_1", subscription_id="sub_1")
    refused = send(cast, SUBSCRIBE)
    assert refused.status_code == 409
    assert "The organization already has a subscription." in text(refused)
    assert not stripe_api.asked


@pytest.mark.parametrize("form", [SUBSCRIBE, MANAGE])
def test_a_provider_that_is_away_or_answers_garbage_changes_nothing(
    cast: Cast, stripe_api: SmallStripe, settings: LazySettings, form: dict[str, str]
) -> None:
    Subscription.objects.create(organization=cast.org, customer_id="cus_1")
    garbage = [(200, {}, b"<html>"), (500, {}, b"{}"), (302, {"Location": "https://evil.example"}, b"")]
    for answer in garbage:
        stripe_api.respond = lambda asked, answer=answer: answer  # type: ignore[misc]
        refused = send(cast, form)
        assert refused.status_code == 502
        assert "The payment provider didn’t respond as expected." in text(refused)
        assert "evil.example" not in text(refused)
    settings.STRIPE_API_BASE = "http://127.0.0.1:9"
    assert send(cast, form).status_code == 502
    assert list(Subscription.objects.values_list("status", "customer_id")) == [("none", "cus_1")]


@pytest.mark.parametrize("form", [SUBSCRIBE, MANAGE])
@pytest.mark.parametrize(("who", "status"), [("admin", 403), ("member", 403), ("other_owner", 404), ("nobody", 302)])
def test_others_reach_nothing(cast: Cast, stripe_api: SmallStripe, form: dict[str, str], who: str, status: int) -> None:
    Subscription.objects.create(organization=cast.org, customer_id="cus_1")
    answer = send(cast, form, who)
    assert answer.status_code == status
    assert stripe_api.url not in answer.get("Location", "")
    assert not stripe_api.asked
