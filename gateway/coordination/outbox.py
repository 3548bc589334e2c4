"""Epoch bumps survive the process that makes them: a row in the transaction of the change, deleted once Redis has it.

The process that made the change relays right after the commit. The rest is relayed by the next of: a process that
finds the store back, the web process that leads in this second, the worker's schedule. A bump that is sent twice makes
caches load twice and nothing worse, so no relay locks another out.   docs/decisions/0012
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from gateway.coordination.models import PendingBump
from gateway.coordination.rules import Rule
from gateway.coordination.store import CoordinationStore
from gateway.lib.database_threads import with_own_connection

AT_ONCE = 1_000
# The first web process that asks in a second relays for all.
LEADER = Rule("outbox-relay", limit=1, window_s=1)
COMMAND_WAITS_S = 5.0
_POLL_S = 0.05


def put(names: Sequence[str]) -> list[int]:
    """The ids of new rows, in the transaction that is open here.   Raises: django.db.Error."""
    return [row.pk for row in PendingBump.objects.bulk_create([PendingBump(name=name) for name in names], AT_ONCE)]


def remove(ids: Sequence[int]) -> None:
    """Redis has them.   Raises: django.db.Error."""
    for first in range(0, len(ids), AT_ONCE):
        PendingBump.objects.filter(pk__in=ids[first : first + AT_ONCE]).delete()


def relay(store: CoordinationStore) -> int:
    """Bump every epoch of the outbox; how many rows are done.   Raises: CoordinationUnavailable; django.db.Error."""
    done = 0
    while rows := list(PendingBump.objects.order_by("pk").values_list("pk", "name")[:AT_ONCE]):
        store.bump_epochs(list(dict.fromkeys(name for _, name in rows)))
        remove([pk for pk, _ in rows])
        done += len(rows)
    return done


def relayed_in_time(deadline_s: float | None = None) -> bool:
    """Whether all bumps that are committed now are relayed, by any process, within COMMAND_WAITS_S. Waits for it."""
    newest = PendingBump.objects.order_by("-pk").values_list("pk", flat=True).first()
    ends_s = time.monotonic() + (COMMAND_WAITS_S if deadline_s is None else deadline_s)
    while newest is not None and PendingBump.objects.filter(pk__lte=newest).exists():
        if time.monotonic() >= ends_s:
            return False
        time.sleep(_POLL_S)
    return True


class DatabaseOutbox:
    """The outbox as a thread without a request uses it. Implements degrading.Outbox."""

    @staticmethod
    def put(names: Sequence[str]) -> None:
        """See degrading.Outbox."""
        with_own_connection(lambda: put(names))

    @staticmethod
    def relay(store: CoordinationStore) -> int:
        """See degrading.Outbox."""
        return with_own_connection(lambda: relay(store))
