"""Quotas of the rows of one kind in an organization. Such rows are held in the memory of every process."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from orgs.errors import LimitReached


def require_quota(rows: QuerySet[Any], cap: int, kind: str) -> None:
    """`rows`: all rows of the organization that count; `kind`: their name in the plural. Spec: D161

    Raises: LimitReached. The caller holds the organization's lock, so that parallel requests are counted in turn.
    """
    if rows.count() >= cap:
        raise LimitReached(kind, cap)
