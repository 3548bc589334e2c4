"""What the request log shows, one organization at a time: every query walks an index that begins with it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db import connection
from django.db.models import Max, Q, QuerySet
from django.db.models.expressions import RawSQL

from audit.call_status import CallStatus
from audit.filters import Cursor, RequestFilters
from audit.models import RequestAuditEntry
from gateway.lib import clock

MAX_PAGE = 500  # D79
MAX_KNOWN = 500
MAX_COUNTED = 1_000
MAX_CALLS_COUNTED = 100_000  # of one day; D79 counts as far
ERRORS_ARE_RECENT_FOR = timedelta(days=14)
REJECTIONS_ARE_RECENT_FOR = timedelta(days=7)
MAX_REJECTIONS = 400  # a statement with a branch for each stays below SQLite's 500
REJECTED = "vendor_rejected_credentials"  # as the call path writes it when a vendor answers 401 or 403
_TABLE = RequestAuditEntry._meta.db_table
_EQUAL = ("user_id", "vendor", "tool", "source", "status", "request_id")


@dataclass(frozen=True, slots=True)
class Page:
    """Entries, newest first; `older` is the `before` of the next page, None at the end of the log."""

    entries: list[RequestAuditEntry]
    older: Cursor | None


@dataclass(frozen=True, slots=True)
class DayCalls:
    """The calls of one day in UTC."""

    day: date
    calls: int


@dataclass(frozen=True, slots=True)
class ToolUse:
    """Calls of one tool, MAX_COUNTED for as many or more, and the label of who called it last."""

    calls: int
    last_caller: str


@dataclass(frozen=True, slots=True)
class CredentialUse:
    """Calls after `since` with what the log calls one credential. `user_ids`: of these callers; None: of anybody.

    Two teams' credentials have one scope and no name in the log. Who called tells them apart.
    """

    vendor: str
    scope: str
    name: str
    since: datetime
    user_ids: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class RejectedUse:
    """The latest call of one caller that a vendor refused because of the credential."""

    vendor: str
    scope: str
    name: str
    user_id: str
    rejected_at: datetime


@dataclass(frozen=True, slots=True)
class KnownUser:
    """Somebody who has called, under the label of their latest call."""

    user_id: str
    user_label: str


def request_entries(
    org_id: uuid.UUID, *, filters: RequestFilters, before: Cursor | None = None, limit: int = 50
) -> Page:
    """One page of the log: as fast at its end as at its beginning, and rows that arrive meanwhile shift nothing.

    Spec: §4.10 · D79, D83
    """
    limit = min(max(limit, 1), MAX_PAGE)
    rows = matching_entries(org_id, filters=filters)
    if before is not None:
        # The first condition alone is what the index can walk to.
        after_it = Q(timestamp__lt=before.timestamp) | Q(id__lt=before.id)
        rows = rows.filter(Q(timestamp__lte=before.timestamp) & after_it)
    entries = list(rows.order_by("-timestamp", "-id")[: limit + 1])
    more = len(entries) > limit
    del entries[limit:]
    return Page(entries, Cursor(entries[-1].timestamp, entries[-1].id) if more else None)


def matching_entries(org_id: uuid.UUID, *, filters: RequestFilters) -> QuerySet[RequestAuditEntry]:
    """The organization's rows that match, in no order."""
    rows = RequestAuditEntry.objects.filter(org_id=org_id)
    rows = rows.filter(**{name: value for name in _EQUAL if (value := getattr(filters, name))})
    if filters.start_at is not None:
        rows = rows.filter(timestamp__gte=filters.start_at)
    if filters.end_before is not None:
        rows = rows.filter(timestamp__lt=filters.end_before)
    return rows


def calls_per_day(org_id: uuid.UUID, days: int = 14) -> list[DayCalls]:
    """The last `days` days in UTC, oldest first, today last; a day without calls is there with 0.

    Each day is counted to MAX_CALLS_COUNTED and no further, by a walk down the index.
    """
    today = clock.now().date()
    shown = [today - timedelta(days=back) for back in reversed(range(days))]
    few = f"SELECT 1 FROM {_TABLE} WHERE org_id = %s AND timestamp >= %s AND timestamp < %s LIMIT {MAX_CALLS_COUNTED}"  # noqa: S608
    branches = [f"SELECT {place}, (SELECT COUNT(*) FROM ({few}) AS few)" for place in range(days)]  # noqa: S608
    values: list[Any] = []
    for day in shown:
        bounds = (_midnight(day), _midnight(day + timedelta(days=1)))
        values += [_db_value("org_id", org_id), *(_db_value("timestamp", moment) for moment in bounds)]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(branches), values)
        return [DayCalls(shown[place], calls) for place, calls in sorted(cursor.fetchall())]


def calls_today(org_id: uuid.UUID) -> int:
    """Calls since midnight UTC, refused ones included, counted as in calls_per_day."""
    return calls_per_day(org_id, days=1)[0].calls


def has_any_call(org_id: uuid.UUID) -> bool:
    """Whether the log holds any call of the organization, refused ones included."""
    return RequestAuditEntry.objects.filter(org_id=org_id).exists()


def recent_errors(org_id: uuid.UUID, limit: int = 10) -> list[RequestAuditEntry]:
    """The latest calls of the last 14 days that ended in an error, newest first. Refusals are not errors."""
    rows = RequestAuditEntry.objects.filter(
        org_id=org_id, status=CallStatus.ERROR.value, timestamp__gte=clock.now() - ERRORS_ARE_RECENT_FOR
    )
    return list(rows.order_by("-timestamp", "-id")[:limit])


def known_vendors(org_id: uuid.UUID) -> list[str]:
    """The slugs of all vendors in the log, in order."""
    return [slug for (slug,) in _distinct(org_id, "vendor", "value")]


def known_users(org_id: uuid.UUID) -> list[KnownUser]:
    """Who is in the log, by label; people and service accounts that were removed are among them."""
    label = f"(SELECT user_label FROM {_TABLE} WHERE org_id = %s AND user_id = value ORDER BY timestamp DESC LIMIT 1)"  # noqa: S608
    users = [KnownUser(user_id, user_label) for user_id, user_label in _distinct(org_id, "user_id", f"value, {label}")]
    return sorted(users, key=lambda user: (user.user_label.casefold(), user.user_id))


def last_calls(org_id: uuid.UUID, user_ids: Sequence[str]) -> dict[str, datetime]:
    """When each of these subjects called last, one step down the index for each; who never did is absent."""
    if not user_ids:
        return {}
    newest = f"(SELECT id FROM {_TABLE} WHERE org_id = %s AND user_id = value ORDER BY timestamp DESC, id DESC LIMIT 1)"  # noqa: S608
    asked = " UNION ALL ".join(["SELECT %s AS value"] * len(user_ids))
    org = RequestAuditEntry._meta.get_field("org_id").get_db_prep_value(org_id, connection)
    ids = RawSQL(f"SELECT {newest} FROM ({asked}) AS asked", [org, *user_ids])  # noqa: S608, S611
    return dict(RequestAuditEntry.objects.filter(id__in=ids).values_list("user_id", "timestamp"))


def tool_use(org_id: uuid.UUID, vendor: str, tools: Sequence[str], since: datetime) -> dict[str, ToolUse]:
    """How often each tool of a vendor was called since then, and by whom last; a tool that never was is absent.

    Each is counted to MAX_COUNTED and no further, by steps down the index: one busy tool must not cost a page.
    """
    if not tools:
        return {}
    mine = f"FROM {_TABLE} WHERE org_id = %s AND tool = value AND vendor = %s AND timestamp >= %s"
    count = f"(SELECT COUNT(*) FROM (SELECT 1 {mine} LIMIT {MAX_COUNTED}) AS few)"  # noqa: S608
    last = f"(SELECT user_label {mine} ORDER BY timestamp DESC, id DESC LIMIT 1)"
    # Both databases call the column of such a list column1, and take a list of any length.
    asked = f"SELECT column1 AS value FROM (VALUES {', '.join(['(%s)'] * len(tools))}) AS names"  # noqa: S608
    own = [_db_value("org_id", org_id), vendor, _db_value("timestamp", since)]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT value, {count}, {last} FROM ({asked}) AS asked", [*own, *own, *tools])  # noqa: S608
        rows = cursor.fetchall()
    return {tool: ToolUse(calls, label) for tool, calls, label in rows if calls}


def rejected_uses(org_id: uuid.UUID) -> list[RejectedUse]:
    """What vendors rejected in the last 7 days, by credential and caller, newest first, MAX_REJECTIONS at most.

    An index of its own holds these rows and no other. Rows that name no credential are left out.
    """
    rows = RequestAuditEntry.objects.filter(
        org_id=org_id,
        status=CallStatus.ERROR.value,
        error_code=REJECTED,
        timestamp__gte=clock.now() - REJECTIONS_ARE_RECENT_FOR,
    ).exclude(credential_scope="")
    grouped = rows.values_list("vendor", "credential_scope", "credential_name", "user_id").annotate(at=Max("timestamp"))
    return [RejectedUse(*each) for each in grouped.order_by("-at")[:MAX_REJECTIONS]]


def accepted_uses(org_id: uuid.UUID, uses: Sequence[CredentialUse]) -> set[CredentialUse]:
    """Those of `uses` (MAX_REJECTIONS at most) with a successful call, all in one query.

    A kept result proves nothing: no vendor was asked for it.
    """
    if not uses:
        return set()
    branches, values = [], []
    for place, use in enumerate(uses):
        branches.append(f"SELECT {place} WHERE EXISTS ({_accepted(use)})")
        values += [_db_value("org_id", org_id), use.vendor, _db_value("timestamp", use.since)]
        values += [CallStatus.SUCCESS.value, use.scope, use.name, *(use.user_ids or ())]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(branches), values)
        return {uses[place] for (place,) in cursor.fetchall()}


def _accepted(use: CredentialUse) -> str:
    by_whom = "" if use.user_ids is None else f" AND user_id IN ({', '.join(['%s'] * len(use.user_ids))})"
    return (
        f"SELECT 1 FROM {_TABLE} WHERE org_id = %s AND vendor = %s AND timestamp > %s AND status = %s "  # noqa: S608
        f"AND credential_scope = %s AND credential_name = %s AND NOT cached{by_whom}"
    )


def _db_value(column: str, value: object) -> Any:
    field: Any = RequestAuditEntry._meta.get_field(column)
    return field.get_db_prep_value(value, connection)


def _distinct(org_id: uuid.UUID, column: str, columns: str) -> list[tuple[str, ...]]:
    """The first MAX_KNOWN values of `column`, each found by one step down the index.

    DISTINCT would read every row of the organization for a handful of values.
    """
    next_value = f"SELECT MIN({column}) FROM {_TABLE} WHERE org_id = %s AND {column} >"  # noqa: S608
    sql = (
        f"WITH RECURSIVE seen(value) AS (SELECT ({next_value} '') UNION ALL "  # noqa: S608
        f"SELECT ({next_value} seen.value) FROM seen WHERE seen.value IS NOT NULL) "
        f"SELECT {columns} FROM seen WHERE value IS NOT NULL LIMIT {MAX_KNOWN}"
    )
    org = RequestAuditEntry._meta.get_field("org_id").get_db_prep_value(org_id, connection)
    with connection.cursor() as cursor:
        cursor.execute(sql, [org] * sql.count("%s"))
        return list(cursor.fetchall())


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)
