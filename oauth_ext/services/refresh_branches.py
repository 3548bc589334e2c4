"""Branches of a token family: the descendants of a refresh token that was used again within its grace period.

The answer got lost, two processes of a client refreshed at once, or a thief was quick. The first two leave one branch
behind soon, so a branch that goes on ends its siblings that were made in grace. Spec: D123 · docs/decisions/0007
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Count

from audit.event_types import EventType
from audit.record import record_admin
from gateway.lib import clock
from oauth_ext.models import RefreshToken, TokenFamily
from oauth_ext.services.token_families import TOKEN_SERVER, facts_of


def record_grace_use(token: RefreshToken, family: TokenFamily) -> None:
    """The first second use of `token` is in the organization's log; the address is that of this request.

    Later ones of the same token add no row: clients that race do it at each refresh.
    """
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
    """`token` is used now, so its branch reaches the second generation after its parent: siblings of the parent that
    were made in grace are gone, with all that descends from them. Returns how many refresh tokens that were.

    The caller holds the family's lock. Access tokens of an ended branch expire within the hour.
    """
    root = RefreshToken.objects.filter(pk=token.parent_id).exclude(parent=None).first()
    if root is None:
        return 0
    siblings = RefreshToken.objects.filter(parent=root.parent_id, in_grace=True).exclude(pk=root.pk)
    ended: list[int] = []
    level = list(siblings.values_list("pk", flat=True))
    while level:
        ended += level
        level = list(RefreshToken.objects.filter(parent__in=level).values_list("pk", flat=True))
    RefreshToken.objects.filter(pk__in=ended).delete()
    return len(ended)


def live_branches(families: Sequence[TokenFamily]) -> dict[UUID, int]:
    """Family to the number of its refresh tokens that can still be used; one without any is absent."""
    idle_since = clock.now() - timedelta(days=settings.REFRESH_IDLE_DAYS)
    unused = RefreshToken.objects.filter(token_family__in=families, revoked=None, created__gt=idle_since)
    counted = unused.order_by().values("token_family").annotate(branches=Count("pk"))
    return {row["token_family"]: row["branches"] for row in counted}
