"""BILLING_MODE, and whose money the secret key moves."""

from __future__ import annotations

from django.conf import settings

from billing.errors import BillingUnavailable

_TEST_KEYS = ("sk_test_", "rk_test_")


def has_provider() -> bool:
    return bool(settings.BILLING_MODE == "stripe")


def require_provider() -> None:
    """Raises: BillingUnavailable in the modes without a payment provider. Spec: D41"""
    if not has_provider():
        raise BillingUnavailable


def is_live() -> bool:
    """False for the provider's test mode, whose events and customers are worth nothing."""
    return not settings.STRIPE_SECRET_KEY.startswith(_TEST_KEYS)
