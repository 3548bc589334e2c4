"""The outbox of epoch bumps that Redis has not taken yet.   docs/decisions/0012"""

from __future__ import annotations

import time
from collections.abc import Sequence

from gateway.coordination.models import PendingBump
from gateway.coordination.rules import Rule
from gateway.coordination.store import CoordinationStore
from gateway.lib.database_threads import with_own_connection

BATCH_ROWS = 1_000  # rows in one statement
# The first web process to be admitted in a second relays for all.
LEADER = Rule("outbox-relay", limit=1, window_s=1)
COMMAND_WAITS_S = 5.0  # management commands that revoke wait no longer for the relay
_POLL_S = 0.05  # between a command's looks at the table


def put(names: Sequence[str]) -> list[int]:
    """Insert rows in the open transaction and return their ids.   Raises: django.db.Error."""
    return [row.pk for row in PendingBump.objects.bulk_create([PendingBump(name=name) for name in names], BATCH_ROWS)]


def remove(ids: Sequence[int]) -> None:
    """Raises: django.db.Error."""
    for first in range(0, len(ids), BATCH_ROWS):
        PendingBump.objects.filter(pk__in=ids[first : first + BATCH_ROWS]).delete()


def relay(store: CoordinationStore) -> int:
    """Bump every epoch of the outbox; returns the row count.   Raises: CoordinationUnavailable; django.db.Error."""
    done = 0
    while rows := list(PendingBump.objects.order_by("pk").values_list("pk", "name")[:BATCH_ROWS]):
        store.bump_epochs(list(dict.fromkeys(name for _, name in rows)))
        # No lock against other relays: a bump that is sent twice makes caches load twice.
        remove([pk for pk, _ in rows])
        done += len(rows)
    return done


def relayed_in_time(deadline_s: float | None = None) -> bool:
    """Wait until all bumps committed so far are relayed, by any process; False after COMMAND_WAITS_S."""
    newest = PendingBump.objects.order_by("-pk").values_list("pk", flat=True).first()
    give_up_at_s = time.monotonic() + (COMMAND_WAITS_S if deadline_s is None else deadline_s)
    while newest is not None and PendingBump.objects.filter(pk__lte=newest).exists():
        if time.monotonic() >= give_up_at_s:
            return False
        time.sleep(_POLL_S)
    return True


class DatabaseOutbox:
    """Implements fallback_store.Outbox for threads that serve no request."""

    @staticmethod
    def put(names: Sequence[str]) -> None:
        with_own_connection(lambda: put(names))

    @staticmethod
    def relay(store: CoordinationStore) -> int:
        return with_own_connection(lambda: relay(store))
