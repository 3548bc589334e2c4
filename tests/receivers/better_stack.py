"""Better Stack Logs: POST / with a JSON array.

Source: https://betterstack.com/docs/logs/http-rest-api/ (form, answers, times, 10 MiB of compressed data)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tests.receivers.strict_json import NotJson, parsed, text_of
from tests.receivers.wire import Event, Reply, Request, Wire, in_text

MOST_BYTES = 10 * 1024 * 1024
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)")


class BetterStack(Wire):
    """Takes a batch whole or refuses it."""

    def __init__(self, *, token: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.token = token

    def in_words(self, status: int) -> Reply:
        words = {402: "Quota exceeded", 403: "Unauthorized", 413: "payload reached size limit"}
        return in_text(status, words.get(status, "said by the receiver"))

    def read(self, request: Request) -> list[Event]:
        self.must_be_post(request, in_text(405, ""))
        if request.target != "/":
            self.refuse(in_text(404, ""), f"path {request.target}")
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not token:
            self.refuse(self.in_words(403), "no Authorization: Bearer TOKEN")
        if token != self.token:
            self.refuse(self.in_words(403))
        if request.media_type != "application/json":
            self.breach(f"Content-Type {request.media_type}")
        if len(request.raw) > MOST_BYTES:
            self.refuse(self.in_words(413))
        try:
            events = parsed(text_of(request.body))
        except NotJson as reason:
            self.refuse(in_text(406, "Couldn't parse JSON content."), str(reason))
        if not isinstance(events, list) or not events or not all(isinstance(event, dict) for event in events):
            self.refuse(in_text(406, "Couldn't parse JSON content."), "the body is no list of objects")
        for place, event in enumerate(events):
            self._check(place, event)
        return events

    def _check(self, place: int, event: Event) -> None:
        """The platform takes a time that it cannot read for a text, and uses its own clock."""
        if not _is_time(event.get("dt")):
            self.breach(f"event {place}: dt is no time: {event.get('dt')!r}")
        if len(json.dumps(event)) > MOST_BYTES:
            self.breach(f"event {place} is larger than {MOST_BYTES} bytes")

    def answer(self, events: Sequence[Event], refused: Mapping[int, int]) -> Reply:
        if refused:
            return in_text(406, "Couldn't parse JSON content.")
        return Reply(202, stored=range(len(events)))


def _is_time(value: Any) -> bool:
    """RFC 3339, or a whole number of seconds, milliseconds or nanoseconds."""
    if isinstance(value, int) and not isinstance(value, bool):
        return len(str(value)) in (10, 13, 19)
    if not isinstance(value, str) or not RFC_3339.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value.upper().replace("Z", "+00:00"))
    except ValueError:
        return False
    return True
