"""The choice of an end of vendor access, as the fragment `orgs/_access_end.html` sends it."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from django.http import QueryDict
from django.utils.formats import date_format

from gateway.lib import clock
from gateway.lib.errors import Invalid
from gateway.lib.sentences import sentence

DATE = "date"
# Value and text of each choice but the date.
CHOICES: tuple[tuple[str, str, timedelta | None], ...] = (
    ("", sentence("No end date"), None),
    ("1h", sentence("1 hour"), timedelta(hours=1)),
    ("1d", sentence("1 day"), timedelta(days=1)),
    ("7d", sentence("7 days"), timedelta(days=7)),
    ("30d", sentence("30 days"), timedelta(days=30)),
)
_SPANS = {value: span for value, _, span in CHOICES}


def read_end(form: QueryDict, now: datetime) -> datetime | None:
    """None for access without an end. A chosen date is the last day of the access, in UTC. Raises: Invalid."""
    chosen, day = form.get("ends", ""), form.get("ends_on", "").strip()
    if chosen == DATE:
        return _end_of(day, now)
    if chosen not in _SPANS:
        raise Invalid(sentence("Choose how long the access lasts."))
    if day:
        # The form works without a script, so a date can be typed beside another choice.
        raise Invalid(sentence("You chose a date and another duration. Choose “Until a date” to use the date."))
    span = _SPANS[chosen]
    return None if span is None else now + span


def shown_end(moment: datetime) -> str:
    """Such as `26 Nov 2026, 21:00 UTC`, in the language of the page."""
    return f"{date_format(moment, 'DATETIME_FORMAT')} UTC"


def _end_of(day: str, now: datetime) -> datetime:
    try:
        end = clock.midnight(date.fromisoformat(day)) + timedelta(days=1)
    except (ValueError, OverflowError):
        raise Invalid(sentence("Choose the last day of access.")) from None
    if end <= now:
        raise Invalid(sentence("That day has passed. Choose a later one."))
    return end
