"""The events of a HEC request: JSON objects one after the other, with or without white space, in no list."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from tests.receivers.strict_json import NotJson, first_of, text_of

SPACE = " \t\r\n"
NEWEST_S = 10**11  # a time beyond it is in milliseconds


class Unusable(ValueError):
    """The code of the answer, and the place of the event."""

    def __init__(self, code: int, place: int, words: str) -> None:
        self.code, self.place = code, place
        super().__init__(f"event {place}: {words}")


def envelopes(body: bytes, keys: Collection[str], breach: Callable[[str], None]) -> list[dict[str, Any]]:
    """Raises: Unusable for the first event that the collector refuses. `breach` hears what it silently drops."""
    found: list[dict[str, Any]] = []
    try:
        text = text_of(body)
        at = _after_space(text, 0)
        while at < len(text):
            value, end = first_of(text, at)
            found.append(_checked(value, len(found), keys, breach))
            at = _after_space(text, end)
    except NotJson as reason:
        raise Unusable(6, len(found), str(reason)) from None
    return found


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in SPACE:
        at += 1
    return at


def _checked(value: Any, place: int, keys: Collection[str], breach: Callable[[str], None]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unusable(6, place, "no object")
    for name in value.keys() - set(keys):
        breach(f"event {place}: the envelope has no key {name}")
    if "event" not in value:
        raise Unusable(12, place, "no event")
    if value["event"] is None or value["event"] == "":
        raise Unusable(13, place, "a blank event")
    if "time" in value and not _is_seconds(value["time"]):
        breach(f"event {place}: the time {value['time']!r} is not in seconds since 1970")
    for name in ("host", "source", "sourcetype", "index", "timezone"):
        if name in value and not (isinstance(value[name], str) and value[name]):
            breach(f"event {place}: {name} is no text")
    if "fields" in value and not _is_flat(value["fields"]):
        raise Unusable(15, place, "fields is not flat")
    return value


def _is_seconds(value: Any) -> bool:
    try:
        seconds = float(value) if isinstance(value, str) else value
    except ValueError:
        return False
    return isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < NEWEST_S


def _is_flat(fields: Any) -> bool:
    """Names with texts, numbers, booleans, or lists of them."""
    if not isinstance(fields, dict):
        return False
    values = [item for value in fields.values() for item in (value if isinstance(value, list) else [value])]
    return all(isinstance(value, str | int | float) for value in values)
