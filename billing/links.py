"""Addresses of the plan page, for the provider and for refusals."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings

from billing.mode import has_provider


def renewal_url(organization_id: UUID) -> str:
    """Empty in a deployment that has named no page and takes no payments. Spec: D6"""
    return settings.BILLING_PORTAL_URL or (plan_url(organization_id) if has_provider() else "")


def plan_url(organization_id: UUID, **query: str) -> str:
    """The page on which an owner subscribes and manages the plan. Spec: D93"""
    address = f"{settings.BASE_URL}/orgs/{organization_id}/billing"
    return f"{address}?{urlencode(query)}" if query else address
