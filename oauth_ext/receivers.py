"""Receivers of organization events."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.dispatch import receiver

from oauth_ext.models import AccessToken, Grant, RememberedConsent, TokenFamily
from orgs.events import member_removed


@receiver(member_removed, dispatch_uid="oauth_ext.end_tokens")
def end_tokens(sender: object, organization_id: UUID, user_id: UUID, **more: Any) -> None:
    """Spec: D45"""
    # All are deleted, so that a person who joins again gets no old token back.
    Grant.objects.filter(organization_id=organization_id, user_id=user_id).delete()
    RememberedConsent.objects.filter(organization_id=organization_id, user_id=user_id).delete()
    families = TokenFamily.objects.filter(organization_id=organization_id, user_id=user_id)
    # Locked first: a concurrent refresh stores its tokens before this query, or not at all.
    held = list(families.select_for_update().order_by("pk").values_list("pk", flat=True))
    TokenFamily.objects.filter(pk__in=held).delete()
    AccessToken.objects.filter(organization_id=organization_id, user_id=user_id).delete()
