"""Rows that tokens point to, held so that nobody deletes them while tokens are being made.

A deletion locks the organization, the person or the client first and its tokens afterwards. Whoever makes tokens locks
the code, device or family it consumes, and needs those three rows at the end, for the foreign keys: the two would wait
for each other. So they are held first, and from the top down.
"""

from __future__ import annotations

import uuid

from django.db import connection, models

from oauth_ext.models import Client
from orgs.models import Organization, User


def hold(*, org_id: uuid.UUID | None, user_id: uuid.UUID | None, client_pk: uuid.UUID) -> bool:
    """Whether all that are named exist; if so, they exist until the surrounding transaction ends. They may change.

    `org_id` is None before an organization was chosen, `user_id` where tokens belong to a service account.
    """
    wanted: list[tuple[type[models.Model], uuid.UUID | None]] = [
        (Organization, org_id),
        (User, user_id),
        (Client, client_pk),
    ]
    return all(_hold_one(model, key) for model, key in wanted if key is not None)


def _hold_one(model: type[models.Model], key: uuid.UUID) -> bool:
    if connection.vendor != "postgresql":  # in SQLite a transaction begins with the only write lock
        return model._default_manager.filter(pk=key).exists()
    table, column = connection.ops.quote_name(model._meta.db_table), connection.ops.quote_name("id")
    with connection.cursor() as cursor:
        # The ORM knows no lock this weak; a stronger one would make all tokens of a client wait for each other.
        cursor.execute(f"SELECT 1 FROM {table} WHERE {column} = %s FOR KEY SHARE", [key])  # noqa: S608
        return cursor.fetchone() is not None
