"""Queries of the request log, each within one organization and along an index that starts with it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Max
from django.db.models.expressions import RawSQL

from audit.call_status import CallStatus
from audit.models import NOT_SUCCESS, REJECTED_CREDENTIAL, RequestAuditEntry
from audit.newest_first import NewestFirst, newest_first
from audit.sql_values import first_id, uuid_value
from gateway.lib import clock
from gateway.lib.ids import first_log_id_at

MAX_COUNTED = 1_000  # calls of one tool
MAX_CALLS_COUNTED = 100_000  # of one day; the limit of D79
ERRORS_ARE_RECENT_FOR = timedelta(days=14)
REJECTIONS_ARE_RECENT_FOR = timedelta(days=7)
MAX_REJECTIONS = 400  # a statement with a branch for each stays below SQLite's 500
_TABLE = RequestAuditEntry._meta.db_table


@dataclass(frozen=True, slots=True)
class DayCalls:
    day: date
    calls: int


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
    # The caller's latest call that the vendor refused because of the credential.
    rejected_at: datetime


def calls_per_day(org_id: uuid.UUID, days: int = 14) -> list[DayCalls]:
    """Returns the last `days` days in UTC, oldest first, each counted up to MAX_CALLS_COUNTED."""
    today = clock.now().date()
    shown = [today - timedelta(days=back) for back in reversed(range(days))]
    # Counts along the index and stops at the limit.
    few = f"SELECT 1 FROM {_TABLE} WHERE org_id = %s AND id >= %s AND id < %s LIMIT {MAX_CALLS_COUNTED}"  # noqa: S608
    branches = [f"SELECT {position}, (SELECT COUNT(*) FROM ({few}) AS few)" for position in range(days)]  # noqa: S608
    values: list[Any] = []
    for day in shown:
        midnight = clock.midnight(day)
        values += [uuid_value(org_id), first_id(midnight), first_id(midnight + timedelta(days=1))]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(branches), values)
        return [DayCalls(shown[position], calls) for position, calls in sorted(cursor.fetchall())]


def calls_today(org_id: uuid.UUID) -> int:
    """Counts since midnight UTC, refused calls included."""
    return calls_per_day(org_id, days=1)[0].calls


def has_any_call(org_id: uuid.UUID) -> bool:
    return RequestAuditEntry.objects.filter(org_id=org_id).exists()


def recent_errors(org_id: uuid.UUID, limit: int = 10) -> list[RequestAuditEntry]:
    """Refused calls are not errors."""
    rows = RequestAuditEntry.objects.filter(
        NOT_SUCCESS,
        org_id=org_id,
        status=CallStatus.ERROR.value,
        id__gte=first_log_id_at(clock.now() - ERRORS_ARE_RECENT_FOR),
    )
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
    grouped = rows.values_list("vendor", "credential_scope", "credential_name", "user_id").annotate(at=Max("timestamp"))
    return [RejectedUse(*each) for each in grouped.order_by("-at")[:MAX_REJECTIONS]]


def accepted_uses(org_id: uuid.UUID, uses: Sequence[CredentialUse]) -> set[CredentialUse]:
    """Returns those of at most MAX_REJECTIONS `uses` that have a successful call, in one query."""
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
