"""Pure: the columns of the logs' CSV exports, each with its meaning. Spec: §2 Audit entries · D85, D146"""

from __future__ import annotations

from collections.abc import Mapping

from gateway.lib.sentences import sentence

CsvColumns = Mapping[str, str]  # the meaning by the heading
# The label comes first, then the id that it names. Later columns come last.
REQUEST_CSV: CsvColumns = {
    "user": sentence("the caller’s name at the time of the call"),
    "user_id": sentence("the caller’s id"),
    "timestamp": sentence("the time of the call in UTC"),
    "vendor": sentence("the vendor’s slug"),
    "tool": sentence("the tool’s name at the vendor"),
    "source": sentence("mcp or cli"),
    "status": sentence("success, error, denied or unknown"),
    "duration_ms": sentence("milliseconds from the request to its answer"),
    "client_id": sentence("the app or agent that sent it"),
    "request_id": sentence("the X-Request-Id of the answer"),
    "count": sentence("calls in this row: more than 1 where the rate-limited calls of one minute share it"),
    "kind": sentence("tool, resource, prompt or completion"),
    "item": sentence("the resource’s address or the prompt’s name at the vendor; for a tool, what the vendor asked"),
}
ADMIN_CSV: CsvColumns = {
    "actor": sentence("the name, at that time, of the person who made the change"),
    "actor_id": sentence("its id; system for background jobs"),
    "target": sentence("the name, at that time, of what was changed"),
    "target_id": sentence("its id"),
    "event_type": sentence("the kind of change"),
    "timestamp": sentence("the time of the change in UTC"),
    "metadata": sentence("the details as JSON"),
}


def column_of(heading: str) -> str:
    """The column of the table."""
    return f"{heading}_label" if heading in {"user", "actor", "target"} else heading
