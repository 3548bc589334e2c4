"""Pages of long lists, numbered in the query string."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

PAGE_SIZE = 50
Row = TypeVar("Row")


def page_of(request: HttpRequest, rows: QuerySet[Any, Row] | Sequence[Row], *, size: int = PAGE_SIZE) -> Page[Row]:
    """The part of `rows`, in their order, that `?page=` asks for.

    A number that is none is 1, one past the end is the last: a link that was kept still leads somewhere.
    """
    return Paginator(rows, size).get_page(request.GET.get("page"))
