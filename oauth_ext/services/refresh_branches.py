"""Branches of a token family: the descendants of a refresh token that was used again within its grace period.

A lost response, two processes of one client, or a thief cause a second use. The first two soon abandon a branch, so a
branch that continues ends its grace siblings. Spec: D123 · docs/decisions/0007
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Count

from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.lib import clock
from oauth_ext.models import RefreshToken, TokenFamily
from oauth_ext.services.token_families import TOKEN_SERVER, facts_of


def record_grace_use(token: RefreshToken, family: TokenFamily) -> None:
    """Audits the first grace use of `token`, with this request's address."""
    # Further grace uses add no row: clients that race do so at each refresh.
    if RefreshToken.objects.filter(parent=token, in_grace=True).exists():
        return
    record_admin(
        EventType.OAUTH_REFRESH_GRACE_USED,
        org_id=family.organization_id,
        actor=TOKEN_SERVER,
        target=family.client.as_target(),
        metadata={**facts_of(family), "generation": token.generation},
    )


def end_overtaken_branches(token: RefreshToken) -> int:
    """Returns how many refresh tokens of grace siblings it deleted; the caller holds the family's lock."""
    root = RefreshToken.objects.filter(pk=token.parent_id).exclude(parent=None).first()
    # The branch of `token` has reached its second generation only if its parent has a parent.
    if root is None:
        return 0
    siblings = RefreshToken.objects.filter(parent=root.parent_id, in_grace=True).exclude(pk=root.pk)
    ended: list[int] = []
    level = list(siblings.values_list("pk", flat=True))
    while level:
        ended += level
        level = list(RefreshToken.objects.filter(parent__in=level).values_list("pk", flat=True))
    # Access tokens of an ended branch stay until they expire, within the hour.
    RefreshToken.objects.filter(pk__in=ended).delete()
    return len(ended)


def live_branches(families: Sequence[TokenFamily]) -> dict[UUID, int]:
    """Maps each family to its number of usable refresh tokens; a family without any is absent."""
    idle_since = clock.now() - timedelta(days=settings.REFRESH_IDLE_DAYS)
    unused = RefreshToken.objects.filter(token_family__in=families, revoked=None, created__gt=idle_since)
    counted = unused.order_by().values("token_family").annotate(branches=Count("pk"))
    return {row["token_family"]: row["branches"] for row in counted}
