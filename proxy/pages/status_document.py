"""The status page as a JSON document, in English."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.lib import clock
from proxy.pages.status_board import Board, IncidentRow, PartRow


def document(board: Board) -> Mapping[str, Any]:
    """{status, parts, vendors, incidents, maintenance}. Days in a row that were alike are one entry."""
    return {
        "status": board.status.value,
        "parts": [_part(each) for each in board.parts],
        "vendors": [_part(each) for each in board.vendors],
        "incidents": [_incident(each) for each in (*board.open, *board.past)],
        "maintenance": [_incident(each) for each in board.planned],
    }


def _part(row: PartRow) -> Mapping[str, Any]:
    history = row.history
    return {
        "id": history.part,
        "name": row.english_name,
        "status": history.status.value,
        "since": clock.rfc3339(history.since) if history.since else None,
        "checkedAt": clock.rfc3339(history.checked_at) if history.checked_at else None,
        "uptimePercent": history.uptime,
        "days": [
            {
                "from": run.first.isoformat(),
                "to": run.last.isoformat(),
                "status": run.status.value,
                "degradedSeconds": run.degraded_s,
                "downSeconds": run.down_s,
            }
            for run in history.runs
        ],
    }


def _incident(row: IncidentRow) -> Mapping[str, Any]:
    return {
        "id": row.id,
        "kind": row.kind.value,
        "title": row.title,
        "severity": row.severity.value,
        "parts": list(row.parts),
        "startsAt": clock.rfc3339(row.starts_at),
        "endsAt": clock.rfc3339(row.ends_at) if row.ends_at else None,
        "endedAt": clock.rfc3339(row.ended_at) if row.ended_at else None,
        "updates": [
            {"stage": each.stage.value, "at": clock.rfc3339(each.posted_at), "text": each.text} for each in row.updates
        ],
    }
