"""One row for the rate-limited calls of a subject in an organization and minute, over all processes.

Each process stores its own part of the count; the row's count is their sum. So a statement that is repeated after a
lost response counts nothing twice. Spec: D80, D146
"""

from __future__ import annotations

import hashlib
import uuid
from datetime import datetime

from django.db import connection

from audit.call_record import COLUMNS, CallRecord
from audit.models import RequestAuditEntry
from gateway.lib import ids

MINUTE_S = 60
_TABLE = RequestAuditEntry._meta.db_table
_FIELDS = [RequestAuditEntry._meta.get_field(column) for column in COLUMNS]
_NAMES = ", ".join(f'"{column}"' for column in (*COLUMNS, "count", "count_parts"))
_PLACEHOLDERS = ", ".join(["%s"] * len(COLUMNS))
# One statement without a transaction: a process that stops in the middle holds no lock on the row.
_STATEMENTS = {
    "postgresql": (
        f"INSERT INTO {_TABLE} AS kept ({_NAMES}) VALUES ({_PLACEHOLDERS}, %s, jsonb_build_object(%s::text, %s::int))"  # noqa: S608
        " ON CONFLICT (id) DO UPDATE SET count_parts = kept.count_parts || EXCLUDED.count_parts,"
        " count = (SELECT SUM(value::int) FROM jsonb_each_text(kept.count_parts || EXCLUDED.count_parts))"
        " WHERE kept.org_id = EXCLUDED.org_id"
    ),
    "sqlite": (
        f"INSERT INTO {_TABLE} AS kept ({_NAMES}) VALUES ({_PLACEHOLDERS}, %s, json_object(%s, %s))"  # noqa: S608
        " ON CONFLICT (id) DO UPDATE SET count_parts = json_patch(kept.count_parts, EXCLUDED.count_parts),"
        " count = (SELECT SUM(value) FROM json_each(json_patch(kept.count_parts, EXCLUDED.count_parts)))"
        " WHERE kept.org_id = EXCLUDED.org_id"
    ),
}


def minute_of(moment: datetime) -> int:
    """Returns minutes since the Unix epoch."""
    return int(moment.timestamp()) // MINUTE_S


def row_id(org_id: uuid.UUID, subject: str, minute: int) -> uuid.UUID:
    # The id is the same in every process.
    digest = hashlib.sha256(org_id.bytes + subject.encode()).digest()
    return ids.log_id_at(minute * MINUTE_S * 1000, digest[:10])


def upsert_part(record: CallRecord, part: str, calls: int) -> None:
    """Sets the part of one process, durable on return. Raises: django.db.Error."""
    columns = [
        field.get_db_prep_value(getattr(record, name), connection)  # type: ignore[union-attr]
        for name, field in zip(COLUMNS, _FIELDS, strict=True)
    ]
    with connection.cursor() as cursor:
        cursor.execute(_STATEMENTS[connection.vendor], [*columns, calls, part, calls])
