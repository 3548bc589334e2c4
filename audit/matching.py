"""The rows of a log that match filters, under conditions that an index answers alone. docs/decisions/0046"""

from __future__ import annotations

import uuid
from typing import Any

from django.db import connection
from django.db.models import Exists, F, Func, OuterRef, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast, Concat
from django.db.models.lookups import Exact

from audit.call_status import CallKind, CallStatus
from audit.distinct_values import MAX_KNOWN, distinct_values
from audit.filters import Filters
from audit.models import NOT_SUCCESS, NOT_TOOL, LogModel, RequestAuditEntry
from gateway.lib.ids import first_log_id_at

# The expression of the index on PostgreSQL, which has a hash of the two together.
_ORGANIZATION_AND_REQUEST = Func(
    F("org_id"), F("request_id"), template="(%(expressions)s)", arg_joiner="::text || ", output_field=TextField()
)


def matching_entries(log: LogModel, org_id: uuid.UUID, filters: Filters) -> QuerySet[Any]:
    """Returns the matching rows in no order. Spec: §4.10 · D83"""
    equal = dict(filters.equal)
    status, request_id, kind = (equal.pop(name, "") for name in ("status", "request_id", "kind"))
    rows: QuerySet[Any] = log._default_manager.filter(org_id=org_id, **equal)
    # Ids are times.
    if filters.start_at is not None:
        rows = rows.filter(id__gte=first_log_id_at(filters.start_at))
    if filters.end_before is not None:
        rows = rows.filter(id__lt=first_log_id_at(filters.end_before))
    if filters.callers is not None:
        rows = rows.filter(user_id__in=filters.callers)
    if request_id:
        rows = rows.filter(of_request(org_id, request_id))
    elif "tool" in equal and not {"vendor", "user_id"} & equal.keys():
        rows = rows.filter(_vendors_of(org_id))
    if kind:
        rows = _of_kind(rows, kind)
    elif "item" in equal:
        rows = rows.filter(NOT_TOOL)  # all that have one
    return _with_status(rows, status) if status else rows


def of_request(org_id: uuid.UUID | OuterRef, request_id: str) -> Q:
    """The condition that a row of the organization is of this request."""
    named = Q(request_id=request_id)
    if connection.vendor == "postgresql":
        return named & Q(Exact(_ORGANIZATION_AND_REQUEST, _organization_and(org_id, request_id)))
    return named


def _organization_and(org_id: uuid.UUID | OuterRef, request_id: str) -> Any:
    if isinstance(org_id, uuid.UUID):
        return f"{org_id}{request_id}"
    return Concat(Cast(org_id, TextField()), Value(request_id, TextField()))


def _of_kind(rows: QuerySet[Any], kind: str) -> QuerySet[Any]:
    """As `_with_status`: nearly all rows are of tools, and only the index of the others has the kind."""
    if kind != CallKind.TOOL:
        return rows.filter(NOT_TOOL, kind=kind)
    if connection.vendor != "postgresql":
        return rows.filter(kind=kind)
    return rows.filter(~Exists(rows.filter(NOT_TOOL, id=OuterRef("id"))))


def _with_status(rows: QuerySet[Any], status: str) -> QuerySet[Any]:
    """Returns those of `rows`, which have no condition on the status, with this one."""
    if status != CallStatus.SUCCESS:
        return rows.filter(NOT_SUCCESS, status=status)  # SQLite uses a partial index only for its own condition
    if connection.vendor != "postgresql":
        return rows.filter(status=status)
    # Nearly all rows are successes, and no index has them: an outcome changes the status. The index of the others says
    # which rows to leave out.
    return rows.filter(~Exists(rows.filter(NOT_SUCCESS, id=OuterRef("id"))))


def _vendors_of(org_id: uuid.UUID) -> Q:
    """A condition that all rows of the organization meet, to go with one on the tool.

    The index on PostgreSQL has the vendor before the tool. Without the vendors, all its rows of the organization would
    be read.
    """
    if connection.vendor != "postgresql":
        return Q()
    known = distinct_values(RequestAuditEntry, org_id, "vendor")
    if len(known) == MAX_KNOWN:  # there may be more
        return Q()
    return Q(vendor__in=["", *known])
