"""Numbered pages of long lists, chosen by `?page=`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

# Rows on one page.
PAGE_SIZE = 50
Row = TypeVar("Row")


def page_of(request: HttpRequest, rows: QuerySet[Any, Row] | Sequence[Row], *, size: int = PAGE_SIZE) -> Page[Row]:
    """The page that `?page=` asks for: page 1 for an invalid number, the last page for one past the end."""
    # get_page never raises, so that an old bookmark still opens a page.
    return Paginator(rows, size).get_page(request.GET.get("page"))
