"""Pages, totals and exports of both logs, ordered by id: ids are time-ordered. Spec: D79, D84"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from audit.log_query import MAX_EXPORTED, LogQuery
from audit.newest_first import NewestFirst

MAX_EXACT_TOTAL = 100_000
# Rows of one query of an export: about 200 kB of text.
EXPORT_PAGE_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Total:
    rows: int
    is_estimate: bool


@dataclass(frozen=True, slots=True)
class Page:
    """Newest first. `next_cursor` is None at the end of the log."""

    entries: list[Any]
    next_cursor: uuid.UUID | None


@dataclass(frozen=True, slots=True)
class ExportedRows:
    """`pages` begin at the newest row of the count, so rows that arrive later stay out."""

    total: int
    pages: Iterator[list[Sequence[Any]]]


def page_of(rows: QuerySet[Any], query: LogQuery) -> Page:
    """Follow `next_cursor` for pages that are equally fast everywhere, and stable while rows arrive."""
    limit = query.page_limit
    log_ids = _ids_of(_part(rows, query)[: limit + 1])
    shown = log_ids[:limit]
    entries = sorted(_rows_of(rows, shown), key=lambda entry: entry.id, reverse=True)
    return Page(entries, shown[-1] if len(log_ids) > limit else None)


def total_of(rows: QuerySet[Any]) -> Total:
    """Exact up to MAX_EXACT_TOTAL, above it what the database knows without counting."""
    counted = rows.order_by()[: MAX_EXACT_TOTAL + 1].count()
    if counted <= MAX_EXACT_TOTAL:
        return Total(counted, is_estimate=False)
    return Total(max(counted, _estimate(rows)), is_estimate=True)


def exceeds_one_export(rows: QuerySet[Any], total: Total) -> bool:
    """Whether an export would leave rows out. Counts only where `total`, which may be far too high, says so."""
    return total.rows > MAX_EXPORTED and rows.order_by()[: MAX_EXPORTED + 1].count() > MAX_EXPORTED


def export_of(rows: QuerySet[Any], query: LogQuery, columns: Sequence[str]) -> ExportedRows:
    """Each page is a list of rows with the values of `columns`, from one statement of its own."""
    limit = query.export_limit
    newest = _part(rows, query).values_list("id", flat=True).first()
    if newest is None:
        return ExportedRows(0, iter(()))
    total = _below_cursor(rows, query).order_by()[query.offset : query.offset + limit].count()
    return ExportedRows(total, _pages(rows, newest, limit, columns))


def _below_cursor(rows: QuerySet[Any], query: LogQuery) -> QuerySet[Any]:
    return rows if query.cursor is None else rows.filter(id__lt=query.cursor)


def _part(rows: QuerySet[Any], query: LogQuery) -> QuerySet[Any]:
    return _below_cursor(rows, query).order_by(NewestFirst())[query.offset :]


def _pages(rows: QuerySet[Any], newest: uuid.UUID, left: int, columns: Sequence[str]) -> Iterator[list[Sequence[Any]]]:
    ordered = rows.order_by(NewestFirst())
    below = ordered.filter(id__lte=newest)
    while left > 0 and (log_ids := _ids_of(below[: min(left, EXPORT_PAGE_ROWS)])):
        left -= len(log_ids)
        below = ordered.filter(id__lt=log_ids[-1])
        page = sorted(_rows_of(rows, log_ids).values_list("id", *columns), key=lambda row: row[0], reverse=True)
        yield [row[1:] for row in page]


def _ids_of(part: QuerySet[Any]) -> list[uuid.UUID]:
    """Only ids are looked for with the filters, in an index alone: rows that the offset skips are not read."""
    found: list[uuid.UUID] = list(part.values_list("id", flat=True))
    return found


def _rows_of(rows: QuerySet[Any], log_ids: Sequence[uuid.UUID]) -> QuerySet[Any]:
    """The rows with these ids, in no order. A statement of its own tells the planner how few they are."""
    wanted: QuerySet[Any] = rows.model._default_manager.filter(id__in=log_ids)
    return wanted


def _estimate(rows: QuerySet[Any]) -> int:
    if connection.vendor == "postgresql":
        # The planner's estimate for these conditions, from its statistics.
        (plan,) = json.loads(rows.order_by().explain(format="json"))
        return int(plan["Plan"]["Plan Rows"])
    return MAX_EXACT_TOTAL  # SQLite keeps no statistics
