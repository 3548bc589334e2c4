"""Epochs: one opaque value per thing whose change must be seen at once.

A cache entry remembers the epochs it was built under and is dead when one of them differs. Values are random, not
counted, so that a store that lost its memory can never hand out an old value again. Read epochs BEFORE loading the
rows, bump them AFTER the commit: whoever loads in between is loaded again at the next call.
"""

from __future__ import annotations

import uuid

from django.db import transaction

from gateway.coordination import registry

CATALOG = "catalog"
SIGNING_KEYS = "signing-keys"


def organization(org_id: uuid.UUID | str) -> str:
    """Everything an organization's calls depend on: credentials, allowlists, grants of teams, data keys."""
    return f"org:{org_id}"


def subject(subject_id: str) -> str:
    """Everything one caller's calls depend on: memberships, own grants, its keys and tokens."""
    return f"subject:{subject_id}"


def bump_on_commit(*names: str) -> None:
    """Bump when the surrounding transaction commits; at once when there is none. A rollback bumps nothing."""
    transaction.on_commit(lambda: registry.current().bump_epochs(names))
