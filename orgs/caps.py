"""The caps on rows of one kind in an organization: each costs memory in every process, and has limits of its own."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from orgs.errors import LimitReached


def require_room(rows: QuerySet[Any], cap: int, kind: str) -> None:
    """Room for one more among `rows`, which are all of the organization's that count; `kind` names them in the plural.

    The caller holds the organization's lock, so that parallel requests are counted one after the other.
    Raises: LimitReached.   Spec: D161
    """
    if rows.count() >= cap:
        raise LimitReached(kind, cap)
