"""Conditions that let the database answer a filter of the request log from an index alone. docs/decisions/0046"""

from __future__ import annotations

import uuid

from django.db import connection
from django.db.models import Exists, F, Func, OuterRef, Q, QuerySet, TextField
from django.db.models.lookups import Exact

from audit.call_status import CallStatus
from audit.distinct_values import MAX_KNOWN, distinct_values
from audit.models import NOT_SUCCESS, RequestAuditEntry

Rows = QuerySet[RequestAuditEntry]


# The expression of the index on PostgreSQL, which has a hash of the two together.
_ORGANIZATION_AND_REQUEST = Func(
    F("org_id"), F("request_id"), template="(%(expressions)s)", arg_joiner="::text || ", output_field=TextField()
)


def of_request(org_id: uuid.UUID, request_id: str) -> Q:
    """The condition that a row of the organization is of this request."""
    named = Q(request_id=request_id)
    if connection.vendor == "postgresql":
        return named & Q(Exact(_ORGANIZATION_AND_REQUEST, f"{org_id}{request_id}"))
    return named


def with_status(rows: Rows, status: str) -> Rows:
    """Returns those of `rows`, which have no condition on the status, with this one."""
    if status != CallStatus.SUCCESS:
        return rows.filter(NOT_SUCCESS, status=status)  # SQLite uses a partial index only for its own condition
    if connection.vendor != "postgresql":
        return rows.filter(status=status)
    # Nearly all rows are successes, and no index has them: an outcome changes the status. The index of the others says
    # which rows to leave out.
    return rows.filter(~Exists(rows.filter(NOT_SUCCESS, id=OuterRef("id"))))


def vendors_of(org_id: uuid.UUID) -> Q:
    """A condition that all rows of the organization meet, to go with one on the tool.

    The index on PostgreSQL has the vendor before the tool. Without the vendors, all its rows of the organization would
    be read.
    """
    if connection.vendor != "postgresql":
        return Q()
    known = [vendor for (vendor,) in distinct_values(RequestAuditEntry, org_id, "vendor", "value")]
    if len(known) == MAX_KNOWN:  # there may be more
        return Q()
    return Q(vendor__in=["", *known])
