"""Checkout and portal sessions: an owner pays on the provider's pages and comes back to ours. Spec: §4.12 · D93"""

from __future__ import annotations

from django.conf import settings

from billing.errors import BillingUnavailable
from orgs.models import Organization, User


def start_checkout(*, actor: User, organization: Organization, coupon: str = "") -> str:
    """The address of the provider's page. Nothing of the plan changes until the provider's event arrives.

    Raises: BillingUnavailable, AlreadySubscribed, InvalidCoupon, BillingProviderError; NotFound, Forbidden.
    """
    require_provider()
    raise BillingUnavailable


def open_portal(*, actor: User, organization: Organization) -> str:
    """The address of the provider's page. Raises: BillingUnavailable, NoBillingAccount, BillingProviderError."""
    require_provider()
    raise BillingUnavailable


def require_provider() -> None:
    """Raises: BillingUnavailable in the modes without a payment provider. Spec: D41"""
    if settings.BILLING_MODE != "stripe":
        raise BillingUnavailable
