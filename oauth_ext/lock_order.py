"""Locks the rows that tokens point to, so that they exist until the tokens are stored.

Order: organization, person, client, trusted issuer, membership, mail domain, then code, device or family. A deletion
starts at the top; the foreign keys of new tokens need the top rows last. Without this order the two would deadlock.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.db import connection, models

from oauth_ext.models import Client, TrustedIssuer
from orgs.models import Organization, User


def lock(
    *, org_id: uuid.UUID | None, user_id: uuid.UUID | None, client_pk: uuid.UUID, trust_pk: uuid.UUID | None = None
) -> bool:
    """Returns whether all named rows exist; they then exist until the transaction ends, but may change."""
    # `org_id` is None before an organization is chosen; `user_id` is None for tokens of a service client.
    wanted: list[tuple[type[models.Model], uuid.UUID | None]] = [
        (Organization, org_id),
        (User, user_id),
        (Client, client_pk),
        (TrustedIssuer, trust_pk),
    ]
    return all(_lock_one(model, key) for model, key in wanted if key is not None)


def lock_first(rows: models.QuerySet[Any]) -> bool:
    """After `lock`: returns whether there is a row; it then exists until the transaction ends."""
    key = rows.values_list("pk", flat=True).first()
    return key is not None and _lock_one(rows.model, key)


def _lock_one(model: type[models.Model], key: uuid.UUID) -> bool:
    if connection.vendor != "postgresql":  # a SQLite transaction already has the only write lock
        return model._default_manager.filter(pk=key).exists()
    table, column = connection.ops.quote_name(model._meta.db_table), connection.ops.quote_name("id")
    with connection.cursor() as cursor:
        # The ORM has no lock this weak; a stronger one would serialise all tokens of a client.
        cursor.execute(f"SELECT 1 FROM {table} WHERE {column} = %s FOR KEY SHARE", [key])  # noqa: S608
        return cursor.fetchone() is not None
