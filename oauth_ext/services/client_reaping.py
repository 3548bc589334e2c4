"""Keeping the table of self-registered clients bounded. A client that somebody signed in with is never in the way.

Registering is open to everybody, and some clients register at every start (reliability.md 2, mcphub#1174).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from gateway.lib import clock
from oauth_ext.models import Client, TokenFamily

UNUSED_FOR = timedelta(hours=24)
IDLE_FOR = timedelta(days=90)
# Time enough to sign in after registering, also while the table is full.
SPARED_FOR = timedelta(minutes=15)
BATCH_ROWS = 500


def remove_idle_clients(*, now: datetime) -> int:
    """Delete self-registered clients that nobody used for a day, or that hold nothing and were idle for 90 days.

    Returns how many.   Spec: D117
    """
    never_used = Q(last_used_at=None, created__lte=now - UNUSED_FOR)
    idle = never_used | Q(last_used_at__lte=now - IDLE_FOR)
    chosen = list(_holding_nothing().filter(idle).values_list("pk", flat=True))
    batches = [chosen[start : start + BATCH_ROWS] for start in range(0, len(chosen), BATCH_ROWS)]
    return sum(_delete(idle, batch) for batch in batches)


def is_room_for_another() -> bool:
    """Whether one more client may register. A full table gives up its oldest clients that nobody ever used.

    Spec: D117
    """
    registered = Client.objects.exclude(registration_source=Client.RegistrationSource.MANUAL)
    if registered.count() < settings.REGISTERED_CLIENTS:
        return True
    never_used = Q(last_used_at=None, created__lte=clock.now() - SPARED_FOR)
    oldest = _holding_nothing().filter(never_used).order_by("created").values_list("pk", flat=True)
    return _delete(never_used, list(oldest[:BATCH_ROWS])) > 0


def _holding_nothing() -> QuerySet[Client]:
    registered = Client.objects.exclude(registration_source=Client.RegistrationSource.MANUAL)
    return registered.filter(~Exists(TokenFamily.objects.filter(client=OuterRef("pk"))), organization=None)


def _delete(condition: Q, keys: list[object]) -> int:
    """Delete those that still hold nothing: somebody may have signed in since they were chosen.

    Under their locks, so that nobody can sign in between the last look and the end; whom somebody holds is in use.
    """
    with transaction.atomic():
        free = Client.objects.select_for_update(skip_locked=True).filter(pk__in=keys).order_by("pk")
        _, by_model = _holding_nothing().filter(condition, pk__in=list(free.values_list("pk", flat=True))).delete()
    return by_model.get(Client._meta.label, 0)
