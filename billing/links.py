"""Addresses of the plan page, for the provider and for refusals."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings


def plan_url(organization_id: UUID, **query: str) -> str:
    """The page on which an owner subscribes and manages the plan. Spec: D93"""
    address = f"{settings.BASE_URL}/orgs/{organization_id}/billing"
    return f"{address}?{urlencode(query)}" if query else address
