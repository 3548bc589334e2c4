"""Deletes expired rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from gateway.coordination import epochs
from gateway.lib import clock
from oauth_ext.jwt.rotation import remove_retired_signing_keys
from oauth_ext.models import (
    AccessToken,
    AgentKey,
    AuthorizationRequest,
    Client,
    DeviceGrant,
    Grant,
    RememberedConsent,
    TokenFamily,
    UsedAssertion,
    UserCodeMiss,
)
from oauth_ext.services.client_cleanup import remove_idle_clients
from orgs.models import ManagementToken

BATCH_ROWS = 500  # rows locked by one transaction
# How long a replay of a redeemed code still ends its family, and a late poll still gets `expired_token`.
KEPT_AFTERWARDS = timedelta(days=1)
# How long an expired management token stays on its person's list.
TOKENS_KEPT = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class CleanupCounts:
    # Deleted rows by kind; refresh tokens go with their family.
    families: int
    access_tokens: int
    grants: int
    requests: int
    device_grants: int
    consents: int
    clients: int
    signing_keys: int


def remove_expired_rows(*, now: datetime) -> CleanupCounts:
    """Deletes every row that is expired at `now`. Spec: D117, D120, D123, D130"""
    idle_since = now - timedelta(days=settings.REFRESH_IDLE_DAYS)
    misses_since = now - timedelta(seconds=settings.USER_CODE_MISSES_WINDOW_S)
    _delete_in_batches(UserCodeMiss.objects.filter(missed_at__lte=misses_since))
    _delete_in_batches(UsedAssertion.objects.filter(expires_at__lte=now))
    _delete_in_batches(AgentKey.objects.filter(ends_at__lte=now))
    _delete_in_batches(ManagementToken.objects.filter(expires_at__lte=now - TOKENS_KEPT))
    rotated = Client.objects.filter(previous_secret_ends_at__lte=now)
    rotated.update(previous_secret="", previous_secret_ends_at=None)
    return CleanupCounts(
        families=_delete_in_batches(
            TokenFamily.objects.filter(Q(expires_at__lte=now) | Q(last_used_at__lte=idle_since)), _bump_holders
        ),
        access_tokens=_delete_in_batches(AccessToken.objects.filter(expires__lte=now)),
        grants=_delete_in_batches(_spent_grants(now)),
        requests=_delete_in_batches(AuthorizationRequest.objects.filter(expires_at__lte=now)),
        device_grants=_delete_in_batches(DeviceGrant.objects.filter(expires_at__lte=now - KEPT_AFTERWARDS)),
        consents=_delete_in_batches(RememberedConsent.objects.filter(expires_at__lte=now)),
        clients=remove_idle_clients(now=now),
        signing_keys=remove_retired_signing_keys(now),
    )


def _spent_grants(now: datetime) -> QuerySet[Grant]:
    never_redeemed = Q(redeemed_at=None, expires__lte=now)
    return Grant.objects.filter(never_redeemed | Q(redeemed_at__lte=now - KEPT_AFTERWARDS))


def _bump_holders(family_keys: Sequence[Any]) -> None:
    # An access token that was given just before the end of its family ends with it.
    tokens = AccessToken.objects.filter(token_family__in=family_keys, expires__gt=clock.now())
    families = TokenFamily.objects.filter(pk__in=tokens.values("token_family")).select_related("client")
    epochs.bump_on_commit(*sorted({epochs.subject(family.subject) for family in families}))


def _delete_in_batches(rows: QuerySet[Any], before: Callable[[Sequence[Any]], None] = lambda keys: None) -> int:
    """`before`: called with the keys of a batch, in its transaction."""
    total, model, last = 0, rows.model, None
    while keys := list(_after(rows, last).values_list("pk", flat=True)[:BATCH_ROWS]):
        last = keys[-1]
        # Each batch commits alone, so the next run continues a stopped one.
        with transaction.atomic():
            # Locked rows are in use and wait for the next run. The locks keep new rows from referring to a row about to
            # go.
            free = model._default_manager.select_for_update(skip_locked=True).filter(pk__in=keys).order_by("pk")
            going = list(free.values_list("pk", flat=True))
            before(going)
            _, by_model = rows.filter(pk__in=going).delete()
        total += by_model.get(model._meta.label, 0)
    return total


def _after(rows: QuerySet[Any], last: object) -> QuerySet[Any]:
    ordered = rows.order_by("pk")
    return ordered if last is None else ordered.filter(pk__gt=last)
