"""Epochs: one opaque value per thing whose change must be seen at once.

A cache entry remembers the epochs it was built under and is dead when one of them differs. Values are random, not
counted, so that a store that lost its memory can never hand out an old value again. Read epochs BEFORE loading the
rows, bump them AFTER the commit: whoever loads in between is loaded again at the next call.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import structlog
from django.db import transaction

from gateway.coordination import outbox, registry
from gateway.coordination.late_bumps import LateBumps
from gateway.coordination.store import CoordinationUnavailable

log = structlog.get_logger(__name__)
late_bumps = LateBumps(lambda: registry.current())

IN_FORCE_WITHIN_S = 60.0  # for a change whose bump reaches no process: no rows are believed for longer
NOT_RELAYED_YET = (
    "Redis has not been reached yet: the change is in force within 5 seconds where Redis is away,"
    f" and within {IN_FORCE_WITHIN_S:.0f} seconds everywhere."
)
NAMES_AT_ONCE = 500  # the store has a second for each bump, and an organization may have ten thousand members
CATALOG = "catalog"
SIGNING_KEYS = "signing-keys"


def organization(org_id: uuid.UUID | str) -> str:
    """Everything an organization's calls depend on: credentials, allowlists, grants of teams, data keys."""
    return f"org:{org_id}"


def subject(subject_id: str) -> str:
    """Everything one caller's calls depend on: memberships, own grants, its keys and tokens."""
    return f"subject:{subject_id}"


def bump_on_commit(*names: str) -> None:
    """Bump when the surrounding transaction commits; at once when there is none. A rollback bumps nothing.

    The change is made once it is committed: a store that does not take the bump makes no request fail and skips no
    other hook. With Redis the outbox keeps what was missed; the file of one host is tried again.
    """
    for start in range(0, len(names), NAMES_AT_ONCE):
        _bump_part_on_commit(names[start : start + NAMES_AT_ONCE])


def _bump_part_on_commit(names: Sequence[str]) -> None:
    ids = outbox.put(names) if registry.uses_outbox() else []
    transaction.on_commit(lambda: _bump(names, ids), robust=True)


def _bump(names: Sequence[str], ids: Sequence[int]) -> None:
    try:
        registry.current().bump_epochs(names)
    except CoordinationUnavailable as fault:
        log.warning("epochs not bumped yet", names=len(names), fault=str(fault))
        if not ids:
            late_bumps.add(names)
    else:
        outbox.remove(ids)
