"""Pure: how long ago something was, in words."""

from __future__ import annotations

from datetime import datetime

from gateway.lib.sentences import sentence

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
# Words for one and for several, and the seconds of each unit, the largest first.
_UNITS = (
    (sentence("%(count)s year ago"), sentence("%(count)s years ago"), 365 * _DAY),
    (sentence("%(count)s month ago"), sentence("%(count)s months ago"), 30 * _DAY),
    (sentence("%(count)s day ago"), sentence("%(count)s days ago"), _DAY),
    (sentence("%(count)s hour ago"), sentence("%(count)s hours ago"), _HOUR),
    (sentence("%(count)s minute ago"), sentence("%(count)s minutes ago"), _MINUTE),
)


def ago(moment: datetime, now: datetime) -> str:
    """For example "3 months ago"; less than a minute is "just now"."""
    seconds = int((now - moment).total_seconds())
    for one, several, length in _UNITS:
        if seconds >= length:
            count = seconds // length
            return sentence(one if count == 1 else several, count=count)
    return sentence("just now")
