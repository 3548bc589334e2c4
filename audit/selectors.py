"""Queries of the request log, each within one organization and along an index that starts with it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Max, Min, OuterRef, Subquery
from django.db.models.expressions import RawSQL

from audit.call_status import CallStatus
from audit.matching import of_request
from audit.models import NOT_SUCCESS, REJECTED_CREDENTIAL, AdminAuditEntry, RequestAuditEntry
from audit.newest_first import NewestFirst, newest_first
from audit.sql_values import first_id, uuid_value
from gateway.lib import clock
from gateway.lib.ids import first_log_id_at

MAX_COUNTED = 1_000  # calls of one tool
MAX_CALLS_COUNTED = 100_000  # of one day; the limit of D79
ERRORS_ARE_RECENT_FOR = timedelta(days=14)
REJECTIONS_ARE_RECENT_FOR = timedelta(days=7)
IN_USE_FOR = timedelta(days=30)
MAX_REJECTIONS = 400  # a statement with a branch for each stays below SQLite's 500
_TABLE = RequestAuditEntry._meta.db_table


@dataclass(frozen=True, slots=True)
class DayCalls:
    day: date
    calls: int
    # Of the calls. Refused calls are not errors.
    errors: int = 0


@dataclass(frozen=True, slots=True)
class RecentCalls:
    """`days`: oldest first. `has_any`: a call of any day."""

    days: list[DayCalls]
    has_any: bool


@dataclass(frozen=True, slots=True)
class ToolUse:
    calls: int
    # The label of the latest caller; `calls` stops at MAX_COUNTED.
    last_caller: str


@dataclass(frozen=True, slots=True)
class CredentialUse:
    """Calls after `since` with the credential of this scope and name."""

    vendor: str
    scope: str
    name: str
    since: datetime
    # Only calls of these callers; None means all. Two teams' credentials share scope and name, so callers tell them
    # apart.
    user_ids: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class RejectedUse:
    vendor: str
    scope: str
    name: str
    user_id: str
    # The caller's latest call that the vendor refused because of the credential, and the first one of these days.
    rejected_at: datetime
    first_rejected_at: datetime


@dataclass(frozen=True, slots=True)
class CallsThrough:
    """Calls with one credential in IN_USE_FOR. `is_part`: of the vendor's newest MAX_CALLS_COUNTED calls only."""

    calls: int
    people: int
    agents: int
    calls_today: int  # of the last 24 hours
    is_part: bool


def recent_calls(org_id: uuid.UUID, days: int, *, user_id: str = "") -> RecentCalls:
    """The last `days` days in UTC, each counted up to MAX_CALLS_COUNTED; of one caller if named."""
    today = clock.now().date()
    shown = [today - timedelta(days=back) for back in reversed(range(days))]
    of_caller, caller = ("user_id = %s AND ", [user_id]) if user_id else ("", [])
    # Each subquery reads along an index and stops at its limit.
    every = f"SELECT 1 FROM {_TABLE} WHERE {of_caller}org_id = %s"  # noqa: S608
    of_day = f"{every} AND id >= %s AND id < %s"
    # The first condition is that of the index.
    failed = f"{of_day} AND NOT (status = '{CallStatus.SUCCESS.value}') AND status = '{CallStatus.ERROR.value}'"
    branches = [f"SELECT {position}, {_up_to(of_day)}, {_up_to(failed)}" for position in range(days)]
    values: list[Any] = []
    for day in shown:
        midnight = clock.midnight(day)
        values += [*caller, uuid_value(org_id), first_id(midnight), first_id(midnight + timedelta(days=1))] * 2
    with connection.cursor() as cursor:
        cursor.execute(
            " UNION ALL ".join([*branches, f"SELECT {days}, {_up_to(every, 1)}, 0"]),
            [*values, *caller, uuid_value(org_id)],
        )
        *rows, (_, ever, _) = sorted(cursor.fetchall())
    return RecentCalls([DayCalls(shown[position], *counts) for position, *counts in rows], bool(ever))


def _up_to(rows: str, limit: int | None = None) -> str:
    return f"(SELECT COUNT(*) FROM ({rows} LIMIT {limit or MAX_CALLS_COUNTED}) AS few)"  # noqa: S608


def recent_changes(org_id: uuid.UUID, limit: int = 8) -> list[AdminAuditEntry]:
    """Newest first."""
    return list(AdminAuditEntry.objects.filter(org_id=org_id).order_by(NewestFirst())[:limit])


def recent_errors(
    org_id: uuid.UUID, limit: int = 10, *, vendor: str = "", user_id: str = ""
) -> list[RequestAuditEntry]:
    """Newest first, of one vendor or one caller if it is named. Refused calls are not errors."""
    rows = RequestAuditEntry.objects.filter(
        NOT_SUCCESS,
        org_id=org_id,
        status=CallStatus.ERROR.value,
        id__gte=first_log_id_at(clock.now() - ERRORS_ARE_RECENT_FOR),
    )
    if vendor:
        rows = rows.filter(vendor=vendor)
    if user_id:
        rows = rows.filter(user_id=user_id)
    return list(rows.order_by(NewestFirst())[:limit])


def last_calls(org_id: uuid.UUID, user_ids: Sequence[str]) -> dict[str, datetime]:
    """Maps subjects to their latest call; a subject without calls is absent."""
    if not user_ids:
        return {}
    # One index step for each subject.
    newest = f"(SELECT id FROM {_TABLE} WHERE org_id = %s AND user_id = value ORDER BY {newest_first()} LIMIT 1)"  # noqa: S608
    asked = " UNION ALL ".join(["SELECT %s AS value"] * len(user_ids))
    ids = RawSQL(f"SELECT {newest} FROM ({asked}) AS asked", [uuid_value(org_id), *user_ids])  # noqa: S608, S611
    return dict(RequestAuditEntry.objects.filter(id__in=ids).values_list("user_id", "timestamp"))


def tool_use(org_id: uuid.UUID, vendor: str, tools: Sequence[str], since: datetime) -> dict[str, ToolUse]:
    """Returns the use of each tool after `since`; a tool without calls is absent."""
    if not tools:
        return {}
    mine = f"FROM {_TABLE} WHERE org_id = %s AND tool = value AND vendor = %s AND id >= %s"
    # Stops at MAX_COUNTED, so that one busy tool does not slow the page.
    count = f"(SELECT COUNT(*) FROM (SELECT 1 {mine} LIMIT {MAX_COUNTED}) AS few)"  # noqa: S608
    last = f"(SELECT user_label {mine} ORDER BY {newest_first()} LIMIT 1)"
    # Both databases name a VALUES column column1, and accept a list of any length.
    asked = f"SELECT column1 AS value FROM (VALUES {', '.join(['(%s)'] * len(tools))}) AS names"  # noqa: S608
    own = [uuid_value(org_id), vendor, first_id(since)]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT value, {count}, {last} FROM ({asked}) AS asked", [*own, *own, *tools])  # noqa: S608
        rows = cursor.fetchall()
    return {tool: ToolUse(calls, label) for tool, calls, label in rows if calls}


def rejected_uses(org_id: uuid.UUID) -> list[RejectedUse]:
    """Returns at most MAX_REJECTIONS of the last 7 days, newest first; rows without a credential are left out."""
    rows = RequestAuditEntry.objects.filter(
        REJECTED_CREDENTIAL,
        org_id=org_id,
        status=CallStatus.ERROR.value,
        id__gte=first_log_id_at(clock.now() - REJECTIONS_ARE_RECENT_FOR),
    ).exclude(credential_scope="")
    grouped = rows.values_list("vendor", "credential_scope", "credential_name", "user_id").annotate(
        at=Max("timestamp"), first=Min("timestamp")
    )
    return [RejectedUse(*each) for each in grouped.order_by("-at")[:MAX_REJECTIONS]]


def accepted_uses(org_id: uuid.UUID, uses: Sequence[CredentialUse]) -> set[CredentialUse]:
    """Returns those of at most MAX_REJECTIONS `uses` that have a successful call, in one query."""
    # Without callers there are no calls, and an empty IN is no SQL.
    uses = [use for use in uses if use.user_ids != ()]
    if not uses:
        return set()
    branches, values = [], []
    for position, use in enumerate(uses):
        branches.append(f"SELECT {position} WHERE EXISTS ({_accepted(use)})")
        values += [uuid_value(org_id), use.vendor, first_id(use.since + clock.MILLISECOND)]
        values += [CallStatus.SUCCESS.value, use.scope, use.name, *(use.user_ids or ())]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(branches), values)
        return {uses[position] for (position,) in cursor.fetchall()}


def _accepted(use: CredentialUse) -> str:
    caller_filter = "" if use.user_ids is None else f" AND user_id IN ({', '.join(['%s'] * len(use.user_ids))})"
    return (
        f"SELECT 1 FROM {_TABLE} WHERE org_id = %s AND vendor = %s AND id >= %s AND status = %s "  # noqa: S608
        # A cached result proves nothing: no vendor checked the credential.
        f"AND credential_scope = %s AND credential_name = %s AND NOT cached{caller_filter}"
    )


def calls_through(org_id: uuid.UUID, use: CredentialUse) -> CallsThrough:
    """Counts the calls with a credential after `use.since`: success, error and unknown, cached ones included."""
    callers = "" if use.user_ids is None else f" AND user_id IN ({', '.join(['%s'] * len(use.user_ids))})"
    # An empty IN is no SQL: a credential without callers has no calls.
    if use.user_ids == ():
        return CallsThrough(0, 0, 0, 0, is_part=False)
    counted = (CallStatus.SUCCESS.value, CallStatus.ERROR.value, CallStatus.UNKNOWN.value)
    newest = (
        f"SELECT id, user_id, status, credential_scope, credential_name FROM {_TABLE} "  # noqa: S608
        f"WHERE org_id = %s AND vendor = %s AND id >= %s ORDER BY {newest_first()} LIMIT {MAX_CALLS_COUNTED}"
    )
    mine = (
        "SELECT id, user_id, CASE WHEN credential_scope = %s AND credential_name = %s "  # noqa: S608
        f"AND status IN (%s, %s, %s){callers} THEN 1 END AS is_mine FROM ({newest}) AS newest"
    )
    is_agent = "user_id LIKE 'svc:%%'"
    columns = (
        "COUNT(*), COUNT(is_mine), "
        f"COUNT(DISTINCT CASE WHEN is_mine = 1 AND NOT {is_agent} THEN user_id END), "
        f"COUNT(DISTINCT CASE WHEN is_mine = 1 AND {is_agent} THEN user_id END), "
        "COUNT(CASE WHEN is_mine = 1 AND id >= %s THEN 1 END)"
    )
    values: list[Any] = [first_id(clock.now() - timedelta(days=1)), use.scope, use.name, *counted]
    values += [*(use.user_ids or ()), uuid_value(org_id), use.vendor, first_id(use.since)]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM ({mine}) AS mine", values)  # noqa: S608
        seen, calls, people, agents, today = cursor.fetchone()
    return CallsThrough(calls, people, agents, today, is_part=seen >= MAX_CALLS_COUNTED)


def has_call_of_request(org_id: uuid.UUID, request_id: str) -> bool:
    return RequestAuditEntry.objects.filter(org_id=org_id, request_id=request_id).exists()


def request_subquery(org_column: str, request_id: str) -> Subquery:
    """The newest log id of a request in the organization that the outer query's column names; NULL without one."""
    rows = RequestAuditEntry.objects.filter(of_request(OuterRef(org_column), request_id), org_id=OuterRef(org_column))
    # A subquery with a limit stays one: as a join the planner might read the whole log.
    return Subquery(rows.order_by(NewestFirst()).values("id")[:1])
