"""POST /api/billing/portal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.conf import LazySettings
from django.conf import settings as configured

from billing.models import Subscription
from gateway.coordination import backend
from tests.factories.api import Api
from tests.fakes.small_stripe import SmallStripe

PATH = "/billing/portal"


def ask(api: Api, who: str = "owner", **body: Any) -> Any:
    return api.send(who, "POST", PATH, {"org_id": str(api.cast.org.id), **body})


def said(answer: Any) -> tuple[int, str]:
    """Status, and the address or the code."""
    found = json.loads(answer.content)
    return answer.status_code, found.get("error") or found["url"]


@pytest.fixture
def customer(api: Api, stripe_api: SmallStripe) -> SmallStripe:
    """The first organization has a customer."""
    Subscription.objects.create(organization_id=api.cast.org.pk, customer_id="cus_1")
    stripe_api.customers["cus_1"] = {"id": "cus_1"}
    return stripe_api


def test_the_page_of_a_customer(api: Api, customer: SmallStripe) -> None:
    assert said(ask(api)) == (200, f"{customer.url}/portal/bps_1")
    (asked,) = customer.asked
    assert asked.fields == {
        "customer": "cus_1",
        "return_url": f"http://testserver/orgs/{api.cast.org.id}/billing",
    }


def test_without_a_customer(api: Api, customer: SmallStripe) -> None:
    other = str(api.cast.other_org.id)
    assert said(ask(api, "other_owner", org_id=other)) == (409, "no_billing_account")
    Subscription.objects.create(organization_id=api.cast.other_org.pk, status="active")
    assert said(ask(api, "other_owner", org_id=other)) == (409, "no_billing_account")
    assert customer.asked == []


def test_a_customer_that_the_provider_has_deleted(api: Api, customer: SmallStripe) -> None:
    customer.customers.clear()
    assert said(ask(api)) == (409, "no_billing_account")


@pytest.mark.parametrize(
    ("who", "status"), [("nobody", 401), ("member", 403), ("admin", 403), ("other_owner", 404), ("stranger", 404)]
)
def test_only_an_owner(api: Api, customer: SmallStripe, who: str, status: int) -> None:
    assert ask(api, who).status_code == status
    assert customer.asked == []


@pytest.mark.parametrize("path", [PATH, "/billing/checkout"])
def test_an_organization_asks_the_provider_so_often(api: Api, customer: SmallStripe, path: str) -> None:
    """A coupon cannot be guessed for long, and the provider's own limit is left to other organizations."""
    for _ in range(configured.PAYMENT_PAGES.limit):
        assert backend.current().hit(configured.PAYMENT_PAGES, f"org:{api.cast.org.id}").allowed
    refused = api.send("owner", "POST", path, {"org_id": str(api.cast.org.id)})
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= configured.PAYMENT_PAGES.window_s + 1
    assert customer.asked == []
    other = api.send("other_owner", "POST", "/billing/checkout", {"org_id": str(api.cast.other_org.id)})
    assert other.status_code == 200


@pytest.mark.parametrize("mode", ["manual", "disabled"])
def test_without_a_provider(api: Api, customer: SmallStripe, settings: LazySettings, mode: str) -> None:
    settings.BILLING_MODE = mode
    assert said(ask(api)) == (503, "billing_unavailable")
    assert ask(api, "member").status_code == 403


@pytest.mark.parametrize(
    "answer",
    [(500, {}, b""), (302, {"Location": "https://x.example"}, b""), (200, {}, b"{}"), (200, {}, b'{"url": "x:y"}')],
)
def test_a_provider_that_does_not_do_as_it_should(
    api: Api, customer: SmallStripe, answer: tuple[int, dict[str, str], bytes]
) -> None:
    customer.respond = lambda asked: answer
    assert said(ask(api)) == (502, "billing_provider_error")


@pytest.mark.usefixtures("by_provider")
def test_a_provider_that_is_away(api: Api) -> None:
    Subscription.objects.create(organization_id=api.cast.org.pk, customer_id="cus_1")
    assert said(ask(api)) == (502, "billing_provider_error")
