"""The parts of the INSERT of call records that both databases share."""

from audit.call_record import COLUMNS, UNKNOWN

TABLE = "audit_requestauditentry"
# The columns of an intent that its outcome overwrites.
OUTCOME_COLUMNS = tuple(
    "status error_code duration_ms vendor_ms credential_scope credential_name cached response_bytes item".split()
)
COLUMN_LIST = ", ".join(f'"{column}"' for column in COLUMNS)
_SET = ", ".join(f"{column} = EXCLUDED.{column}" for column in (*OUTCOME_COLUMNS, "position"))
# An id may come twice: intent then outcome, or a batch repeated after a lost response. A final row never changes, so
# neither a late intent nor a repetition can undo or double it.
UPSERT = (
    f"ON CONFLICT (id) DO UPDATE SET {_SET} WHERE {TABLE}.position IS NULL AND {TABLE}.status = '{UNKNOWN}'"
    f" AND {TABLE}.org_id = EXCLUDED.org_id"
)
REFUSALS = (ValueError, TypeError, OverflowError)  # raised for a value that no column can hold


class RecordRefused(Exception):
    """A record of the batch cannot be stored, so none was. The connection still works."""
