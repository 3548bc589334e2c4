"""The deprecated per-vendor MCP endpoint and its optional shutdown date. D112"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from gateway.settings import env

_DEPRECATED_AT = datetime(2026, 11, 1, tzinfo=UTC)
_NOTICE = timedelta(days=365)


def _sunset(name: str) -> datetime | None:
    """The configured day at midnight UTC; None without one. Refuses less than a year's notice."""
    raw = env.text("VENDOR_MCP_SUNSET")
    if not raw:
        return None
    try:
        day = datetime.strptime(raw, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        env.refuse(name, f"must be a day such as 2028-01-31, not {raw!r}.")
    if day < _DEPRECATED_AT + _NOTICE:
        env.refuse(name, f"must not be before {_DEPRECATED_AT + _NOTICE:%Y-%m-%d}.")
    return day


VENDOR_MCP_DEPRECATED = f"@{int(_DEPRECATED_AT.timestamp())}"  # RFC 9745, a structured date
VENDOR_MCP_SUNSET = _sunset("VENDOR_MCP_SUNSET")
