"""Parses Retry-After: a number of seconds or a date. RFC 9110 §10.2.3"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_MAX_S = 86_400  # a day
_MAX_DATE_CHARACTERS = 40  # the longest of the three forms has 33


def parse_retry_after(retry_after: str | None, *, now: datetime) -> int | None:
    """Whole seconds, at most a day; 0 for a past date, None if the header is neither form."""
    if retry_after is None:
        return None
    if re.fullmatch("[0-9]{1,9}", retry_after):  # int() accepts other scripts' digits, and refuses very long numbers
        return min(int(retry_after), _MAX_S)
    moment = _moment(retry_after)
    return None if moment is None else min(max(math.ceil((moment - now).total_seconds()), 0), _MAX_S)


def _moment(text: str) -> datetime | None:
    """One of the three forms of RFC 9110 §5.6.7; asctime names no zone and means UTC."""
    if len(text) > _MAX_DATE_CHARACTERS:
        return None
    try:
        found = parsedate_to_datetime(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
