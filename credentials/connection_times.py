"""Pure: when a connection's token is renewed."""

from __future__ import annotations

from datetime import datetime, timedelta

# The part of a token's life in which it is renewed ahead of its end, and its least length in seconds.
AHEAD_SHARE, AHEAD_AT_LEAST_S = 0.2, 60.0
# Until the next try after an answer that said neither yes nor no.
RETRY_AFTER = timedelta(seconds=30)


def times_of(
    now: datetime, expires_in_s: float | None, *, has_refresh: bool
) -> tuple[datetime | None, datetime | None]:
    """(end of the access token, when its renewal is due); None: unknown, never."""
    if expires_in_s is None:
        return None, None
    ends = now + timedelta(seconds=expires_in_s)
    if not has_refresh:
        return ends, ends
    # A token that lives shorter than the least lead is used for half of its life.
    ahead_s = min(max(AHEAD_AT_LEAST_S, AHEAD_SHARE * expires_in_s), expires_in_s / 2)
    return ends, ends - timedelta(seconds=ahead_s)
