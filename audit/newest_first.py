"""The order of a log's pages. Spec: D79"""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.db.models import F
from django.db.models.expressions import OrderBy


class NewestFirst(OrderBy):
    """By id, downwards, along an index that starts with the organization.

    On PostgreSQL the indexes and the order say NULLS LAST, although no id is NULL: the primary key has the other order,
    so the planner cannot walk the rows of all organizations to find the last ones of a quiet one.
    """

    def __init__(self) -> None:
        super().__init__(F("id"), descending=True, nulls_last=True)

    def as_sqlite(self, compiler: Any, connection: Any) -> Any:
        return OrderBy(self.expression, descending=True).as_sql(compiler, connection)


def newest_first() -> str:
    """The same order in SQL."""
    return "id DESC NULLS LAST" if connection.vendor == "postgresql" else "id DESC"
