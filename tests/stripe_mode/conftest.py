"""Tests of BILLING_MODE=stripe as a whole. tests/e2e/test_stripe_mode.py runs them, with tests/stripe_settings.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import stripe
from django.conf import settings

from billing.models import ProviderEvent, Subscription
from gateway.lib import clock
from orgs.models import Organization
from tests.factories.cast import Cast
from tests.fakes.payment_provider import shapes
from tests.stripe_mode import provider as objects
from tests.stripe_mode.provider import Provider

# In the other modes the library is not there, nor are its tables.
collect_ignore_glob = [] if settings.BILLING_MODE == "stripe" else ["test_*.py"]


@pytest.fixture(scope="session")
def listening_provider() -> Iterator[Provider]:
    with objects.listening() as provider:
        yield provider


@pytest.fixture
def provider(listening_provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Provider:
    """A provider that knows two customers with a subscription each, and one customer of none."""
    provider = listening_provider
    provider.answers.clear()
    provider.asked.clear()
    monkeypatch.setattr(stripe, "api_base", provider.origin)
    provider.add(objects.product())
    provider.answers["/v1/products/prod_1/features"] = shapes.listed([], "/v1/products/prod_1/features")
    for name in ("1", "2"):
        provider.add(objects.customer(f"cus_{name}"))
        about = provider.add(objects.subscription(f"sub_{name}", f"cus_{name}"))
        provider.add(objects.event(f"evt_{name}", about))
    return provider


@pytest.fixture
def customers(cast: Cast, provider: Provider) -> Cast:
    """The two organizations are customers of the provider."""
    for organization, name in ((cast.org, "1"), (cast.other_org, "2")):
        Subscription.objects.create(organization=organization, status="active", customer_id=f"cus_{name}")
    return cast


def received(event_id: str, customer_id: str, organization: Organization | None = None) -> ProviderEvent:
    """An event that came by webhook."""
    return ProviderEvent.objects.create(
        id=event_id,
        kind="customer.subscription.updated",
        created=clock.now(),
        customer_id=customer_id,
        organization=organization,
    )
