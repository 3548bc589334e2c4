from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    return datetime.now(UTC)


def rfc3339(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds and a Z. Spec: D15"""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
