"""Bounds the table of self-registered clients without deleting one that is in use.

Every client may register, and some clients register at every start (reliability.md 2, mcphub#1174).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from gateway.lib import clock
from oauth_ext.models import Client, TokenFamily

UNUSED_FOR = timedelta(hours=24)  # D117
IDLE_FOR = timedelta(days=90)  # D117
# Leaves a new client time to sign in, also while the table is full.
SPARED_FOR = timedelta(minutes=15)
BATCH_ROWS = 500  # rows locked by one transaction


def remove_idle_clients(*, now: datetime) -> int:
    """Returns how many. Spec: D117"""
    # A client that was used counts as idle much later than one that was only registered.
    never_used = Q(last_used_at=None, created__lte=now - UNUSED_FOR)
    idle = never_used | Q(last_used_at__lte=now - IDLE_FOR)
    chosen = list(_holding_nothing().filter(idle).values_list("pk", flat=True))
    batches = [chosen[start : start + BATCH_ROWS] for start in range(0, len(chosen), BATCH_ROWS)]
    return sum(_delete(idle, batch) for batch in batches)


def is_room_for_another() -> bool:
    """A full table deletes its oldest unused clients first. Spec: D117"""
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
    with transaction.atomic():
        # A locked client is in use. The condition is checked again under the locks: a person may have signed in
        # meanwhile.
        free = Client.objects.select_for_update(skip_locked=True).filter(pk__in=keys).order_by("pk")
        _, by_model = _holding_nothing().filter(condition, pk__in=list(free.values_list("pk", flat=True))).delete()
    return by_model.get(Client._meta.label, 0)
