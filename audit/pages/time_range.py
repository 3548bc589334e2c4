"""The time presets of the logs' pages. Spec: §4.10 · D83"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from gateway.lib import clock
from gateway.lib.errors import Invalid

NAME = "period"
# A date or time of one's own replaces the preset.
OWN = ("start", "end")


@dataclass(frozen=True, slots=True)
class Preset:
    label: str | Promise
    start_of: Callable[[datetime], datetime]


def _ago(**length: int) -> Callable[[datetime], datetime]:
    return lambda now: now - timedelta(**length)


PRESETS: Mapping[str, Preset] = {
    "1h": Preset(gettext_lazy("Last hour"), _ago(hours=1)),
    "today": Preset(gettext_lazy("Today"), lambda now: clock.midnight(now.date())),
    "7d": Preset(gettext_lazy("Last 7 days"), _ago(days=7)),
    "30d": Preset(gettext_lazy("Last 30 days"), _ago(days=30)),
}


def resolved(asked: Mapping[str, str]) -> dict[str, str]:
    """The same filters with the preset as a `start`, as the API takes them. Raises: Invalid."""
    query = {name: value for name, value in asked.items() if name != NAME}
    if NAME in asked:
        preset = PRESETS.get(asked[NAME])
        if preset is None:
            raise Invalid(fields={NAME: [gettext("Use one of: %(presets)s.") % {"presets": ", ".join(PRESETS)}]})
        query["start"] = clock.rfc3339(preset.start_of(clock.now()))
    return query
