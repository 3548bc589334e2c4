"""Pure: the columns of the logs' CSV exports, each with its meaning. Spec: §2 Audit entries · D85, D146"""

from __future__ import annotations

from collections.abc import Mapping

CsvColumns = Mapping[str, str]  # the meaning by the heading
# The label comes first, then the id that it names. The count of D146 comes last.
REQUEST_CSV: CsvColumns = {
    "user": "the caller's name at the time of the call",
    "user_id": "the caller's id",
    "timestamp": "the time of the call in UTC",
    "vendor": "the vendor's slug",
    "tool": "the tool's name at the vendor",
    "source": "mcp or cli",
    "status": "success, error, denied or unknown",
    "duration_ms": "milliseconds from the request to its answer",
    "client_id": "the app or service account that sent it",
    "request_id": "the X-Request-Id of the answer",
    "count": "calls in this row: more than 1 for rate-limited calls of one minute",
}
ADMIN_CSV: CsvColumns = {
    "actor": "the name of the one who made the change, at that time",
    "actor_id": "its id; system for background jobs",
    "target": "the name of the row that was changed, at that time",
    "target_id": "its id",
    "event_type": "the kind of change",
    "timestamp": "the time of the change in UTC",
    "metadata": "the details as JSON",
}


def column_of(heading: str) -> str:
    """The column of the table."""
    return f"{heading}_label" if heading in {"user", "actor", "target"} else heading
