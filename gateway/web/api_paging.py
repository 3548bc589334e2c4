"""Cursor paging for callers who send `limit` or `cursor`. The body stays a bare array. Spec: D161"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core import signing
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils.http import urlencode

from gateway.lib.errors import Invalid

MAX_LIMIT = 1_000
# Rows of one page. A caller can ask for at most MAX_LIMIT.
DEFAULT_LIMIT = 100  # for a caller who sends only a cursor


@dataclass(frozen=True, slots=True)
class Page:
    rows: list[Any]
    # `Link` with rel="next", unless this is the last page.
    headers: dict[str, str]


def paginate(request: HttpRequest, *lists: QuerySet[Any]) -> Page:
    """The page of the concatenated `lists` that `?limit=` and `?cursor=` ask for; all rows without either. Raises:
    Invalid.
    """
    # Each list must be ordered by columns that identify a row uniquely.
    asked_limit, cursor = request.GET.get("limit"), request.GET.get("cursor")
    if asked_limit is None and cursor is None:
        return Page([row for rows in lists for row in rows], {})
    limit = _limit(asked_limit)
    number, position = _read_cursor(request, cursor) if cursor is not None else (0, None)
    found: list[tuple[int, Any]] = []
    for at in range(number, len(lists)):
        rows = _after(lists[at], position) if position is not None and at == number else lists[at]
        found += [(at, row) for row in rows[: limit + 1 - len(found)]]
        if len(found) > limit:
            break
    shown = found[:limit]
    if len(found) <= limit:
        return Page([row for _, row in shown], {})
    at, last = shown[-1]
    kept = {"name": request.GET["name"]} if "name" in request.GET else {}
    query = urlencode({**kept, "limit": str(limit), "cursor": _cursor(request, at, _position_of(lists[at], last))})
    link = f'<{settings.BASE_URL}{request.path}?{query}>; rel="next"'
    return Page([row for _, row in shown], {"Link": link})


def _limit(asked: str | None) -> int:
    if asked is None:
        return DEFAULT_LIMIT
    if not asked.isascii() or not asked.isdecimal() or len(asked) > 6 or not 1 <= int(asked) <= MAX_LIMIT:
        raise Invalid(f"limit must be a whole number from 1 to {MAX_LIMIT}.")
    return int(asked)


def _columns(rows: QuerySet[Any]) -> list[tuple[str, bool]]:
    # (column, descending) pairs
    order = [str(name) for name in rows.query.order_by]
    return [(name.removeprefix("-"), name.startswith("-")) for name in order]


def _position_of(rows: QuerySet[Any], row: Model) -> list[str]:
    return [row._meta.get_field(name).value_to_string(row) for name, _ in _columns(rows)]  # type: ignore[union-attr]


def _after(rows: QuerySet[Any], position: Sequence[str]) -> QuerySet[Any]:
    """Keyset pagination: the rows that sort after `position`."""
    after, same = Q(), Q()
    for (name, descends), text in zip(_columns(rows), position, strict=True):
        value = rows.model._meta.get_field(name).to_python(text)
        after |= same & Q(**{f"{name}__{'lt' if descends else 'gt'}": value})
        same &= Q(**{name: value})
    return rows.filter(after)


def _cursor(request: HttpRequest, number: int, position: Sequence[str]) -> str:
    # A cursor is the sort key of the last row, so inserted or deleted rows shift no page. The salt binds it to one
    # path.
    return signing.dumps([number, *position], salt=f"{__name__}{request.path}")


def _read_cursor(request: HttpRequest, cursor: str) -> tuple[int, list[str]]:
    try:
        number, *position = signing.loads(cursor, salt=f"{__name__}{request.path}")
    except signing.BadSignature:
        raise Invalid("cursor must come from a Link header of this address.") from None
    return int(number), position
