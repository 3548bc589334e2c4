"""When credentials were last used, noted beside the calls."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from credentials.models import Credential

# Bounds the writes: no row is written per call.
RECORD_USE_EVERY = timedelta(minutes=1)


def record_credential_uses(pks: Collection[uuid.UUID], now: datetime) -> None:
    """Sets `last_used_at`, at most once in RECORD_USE_EVERY each."""
    if not pks:
        return
    due = Q(last_used_at=None) | Q(last_used_at__lte=now - RECORD_USE_EVERY)
    with transaction.atomic():
        # A locked row is being changed or noted by another process: its use waits for the next round.
        rows = Credential.objects.filter(due, pk__in=pks).select_for_update(skip_locked=True, no_key=True)
        if free := list(rows.order_by("pk").values_list("pk", flat=True)):
            Credential.objects.filter(pk__in=free).update(last_used_at=now)
