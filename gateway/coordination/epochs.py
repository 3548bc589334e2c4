"""Epochs: one opaque value for each thing that cached rows depend on.

A cache entry is invalid when one of the epochs it was built under differs. Read epochs BEFORE loading the rows, bump
them AFTER the commit: an entry loaded in between is loaded again at the next call.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import structlog
from django.db import transaction

from gateway.coordination import backend, outbox
from gateway.coordination.hash_tags import tag_of_subject, tagged
from gateway.coordination.retried_bumps import RetriedBumps
from gateway.coordination.store import CoordinationUnavailable

log = structlog.get_logger(__name__)
retried_bumps = RetriedBumps(lambda: backend.current())

IN_FORCE_WITHIN_S = 60.0  # without an outbox: the maximum age of cached rows, in case a bump reaches no process
NOT_RELAYED_YET = (
    "Redis has not been reached yet: the change is in force within 5 seconds where Redis is away,"
    " and everywhere within 2 seconds of a process reaching Redis."
)
NAMES_PER_BATCH = 500  # a bump has one second, and an organization may have ten thousand members
# Values are random, not counted: a store that lost its memory never returns an old value.
CATALOG = "catalog"
SIGNING_KEYS = "signing-keys"


def organization(org_id: uuid.UUID | str) -> str:
    """For all an organization's calls depend on: credentials, allowlists, server access of teams, data keys."""
    return tagged(str(org_id), f"org:{org_id}")


def subject(subject_id: str) -> str:
    """For all one caller's calls depend on: memberships, its own server access, keys and tokens."""
    return tagged(tag_of_subject(subject_id), f"subject:{subject_id}")


def bump_on_commit(*names: str) -> None:
    """Bump when the open transaction commits, or at once without one. A rollback bumps nothing."""
    for start in range(0, len(names), NAMES_PER_BATCH):
        _bump_batch_on_commit(names[start : start + NAMES_PER_BATCH])


def _bump_batch_on_commit(names: Sequence[str]) -> None:
    ids = outbox.put(names) if backend.uses_outbox() else []
    # robust: the change is committed, so a failed bump must not fail the request or skip other hooks.
    transaction.on_commit(lambda: _bump(names, ids), robust=True)


def _bump(names: Sequence[str], ids: Sequence[int]) -> None:
    try:
        backend.current().bump_epochs(names)
    except CoordinationUnavailable as fault:
        log.warning("epochs not bumped yet", names=len(names), fault=str(fault))
        if not ids:  # without Redis there is no outbox: the SQLite file is tried again
            retried_bumps.add(names)
    else:
        outbox.remove(ids)
