"""One row for the rate-limited calls of a subject in an organization and minute, over all processes.

Each process stores its own part of the count; the row's count is their sum. So a statement that is repeated after a
lost response counts nothing twice. Spec: D80, D146
"""

from __future__ import annotations

import hashlib
import itertools
import uuid
from datetime import datetime

from django.db import connection
from msgspec.structs import replace

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
        " WHERE kept.org_id = EXCLUDED.org_id AND kept.position IS NULL"
    ),
    "sqlite": (
        f"INSERT INTO {_TABLE} AS kept ({_NAMES}) VALUES ({_PLACEHOLDERS}, %s, json_object(%s, %s))"  # noqa: S608
        " ON CONFLICT (id) DO UPDATE SET count_parts = json_patch(kept.count_parts, EXCLUDED.count_parts),"
        " count = (SELECT SUM(value) FROM json_each(json_patch(kept.count_parts, EXCLUDED.count_parts)))"
        " WHERE kept.org_id = EXCLUDED.org_id AND kept.position IS NULL"
    ),
}


def minute_of(moment: datetime) -> int:
    """Returns minutes since the Unix epoch."""
    return int(moment.timestamp()) // MINUTE_S


def row_id(org_id: uuid.UUID, subject: str, minute: int, generation: int = 0) -> uuid.UUID:
    # The id is the same in every process.
    salt = f"\0{generation}" if generation else ""
    digest = hashlib.sha256(org_id.bytes + f"{subject}{salt}".encode()).digest()
    return ids.log_id_at(minute * MINUTE_S * 1000, digest[:10])


def upsert_part(record: CallRecord, part: str, calls: int) -> None:
    """Sets the part of one process, durable on return. Raises: django.db.Error.

    A final row keeps its count. Later counts go to a row of the next generation.
    """
    minute = minute_of(record.timestamp)
    for generation in itertools.count():
        row = replace(record, id=row_id(record.org_id, record.user_id, minute, generation))
        if _set_part(row, part, calls):
            return
        calls -= _final_part(row, part)
        if calls <= 0:
            return


def _set_part(record: CallRecord, part: str, calls: int) -> bool:
    """Returns False when the row is final."""
    columns = [
        field.get_db_prep_value(getattr(record, name), connection)  # type: ignore[union-attr]
        for name, field in zip(COLUMNS, _FIELDS, strict=True)
    ]
    with connection.cursor() as cursor:
        cursor.execute(_STATEMENTS[connection.vendor], [*columns, calls, part, calls])
        return bool(cursor.rowcount)


def _final_part(record: CallRecord, part: str) -> int:
    parts = RequestAuditEntry.objects.values_list("count_parts", flat=True).get(id=record.id, org_id=record.org_id)
    return int((parts or {}).get(part, 0))
