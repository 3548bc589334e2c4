from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)  # the precision of shown times, and of the logs' ids


def now() -> datetime:
    return datetime.now(UTC)


def as_utc(moment: datetime) -> datetime:
    # SQLite stores UTC without saying so.
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def rfc3339(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds and a Z. Spec: D15"""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def whole_milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def midnight(day: date) -> datetime:
    """The first moment of the day in UTC."""
    return datetime.combine(day, time(), UTC)
