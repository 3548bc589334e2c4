"""Billing by the payment provider, whose API is away unless a test serves it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from tests.factories.billing import SETTINGS
from tests.fakes.small_stripe import SmallStripe, small_stripe


@pytest.fixture
def by_provider(settings: LazySettings) -> None:
    for name, value in SETTINGS.items():
        setattr(settings, name, value)


@pytest.fixture
def stripe_api(by_provider: None, settings: LazySettings) -> Iterator[SmallStripe]:
    """The provider's API, in threads of this process."""
    with small_stripe() as provider:
        settings.STRIPE_API_BASE = provider.url
        yield provider
