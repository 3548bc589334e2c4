"""A destination as its pages show it: state, lag and the last day in words and as a drawing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.utils.translation import gettext, gettext_lazy, ngettext

from audit.models import LogDestination
from audit.shipping.last_day import Hour, last_day
from audit.shipping.platforms.registry import PLATFORMS
from audit.shipping.waiting import Lag, lag_of
from audit.shipping_models import DestinationStatus
from gateway.lib import clock
from gateway.lib.numbers import grouped

PAUSED = "paused"
# By status: its word, and what it says.
WORDS = {
    DestinationStatus.NEW.value: (gettext_lazy("new"), gettext_lazy("Nothing has been sent yet.")),
    DestinationStatus.OK.value: (gettext_lazy("delivering"), gettext_lazy("The platform is accepting records.")),
    DestinationStatus.RETRYING.value: (
        gettext_lazy("retrying"),
        gettext_lazy("The last attempt failed. We’re retrying, and records are waiting."),
    ),
    DestinationStatus.FAILING.value: (
        gettext_lazy("failing"),
        gettext_lazy("We keep retrying. Records wait for 24 hours, then they’re skipped."),
    ),
    PAUSED: (
        gettext_lazy("paused"),
        gettext_lazy("Nothing is sent. When you resume, records older than 24 hours are skipped."),
    ),
}
# The drawing: one bar an hour on a base line, and below it a mark where something went wrong.
_STEP, _BASE, _LEAST = 8, 24, 2


@dataclass(frozen=True, slots=True)
class Bar:
    x: int
    y: int
    height: int
    hour: Hour


def host_of(destination: LogDestination) -> str:
    """Without the path, which may hold a secret of the receiver."""
    return urlsplit(destination.endpoint_url).netloc


def shown(destinations: Iterable[LogDestination]) -> list[dict[str, Any]]:
    rows = list(destinations)
    days = last_day(rows)
    return [_shown(row, days[row.pk]) for row in rows]


def _shown(destination: LogDestination, hours: list[Hour]) -> dict[str, Any]:
    status = destination.status if destination.enabled else PAUSED
    word, meaning = WORDS[status]
    lag, now = lag_of(destination), clock.now()
    return {
        "destination": destination,
        "platform": PLATFORMS[destination.platform],
        "host": host_of(destination),
        "status": status,
        "word": word,
        "meaning": meaning,
        "lag": lag,
        "lag_records": _records(lag),
        "lag_age": age_in_words(lag.seconds(now)) if lag.oldest else "",
        "next_attempt_at": destination.next_attempt_at if destination.failures and destination.enabled else None,
        "hours": hours,
        "bars": _bars(hours),
        "day": _day(hours),
    }


def age_in_words(seconds: int) -> str:
    """For example `5 s`, `12 min` or `3 h 20 min`."""
    minutes = seconds // 60
    if not minutes:
        return gettext("%(seconds)s s") % {"seconds": seconds}
    if minutes < 60:
        return gettext("%(minutes)s min") % {"minutes": minutes}
    return gettext("%(hours)s h %(minutes)s min") % {"hours": minutes // 60, "minutes": minutes % 60}


def _records(lag: Lag) -> str:
    count = grouped(lag.records)
    if lag.is_more:
        return gettext("more than %(count)s records") % {"count": count}
    return ngettext("%(count)s record", "%(count)s records", lag.records) % {"count": count}


def _bars(hours: list[Hour]) -> list[Bar]:
    most = max(hour.delivered for hour in hours)
    bars = []
    for place, hour in enumerate(hours):
        height = max(_LEAST, round(_BASE * hour.delivered / most)) if hour.delivered else 0
        bars.append(Bar(place * _STEP, _BASE - height, height, hour))
    return bars


def _day(hours: list[Hour]) -> str:
    """The drawing in words."""
    failures = sum(hour.failures for hour in hours)
    parts = {
        "delivered": grouped(sum(hour.delivered for hour in hours)),
        "refused": grouped(sum(hour.refused for hour in hours)),
        "skipped": grouped(sum(hour.skipped for hour in hours)),
        "failures": grouped(failures),
    }
    return (
        ngettext(
            "Last 24 hours: %(delivered)s delivered, %(refused)s refused, %(skipped)s skipped,"
            " %(failures)s failed attempt",
            "Last 24 hours: %(delivered)s delivered, %(refused)s refused, %(skipped)s skipped,"
            " %(failures)s failed attempts",
            failures,
        )
        % parts
    )
