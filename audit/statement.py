"""The statement that keeps call records, as far as it is the same on both databases."""

from __future__ import annotations

from audit.call_record import COLUMNS, UNKNOWN

TABLE = "audit_requestauditentry"
# The columns in which an outcome replaces its intent.
OUTCOME_COLUMNS = (
    "status",
    "error_code",
    "duration_ms",
    "vendor_ms",
    "credential_scope",
    "credential_name",
    "cached",
    "response_bytes",
)
COLUMN_LIST = ", ".join(f'"{column}"' for column in COLUMNS)
_SET = ", ".join(f"{column} = EXCLUDED.{column}" for column in OUTCOME_COLUMNS)
# One id may be written twice: intent then outcome, or the same batch again after an answer that was lost. A finished
# row is never changed, so neither a late intent nor a repetition can undo or double anything.
UPSERT = (
    f"ON CONFLICT (id) DO UPDATE SET {_SET} WHERE {TABLE}.status = '{UNKNOWN}' AND {TABLE}.org_id = EXCLUDED.org_id"
)
REFUSALS = (ValueError, TypeError, OverflowError)  # of a value that no column could hold


class RecordRefused(Exception):
    """The database is well, but at least one record of the batch cannot be stored. Nothing of the batch was."""
